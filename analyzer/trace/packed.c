/* packed.c - see packed.h. */
#include "trace/packed.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zstd.h>

#include "trace/cursor.h"
#include "trace/xxh64.h"
#include "util/io.h"
#include "util/str.h"
#include "util/vec.h"

#define SKIPPABLE_HEAD 0x184d2a50u /* zstd leaves such frames out */
#define SKIPPABLE_TABLE 0x184d2a5eu
#define TABLE_MAGIC 0x8f92eab1u
#define TABLE_CHECKSUMS 0x80u /* flag of the descriptor */
#define FRAME_HEAD 8u /* of a skippable frame: magic, bytes */
#define FOOT 9u /* frames, descriptor, magic */
#define ENTRY 12u /* compressed, decompressed, checksum */
#define MAGIC "WHYOOMP\n"
#define HEAD (FRAME_HEAD + 16u)
#define VERSION 1u
#define LEVEL 9

struct frame {
	uint64_t at, offset; /* in the file, in the trace */
	uint32_t packed, bytes, checksum;
};

struct kept {
	uint8_t *data; /* PACKED_FRAME_MAX, or NULL */
	size_t frame;
	uint64_t used; /* when, in turns; 0: nothing is in it */
};

struct packed {
	VEC(struct frame) frames;
	uint64_t bytes, file_bytes, turn;
	struct kept kept[PACKED_KEPT];
	uint8_t *scratch; /* a compressed frame */
	ZSTD_DCtx *zstd;
	const char *path;
};

static int read_at(int fd, uint64_t at, void *into, size_t bytes)
{
	size_t done = 0;

	while (done < bytes) {
		ssize_t n = pread(fd, (char *)into + done, bytes - done, (off_t)(at + done));

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (!n)
			return -ENODATA;
		done += (size_t)n;
	}
	return 0;
}

/* --- reading --- */

static int damaged(const char *path, struct err *err, const char *what)
{
	return err_set(
	    err, -EINVAL, "%s: a packed trace, but %s: nothing of it can be read", path, what);
}

/* 1: it is one; 0: something else; negative with err. */
static int read_head(int fd, uint64_t file_bytes, const char *path, struct err *err)
{
	uint8_t raw[HEAD];
	struct cursor c = cursor_of(raw, sizeof(raw));
	unsigned version;

	if (file_bytes < HEAD || read_at(fd, 0, raw, sizeof(raw)) ||
	    cursor_fixed(&c, 4) != SKIPPABLE_HEAD || cursor_fixed(&c, 4) != HEAD - FRAME_HEAD ||
	    memcmp(cursor_take(&c, 8), MAGIC, 8) != 0)
		return 0;
	version = (unsigned)cursor_fixed(&c, 2);
	if (version > VERSION)
		return err_set(err, -ENOTSUP,
		    "%s: packed in format %u, and this whyoom (" WHYOOM_VERSION
		    ") reads up to %u: use a newer one, or unpack it by `zstd -d`",
		    path, version, VERSION);
	return version ? 1 : damaged(path, err, "of no version");
}

/* The frames follow each other from the file's start, and end where the table begins. */
static int read_entries(struct packed *p, const uint8_t *entries, uint32_t count, uint64_t end)
{
	struct cursor c = cursor_of(entries, (size_t)count * ENTRY);
	uint64_t at = 0;

	if (vec_reserve(&p->frames, count))
		return -ENOMEM;
	for (uint32_t i = 0; i < count; i++) {
		struct frame f = {.at = at, .offset = p->bytes};

		f.packed = (uint32_t)cursor_fixed(&c, 4);
		f.bytes = (uint32_t)cursor_fixed(&c, 4);
		f.checksum = (uint32_t)cursor_fixed(&c, 4);
		at += f.packed;
		p->bytes += f.bytes;
		if (at > end || f.bytes > PACKED_FRAME_MAX ||
		    f.packed > ZSTD_compressBound(PACKED_FRAME_MAX))
			return 1;
		if (f.bytes && vec_push(&p->frames, f))
			return -ENOMEM;
	}
	return at != end;
}

