#include "trace/symbols/symcache.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "trace/symbols/symcache_store.h"
#include "trace/xxh64.h"
#include "util/map.h"
#include "util/sort.h"
#include "util/text/str.h"
#include "util/vec.h"

#define VERSION 1u
#define FILE_MAX (64u << 20) /* bytes; larger files are neither read nor written */
#define ID_MAX 64u
#define INLINED 0x80000000u /* a flag in `line` */

static const char magic[8] = "whysyms";

/* A file holds this header, then entries by address, frames, and text that ends in NUL. The byte
 * order is the machine's: the file never leaves it. */
struct header {
	char magic[8];
	uint32_t version, id_bytes;
	uint64_t sum; /* of everything after this field */
	uint32_t entries, frames;
	uint64_t text_bytes;
	uint8_t id[ID_MAX];
	struct symcache_mark program, file;
	struct symcache_debug debug;
};

struct entry {
	uint64_t address;
	uint32_t first, count; /* frames, outermost first */
};

/* Offsets into the text; 0: none. */
struct kept_frame {
	uint32_t function, file, line;
};

/* A file that was read and is sound. */
struct image {
	char *data; /* NULL: no file */
	const struct header *header;
	const struct entry *entries;
	const struct kept_frame *frames;
	const char *text;
};

struct fresh {
	uint64_t address;
	size_t first, count; /* in `frames` */
};

struct symcache {
	struct symcache_store *store; /* NULL: nothing is kept */
	struct header wanted; /* the header that a file must have to match */
	char name[2 * ID_MAX + 32];
	struct image image;
	struct intern strings;
	VEC(struct fresh) fresh;
	VEC(struct objfile_frame) frames; /* the fresh entries' frames */
};

struct symcache_mark symcache_mark(const struct stat *st)
{
	return (struct symcache_mark){
	    .device = st->st_dev,
	    .inode = st->st_ino,
	    .size = (uint64_t)st->st_size,
	    .mtime_ns = (uint64_t)st->st_mtim.tv_sec * 1000000000u + (uint64_t)st->st_mtim.tv_nsec,
	    .ctime_ns = (uint64_t)st->st_ctim.tv_sec * 1000000000u + (uint64_t)st->st_ctim.tv_nsec,
	};
}

static uint64_t sum_of_file(const char *data, size_t bytes)
{
	size_t from = offsetof(struct header, sum) + sizeof(uint64_t);

	return xxh64_of(data + from, bytes - from);
}

/* Name the cache file: the build id, and a hash of the program and the ELF file. */
static void name_it(struct symcache *c)
{
	size_t n = 0;

	for (uint32_t i = 0; i < c->wanted.id_bytes; i++)
		n += (size_t)snprintf(c->name + n, sizeof(c->name) - n, "%02x", c->wanted.id[i]);
	snprintf(c->name + n, sizeof(c->name) - n, "-%016llx" SYMCACHE_SUFFIX,
	    (unsigned long long)xxh64_of(
		&c->wanted.program, sizeof(c->wanted.program) + sizeof(c->wanted.file)));
}

/* True if the file is complete, and belongs to the ELF file and program of `wanted`. */
static bool is_sound(const char *data, size_t bytes, const struct header *wanted)
{
	const struct header *h = (const struct header *)data;
	uint64_t rest;

	if (bytes < sizeof(*h) || memcmp(h->magic, magic, sizeof(magic)) || h->version != VERSION ||
	    h->sum != sum_of_file(data, bytes) || h->id_bytes != wanted->id_bytes ||
	    memcmp(h->id, wanted->id, sizeof(h->id)) ||
	    memcmp(&h->program, &wanted->program, sizeof(h->program)) ||
	    memcmp(&h->file, &wanted->file, sizeof(h->file)) ||
	    memchr(h->debug.link, 0, sizeof(h->debug.link)) == NULL)
		return false;
	rest = (uint64_t)h->entries * sizeof(struct entry) +
	       (uint64_t)h->frames * sizeof(struct kept_frame);
	return h->text_bytes && h->text_bytes <= FILE_MAX &&
	       sizeof(*h) + rest + h->text_bytes == bytes && !data[bytes - 1];
}