static int read_table(struct packed *p, int fd, uint64_t file_bytes, struct err *err)
{
	uint8_t foot[FOOT], head[FRAME_HEAD], *entries;
	struct cursor c = cursor_of(foot, sizeof(foot)), h = cursor_of(head, sizeof(head));
	uint64_t bytes, begin;
	uint32_t count;
	int rc;

	if (read_at(fd, file_bytes - FOOT, foot, sizeof(foot)))
		return damaged(p->path, err, "it cannot be read to its end");
	count = (uint32_t)cursor_fixed(&c, 4);
	if (cursor_fixed(&c, 1) != TABLE_CHECKSUMS || cursor_fixed(&c, 4) != TABLE_MAGIC)
		return damaged(p->path, err, "without the table at its end: it was cut off");
	bytes = (uint64_t)count * ENTRY + FOOT;
	if (bytes + FRAME_HEAD > file_bytes)
		return damaged(p->path, err, "its table says more than there is");
	begin = file_bytes - bytes - FRAME_HEAD;
	entries = malloc((size_t)count * ENTRY + 1);
	if (!entries)
		return err_set(err, -ENOMEM, "%s: out of memory", p->path);
	rc = read_at(fd, begin, head, sizeof(head)) ||
	     read_at(fd, begin + FRAME_HEAD, entries, (size_t)count * ENTRY);
	if (rc || cursor_fixed(&h, 4) != SKIPPABLE_TABLE || cursor_fixed(&h, 4) != bytes)
		rc = 1;
	else
		rc = read_entries(p, entries, count, begin);
	free(entries);
	if (rc == -ENOMEM)
		return err_set(err, rc, "%s: out of memory", p->path);
	return rc ? damaged(p->path, err, "its table does not fit it") : 0;
}

int packed_open(int fd, uint64_t file_bytes, const char *path, struct packed **out, struct err *err)
{
	int rc = read_head(fd, file_bytes, path, err);
	struct packed *p;

	*out = NULL;
	if (rc <= 0)
		return rc;
	p = calloc(1, sizeof(*p));
	if (!p)
		return err_set(err, -ENOMEM, "%s: out of memory", path);
	p->path = path;
	p->file_bytes = file_bytes;
	rc = read_table(p, fd, file_bytes, err);
	if (rc)
		packed_close(p);
	else
		*out = p;
	return rc;
}

void packed_rest(struct packed *p)
{
	for (size_t i = 0; i < PACKED_KEPT; i++)
		free(p->kept[i].data);
	memset(p->kept, 0, sizeof(p->kept));
	free(p->scratch);
	p->scratch = NULL;
	ZSTD_freeDCtx(p->zstd);
	p->zstd = NULL;
}

void packed_close(struct packed *p)
{
	if (!p)
		return;
	packed_rest(p);
	vec_free(&p->frames);
	free(p);
}

uint64_t packed_size(const struct packed *p)
{
	return p->bytes;
}

uint64_t packed_file_bytes(const struct packed *p)
{
	return p->file_bytes;
}

/* The frame that holds the offset, which is less than the size. */
static size_t frame_of(const struct packed *p, uint64_t offset)
{
	size_t low = 0, high = p->frames.count;

	while (high - low > 1) {
		size_t middle = low + (high - low) / 2;

		if (p->frames.items[middle].offset <= offset)
			low = middle;
		else
			high = middle;
	}
	return low;
}

static uint32_t checksum_of(const uint8_t *data, size_t bytes)
{
	struct xxh64 hash;

	xxh64_init(&hash);
	xxh64_add(&hash, data, bytes);
	return (uint32_t)xxh64_done(&hash);
}

static int unpack(struct packed *p, int fd, const struct frame *f, uint8_t *into, struct err *err)
{
	size_t n;
	int rc;

	if (!p->zstd)
		p->zstd = ZSTD_createDCtx();
	if (!p->scratch)
		p->scratch = malloc(ZSTD_compressBound(PACKED_FRAME_MAX));
	if (!p->zstd || !p->scratch)
		return err_set(err, -ENOMEM, "%s: out of memory", p->path);
	rc = read_at(fd, f->at, p->scratch, f->packed);
	if (rc && rc != -ENODATA)
		return err_set(err, rc, "%s: reading at offset %llu: %s", p->path,
		    (unsigned long long)f->at, strerror(-rc));
	n = rc ? 0 : ZSTD_decompressDCtx(p->zstd, into, f->bytes, p->scratch, f->packed);
	if (n != f->bytes || checksum_of(into, n) != f->checksum)
		return err_set(err, -EIO,
		    "%s: the packed part at offset %llu, of %u bytes, is damaged", p->path,
		    (unsigned long long)f->at, f->packed);
	return 0;
}