static void image_read(const struct symcache *c, struct image *image)
{
	size_t bytes;
	char *data = symcache_store_read(c->store, c->name, FILE_MAX, &bytes);

	*image = (struct image){0};
	if (!data)
		return;
	if (!is_sound(data, bytes, &c->wanted)) {
		free(data);
		return;
	}
	image->data = data;
	image->header = (const struct header *)data;
	image->entries = (const struct entry *)(data + sizeof(struct header));
	image->frames = (const struct kept_frame *)(image->entries + image->header->entries);
	image->text = (const char *)(image->frames + image->header->frames);
}

static void image_free(struct image *image)
{
	free(image->data);
	*image = (struct image){0};
}

struct symcache *symcache_open(struct symcache_store *store, const uint8_t *id, size_t id_bytes,
    const struct symcache_mark *file)
{
	struct symcache *c = calloc(1, sizeof(*c));

	if (!c)
		return NULL;
	map_seed();
	memcpy(c->wanted.magic, magic, sizeof(magic));
	c->wanted.version = VERSION;
	if (!store || id_bytes > ID_MAX)
		return c;
	c->store = store;
	c->wanted.id_bytes = (uint32_t)id_bytes;
	if (id_bytes)
		memcpy(c->wanted.id, id, id_bytes);
	c->wanted.program = *symcache_store_program(store);
	c->wanted.file = *file;
	name_it(c);
	image_read(c, &c->image);
	if (c->image.data)
		c->wanted.debug = c->image.header->debug;
	return c;
}

const struct symcache_debug *symcache_kept(const struct symcache *c)
{
	return c->image.data ? &c->image.header->debug : NULL;
}

bool symcache_is_kept(const struct symcache *c)
{
	return c->store != NULL;
}

void symcache_renew(struct symcache *c, const struct symcache_debug *debug)
{
	image_free(&c->image);
	if (debug)
		c->wanted.debug = *debug;
	else
		c->store = NULL;
}

static const char *text_at(const struct image *image, uint32_t at)
{
	return at && at < image->header->text_bytes ? image->text + at : NULL;
}

/* Unfold an entry's frames, up to the bound. */
static size_t unfold(
    const struct image *image, const struct entry *e, struct objfile_frame frames[])
{
	size_t n = e->count <= OBJFILE_FRAMES_MAX ? e->count : 0;

	if (e->first > image->header->frames || n > image->header->frames - e->first)
		n = 0;
	for (size_t i = 0; i < n; i++) {
		const struct kept_frame *f = &image->frames[e->first + i];

		frames[i] = (struct objfile_frame){
		    .function = text_at(image, f->function),
		    .file = text_at(image, f->file),
		    .line = f->line & ~INLINED,
		    .inlined = f->line & INLINED,
		};
	}
	return n;
}

int symcache_find(
    const struct symcache *c, uint64_t address, struct objfile_frame frames[OBJFILE_FRAMES_MAX])
{
	const struct image *image = &c->image;
	size_t count = image->data ? image->header->entries : 0;
	size_t n = sort_up_to(image->entries, count, sizeof(*image->entries), address);
	bool found = n && image->entries[n - 1].address == address;

	return found ? (int)unfold(image, &image->entries[n - 1], frames) : -1;
}

/* Copy the text; NULL stays NULL. False: no memory. */
static bool own(struct symcache *c, const char **text)
{
	if (!*text)
		return true;
	*text = intern_text(&c->strings, intern_add(&c->strings, *text, strlen(*text)));
	return *text != NULL;
}

bool symcache_add(struct symcache *c, uint64_t address, struct objfile_frame *frames, size_t count)
{
	struct fresh f = {.address = address, .first = c->frames.count, .count = count};

	for (size_t i = 0; i < count; i++)
		if (!own(c, &frames[i].function) || !own(c, &frames[i].file) ||
		    (c->store && vec_push(&c->frames, frames[i])))
			return false;
	return !c->store || vec_push(&c->fresh, f) == 0;
}

/* A file under construction. */
struct sheet {
	struct header header;
	VEC(struct entry) entries;
	VEC(struct kept_frame) frames;
	struct str text;
	struct intern seen;
	VEC(uint32_t) places; /* offset in the text, by id in `seen` - 1 */
};

static bool put_text(struct sheet *sheet, const char *text, uint32_t *place)
{
	uint32_t id;

	*place = 0;
	if (!text || !*text)
		return true;
	id = intern_add(&sheet->seen, text, strlen(text));
	if (!id || sheet->text.length > FILE_MAX)
		return false;
	if (id > sheet->places.count) {
		if (vec_push(&sheet->places, (uint32_t)sheet->text.length))
			return false;
		str_add(&sheet->text, text, strlen(text) + 1);
	}
	*place = sheet->places.items[id - 1];
	return true;
}

static bool put_entry(
    struct sheet *sheet, uint64_t address, const struct objfile_frame *frames, size_t count)
{
	struct entry e = {address, (uint32_t)sheet->frames.count, (uint32_t)count};

	for (size_t i = 0; i < count; i++) {
		struct kept_frame f = {.line = frames[i].line & ~INLINED};

		f.line |= frames[i].inlined ? INLINED : 0;
		if (!put_text(sheet, frames[i].function, &f.function) ||
		    !put_text(sheet, frames[i].file, &f.file) || vec_push(&sheet->frames, f))
			return false;
	}
	return vec_push(&sheet->entries, e) == 0;
}

static int by_address(const void *a, const void *b)
{
	const struct entry *x = a, *y = b;

	return (x->address > y->address) - (x->address < y->address);
}

static void sort_entries(struct sheet *sheet)
{
	struct entry *e = sheet->entries.items;
	size_t n = 1;

	qsort(e, sheet->entries.count, sizeof(*e), by_address);
	for (size_t i = 1; i < sheet->entries.count; i++)
		if (e[i].address != e[n - 1].address)
			e[n++] = e[i];
	sheet->entries.count = n;
}

static size_t sheet_bytes(const struct sheet *sheet)
{
	return sizeof(sheet->header) + sheet->entries.count * sizeof(struct entry) +
	       sheet->frames.count * sizeof(struct kept_frame) + sheet->text.length;
}

static bool fill(struct sheet *sheet, const struct symcache *c, const struct image *before)
{
	struct objfile_frame frames[OBJFILE_FRAMES_MAX];

	sheet->header = c->wanted;
	str_putc(&sheet->text, 0); /* offset 0 means none */
	for (size_t i = 0; i < c->fresh.count; i++) {
		const struct fresh *f = &c->fresh.items[i];

		if (!put_entry(sheet, f->address, c->frames.items + f->first, f->count))
			return false;
	}
	for (size_t i = 0; before && i < before->header->entries; i++) {
		const struct entry *e = &before->entries[i];

		if (!put_entry(sheet, e->address, frames, unfold(before, e, frames)))
			return false;
	}
	sort_entries(sheet);
	return !sheet->text.failed && sheet_bytes(sheet) <= FILE_MAX;
}

static void write_sheet(struct symcache *c, struct sheet *sheet)
{
	struct str data = {0};

	sheet->header.entries = (uint32_t)sheet->entries.count;
	sheet->header.frames = (uint32_t)sheet->frames.count;
	sheet->header.text_bytes = sheet->text.length;
	str_add(&data, (const char *)&sheet->header, sizeof(sheet->header));
	str_add(
	    &data, (const char *)sheet->entries.items, sheet->entries.count * sizeof(struct entry));
	str_add(&data, (const char *)sheet->frames.items,
	    sheet->frames.count * sizeof(struct kept_frame));
	str_add(&data, sheet->text.text, sheet->text.length);
	if (!data.failed) {
		((struct header *)data.text)->sum = sum_of_file(data.text, data.length);
		symcache_store_write(c->store, c->name, data.text, data.length);
	}
	str_free(&data);
}

/* Write the fresh entries, together with `before`. False: too large, or no memory. */
static bool keep(struct symcache *c, const struct image *before)
{
	struct sheet sheet = {0};
	bool good = fill(&sheet, c, before);

	if (good)
		write_sheet(c, &sheet);
	vec_free(&sheet.entries);
	vec_free(&sheet.frames);
	vec_free(&sheet.places);
	str_free(&sheet.text);
	intern_free(&sheet.seen);
	return good;
}

/* Write the fresh entries together with those on disk, which another report may have added. */
static void keep_fresh(struct symcache *c)
{
	struct image now;
	bool same;

	image_read(c, &now);
	same = now.data && !memcmp(&now.header->debug, &c->wanted.debug, sizeof(c->wanted.debug));
	if (!keep(c, same ? &now : NULL) && same)
		(void)keep(c, NULL);
	image_free(&now);
}

void symcache_close(struct symcache *c)
{
	if (!c)
		return;
	if (c->store && c->fresh.count)
		keep_fresh(c);
	image_free(&c->image);
	intern_free(&c->strings);
	vec_free(&c->fresh);
	vec_free(&c->frames);
	free(c);
}