/* The frame's bytes, in place of those that were not asked for longest. */
static int frame_data(struct packed *p, int fd, size_t frame, const uint8_t **data, struct err *err)
{
	struct kept *k = &p->kept[0];
	int rc;

	for (size_t i = 0; i < PACKED_KEPT; i++) {
		if (p->kept[i].used && p->kept[i].frame == frame) {
			p->kept[i].used = ++p->turn;
			*data = p->kept[i].data;
			return 0;
		}
		if (p->kept[i].used < k->used)
			k = &p->kept[i];
	}
	k->used = 0;
	free(k->data);
	k->data = malloc(p->frames.items[frame].bytes);
	if (!k->data)
		return err_set(err, -ENOMEM, "%s: out of memory", p->path);
	rc = unpack(p, fd, &p->frames.items[frame], k->data, err);
	if (rc)
		return rc;
	k->frame = frame;
	k->used = ++p->turn;
	*data = k->data;
	return 0;
}

int packed_read(struct packed *p, int fd, uint64_t offset, void *into, size_t bytes, size_t *got,
    struct err *err)
{
	const uint8_t *data = NULL;
	int rc;

	*got = 0;
	while (*got < bytes && offset < p->bytes) {
		size_t frame = frame_of(p, offset);
		const struct frame *f = &p->frames.items[frame];
		size_t within = (size_t)(offset - f->offset), n = f->bytes - within;

		rc = frame_data(p, fd, frame, &data, err);
		if (rc)
			return rc;
		if (n > bytes - *got)
			n = bytes - *got;
		memcpy((char *)into + *got, data + within, n);
		*got += n;
		offset += n;
	}
	return 0;
}

/* --- writing --- */

static void put_entry(struct str *table, uint64_t packed, uint64_t bytes, uint32_t checksum)
{
	str_fixed(table, packed, 4);
	str_fixed(table, bytes, 4);
	str_fixed(table, checksum, 4);
}

/* Buffers of a frame, plain and packed. */
struct packer {
	int from, to;
	uint64_t at; /* where the next frame goes */
	uint8_t *plain, *packed;
	ZSTD_CCtx *zstd;
	struct str table; /* entries */
	uint32_t frames;
};

static int write_head(struct packer *w)
{
	struct str head = {0};
	int rc;

	str_fixed(&head, SKIPPABLE_HEAD, 4);
	str_fixed(&head, HEAD - FRAME_HEAD, 4);
	str_add(&head, MAGIC, 8);
	str_fixed(&head, VERSION, 2);
	str_fixed(&head, 0, 6);
	rc = head.failed ? -ENOMEM : io_write_at(w->to, head.text, head.length, 0);
	str_free(&head);
	w->at = HEAD;
	put_entry(&w->table, HEAD, 0, 0);
	w->frames = 1;
	return rc;
}

static int write_frame(struct packer *w, uint64_t offset, size_t bytes)
{
	size_t n;
	int rc = read_at(w->from, offset, w->plain, bytes);

	if (rc)
		return rc;
	n = ZSTD_compressCCtx(
	    w->zstd, w->packed, ZSTD_compressBound(PACKED_FRAME), w->plain, bytes, LEVEL);
	if (ZSTD_isError(n))
		return -ENOMEM;
	rc = io_write_at(w->to, w->packed, n, w->at);
	w->at += n;
	w->frames++;
	put_entry(&w->table, n, bytes, checksum_of(w->plain, bytes));
	return rc;
}

static int write_table(struct packer *w)
{
	struct str head = {0};
	int rc;

	str_fixed(&w->table, w->frames, 4);
	str_fixed(&w->table, TABLE_CHECKSUMS, 1);
	str_fixed(&w->table, TABLE_MAGIC, 4);
	str_fixed(&head, SKIPPABLE_TABLE, 4);
	str_fixed(&head, w->table.length, 4);
	str_add(&head, w->table.text, w->table.length);
	rc = w->table.failed || head.failed ? -ENOMEM
					    : io_write_at(w->to, head.text, head.length, w->at);
	str_free(&head);
	return rc;
}

int packed_write(int from, uint64_t bytes, int to, struct err *err)
{
	struct packer w = {.from = from, .to = to};
	int rc = -ENOMEM;

	w.plain = malloc(PACKED_FRAME);
	w.packed = malloc(ZSTD_compressBound(PACKED_FRAME));
	w.zstd = ZSTD_createCCtx();
	if (w.plain && w.packed && w.zstd) {
		rc = write_head(&w);
		for (uint64_t at = 0; at < bytes && !rc; at += PACKED_FRAME)
			rc = write_frame(&w, at,
			    bytes - at < PACKED_FRAME ? (size_t)(bytes - at) : PACKED_FRAME);
		if (!rc)
			rc = write_table(&w);
	}
	ZSTD_freeCCtx(w.zstd);
	free(w.plain);
	free(w.packed);
	str_free(&w.table);
	return rc ? err_set(err, rc, "%s", strerror(-rc)) : 0;
}
