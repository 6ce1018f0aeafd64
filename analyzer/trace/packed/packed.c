#include "trace/packed/packed.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zstd.h>

#include "trace/cursor.h"
#include "trace/packed/packed_events.h"
#include "trace/xxh64.h"
#include "util/io.h"
#include "util/progress.h"
#include "util/sort.h"
#include "util/text/str.h"
#include "util/vec.h"
#include "whyoom/trace.h"

#define SKIPPABLE_HEAD 0x184d2a50u /* zstd skips such frames */
#define SKIPPABLE_TABLE 0x184d2a5eu
#define TABLE_MAGIC 0x8f92eab1u
#define TABLE_CHECKSUMS 0x80u /* a flag of the descriptor */
#define FRAME_HEAD 8u /* of a skippable frame: magic, length */
#define FOOT 9u /* number of frames, descriptor, magic */
#define ENTRY 12u /* packed length, plain length, checksum */
#define MAGIC "WHYOOMP\n"
#define HEAD (FRAME_HEAD + 16u)
#define VERSION 2u
#define SPLIT 1u /* first byte of a split chunk's frame; no zstd frame starts with it */
#define SPLIT_HEAD (1u + 8u * PACKED_STREAMS) /* that byte, and two lengths for each stream */
#define SPLIT_MOST (4u * PACKED_FRAME_MAX) /* bytes of a split chunk's streams */
#define LEVEL 9
#define SLOT 65536u /* chunks start at multiples of it */

struct frame {
	uint64_t offset, at; /* in the trace, by which they are sorted; in the file */
	uint32_t packed, bytes, checksum;
};

#define READ 1u

struct kept {
	uint8_t *data; /* PACKED_FRAME_MAX, or NULL */
	size_t frame;
	uint64_t used; /* turn of the last use; READ: read to its end; 0: empty */
};

struct packed {
	VEC(struct frame) frames;
	uint64_t bytes, file_bytes, turn;
	struct kept kept[PACKED_KEPT];
	uint8_t *scratch; /* a compressed frame */
	ZSTD_DCtx *zstd;
	const char *path;
};

/* Read all of them. -ENODATA: the file ends before. */
static int read_at(int fd, uint64_t at, void *into, size_t bytes)
{
	ssize_t n = io_read_at(fd, into, bytes, at);

	return n < 0 ? (int)n : (size_t)n < bytes ? -ENODATA : 0;
}

/* --- reading --- */

static int damaged(const char *path, struct err *err, const char *what)
{
	return err_set(
	    err, -EINVAL, "%s: a packed trace, but %s: nothing of it can be read", path, what);
}

/* Read the table's head. 1: it is one; 0: other data; negative with err. */
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
		    ") reads up to %u: use a newer one",
		    path, version, VERSION);
	return version ? 1 : damaged(path, err, "of no version");
}

/* The frames follow each other from the file's start; the table begins where they end. */
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
	p->turn = READ;
	p->path = path;
	p->file_bytes = file_bytes;
	rc = read_table(p, fd, file_bytes, err);
	if (rc)
		packed_close(p);
	else
		*out = p;
	return rc;
}

void packed_release(struct packed *p)
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
	packed_release(p);
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

/* Find the frame that holds the offset, which is less than the size. */
static size_t frame_of(const struct packed *p, uint64_t offset)
{
	return sort_up_to(p->frames.items, p->frames.count, sizeof(*p->frames.items), offset) - 1;
}

uint64_t packed_frame_end(const struct packed *p, uint64_t offset)
{
	const struct frame *f;

	if (offset >= p->bytes)
		return offset;
	f = &p->frames.items[frame_of(p, offset)];
	return f->offset + f->bytes;
}

/* Lengths of a split chunk's streams, plain and packed. read_split() returns 1 if it is none. */
struct split {
	uint64_t bytes[PACKED_STREAMS], packed[PACKED_STREAMS], all;
};

static int read_split(struct cursor *c, struct split *split)
{
	uint64_t packed = 0;

	split->all = 0;
	cursor_fixed(c, 1);
	for (size_t i = 0; i < PACKED_STREAMS; i++) {
		split->bytes[i] = cursor_fixed(c, 4);
		split->packed[i] = cursor_fixed(c, 4);
		if (split->bytes[i] > PACKED_FRAME_MAX || split->packed[i] > split->bytes[i])
			return 1;
		split->all += split->bytes[i];
		packed += split->packed[i];
	}
	return c->bad || packed != cursor_left(c) || split->all > SPLIT_MOST;
}

/* Join a frame that is a split chunk. 0; 1: it is damaged; -ENOMEM. */
static int join(struct packed *p, const struct frame *f, uint8_t *into)
{
	struct cursor c = cursor_of(p->scratch, f->packed);
	struct packed_streams streams = {0};
	struct split split;
	uint8_t *all, *at;
	int rc = 0;

	if (read_split(&c, &split))
		return 1;
	all = at = malloc(split.all + 1);
	if (!all)
		return -ENOMEM;
	for (size_t i = 0; i < PACKED_STREAMS && !rc; i++) {
		size_t bytes = (size_t)split.bytes[i], packed = (size_t)split.packed[i];
		const uint8_t *from = cursor_take(&c, packed);

		streams.of[i] = (struct packed_bytes){at, bytes, bytes};
		if (packed == bytes)
			memcpy(at, from, bytes);
		else
			rc = ZSTD_decompressDCtx(p->zstd, at, bytes, from, packed) != bytes;
		at += bytes;
	}
	if (!rc)
		rc = packed_join(&streams, into, f->bytes);
	free(all);
	return rc;
}

static int unpack(struct packed *p, int fd, const struct frame *f, uint8_t *into, struct err *err)
{
	size_t n = 0;
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
	if (!rc && f->packed && *p->scratch == SPLIT) {
		rc = join(p, f, into);
		if (rc == -ENOMEM)
			return err_set(err, rc, "%s: out of memory", p->path);
		n = rc ? 0 : f->bytes;
	} else if (!rc) {
		n = ZSTD_decompressDCtx(p->zstd, into, f->bytes, p->scratch, f->packed);
	}
	if (n != f->bytes || (uint32_t)xxh64_of(into, n) != f->checksum)
		return err_set(err, -EIO,
		    "%s: the packed part at offset %llu, of %u bytes, is damaged", p->path,
		    (unsigned long long)f->at, f->packed);
	return 0;
}

/* Get the frame's bytes, in place of the least recently used ones. */
static int frame_data(struct packed *p, int fd, size_t frame, struct kept **out, struct err *err)
{
	struct kept *k = &p->kept[0];
	int rc;

	for (size_t i = 0; i < PACKED_KEPT; i++) {
		if (p->kept[i].used && p->kept[i].frame == frame) {
			p->kept[i].used = ++p->turn;
			*out = &p->kept[i];
			return 0;
		}
		/* A frame that was read to its end goes first. */
		if (k->used != READ && (p->kept[i].used == READ || p->kept[i].used < k->used))
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
	*out = k;
	return 0;
}

int packed_read(struct packed *p, int fd, uint64_t offset, void *into, size_t bytes, size_t *got,
    struct err *err)
{
	struct kept *kept = NULL;
	int rc;

	*got = 0;
	while (*got < bytes && offset < p->bytes) {
		size_t frame = frame_of(p, offset);
		const struct frame *f = &p->frames.items[frame];
		size_t within = (size_t)(offset - f->offset), n = f->bytes - within;

		rc = frame_data(p, fd, frame, &kept, err);
		if (rc)
			return rc;
		if (n > bytes - *got)
			n = bytes - *got;
		memcpy((char *)into + *got, kept->data + within, n);
		if (within + n == f->bytes)
			kept->used = READ;
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
	uint64_t at; /* the next frame's offset */
	uint8_t *plain, *packed, *whole; /* packed: as streams; whole: as one */
	struct packed_streams streams;
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

/* Compress, or copy if that is shorter. Returns the length; 0: no memory. */
static size_t squeeze(struct packer *w, uint8_t *to, size_t room, const void *from, size_t bytes)
{
	size_t n = ZSTD_compressCCtx(w->zstd, to, room, from, bytes, LEVEL);

	if (!ZSTD_isError(n) && n < bytes)
		return n;
	if (bytes > room)
		return 0;
	memcpy(to, from, bytes);
	return bytes;
}

/* Pack the chunk in w->plain as streams, into w->packed. Returns its length; 0: this is no chunk,
 * or gets no shorter; negative errno. */
static int64_t write_split(struct packer *w, size_t bytes)
{
	size_t room = ZSTD_compressBound(PACKED_FRAME_MAX), used = 0, length[PACKED_STREAMS];
	struct str head = {0};
	int64_t rc = packed_split(w->plain, bytes, &w->streams);
	uint8_t *body = w->packed + SPLIT_HEAD;

	if (rc)
		return rc < 0 ? rc : 0;
	for (size_t i = 0; i < PACKED_STREAMS; i++) {
		const struct packed_bytes *s = &w->streams.of[i];

		length[i] =
		    s->length ? squeeze(w, body + used, room - used, s->data, s->length) : 0;
		if ((s->length && !length[i]) || s->length > PACKED_FRAME_MAX)
			return 0;
		used += length[i];
	}
	str_fixed(&head, SPLIT, 1);
	for (size_t i = 0; i < PACKED_STREAMS; i++) {
		str_fixed(&head, w->streams.of[i].length, 4);
		str_fixed(&head, length[i], 4);
	}
	rc = head.failed ? -ENOMEM : used + SPLIT_HEAD < bytes ? (int64_t)(used + SPLIT_HEAD) : 0;
	if (rc > 0)
		memcpy(w->packed, head.text, SPLIT_HEAD);
	str_free(&head);
	return rc;
}

static int write_frame(struct packer *w, size_t bytes)
{
	uint8_t *frame = w->packed;
	int64_t n = write_split(w, bytes);
	size_t plain;
	int rc;

	if (n < 0)
		return (int)n;
	/* For few events, the streams cost more than they save. */
	if (!n || bytes <= SLOT) {
		plain = ZSTD_compressCCtx(w->zstd, w->whole, ZSTD_compressBound(PACKED_FRAME_MAX),
		    w->plain, bytes, LEVEL);
		if (ZSTD_isError(plain))
			return -ENOMEM;
		if (!n || (int64_t)plain <= n) {
			n = (int64_t)plain;
			frame = w->whole;
		}
	}
	rc = io_write_at(w->to, frame, (size_t)n, w->at);
	w->at += (uint64_t)n;
	w->frames++;
	put_entry(&w->table, (uint64_t)n, bytes, (uint32_t)xxh64_of(w->plain, bytes));
	return rc;
}

/* Read the next frame's bytes: a chunk, or a slot that begins no chunk. */
static int read_chunk(struct packer *w, uint64_t at, uint64_t end, size_t *bytes)
{
	size_t slot = end - at < SLOT ? (size_t)(end - at) : SLOT;
	struct trace_chunk head;
	int rc = read_at(w->from, at, w->plain, slot);

	*bytes = slot;
	if (rc || slot < sizeof(head))
		return rc;
	memcpy(&head, w->plain, sizeof(head));
	if (head.magic != TRACE_CHUNK_MAGIC || head.bytes <= slot || head.bytes % SLOT)
		return 0;
	*bytes = head.bytes < PACKED_FRAME_MAX ? head.bytes : PACKED_FRAME_MAX;
	if (*bytes > end - at)
		*bytes = (size_t)(end - at);
	return read_at(w->from, at + slot, w->plain + slot, *bytes - slot);
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
	size_t n;
	int rc = -ENOMEM;

	w.plain = malloc(PACKED_FRAME_MAX);
	w.packed = malloc(SPLIT_HEAD + ZSTD_compressBound(PACKED_FRAME_MAX));
	w.whole = malloc(ZSTD_compressBound(PACKED_FRAME_MAX));
	w.zstd = ZSTD_createCCtx();
	if (w.plain && w.packed && w.whole && w.zstd) {
		rc = write_head(&w);
		for (uint64_t at = 0; at < bytes && !rc; at += n) {
			rc = read_chunk(&w, at, bytes, &n);
			if (!rc)
				rc = write_frame(&w, n);
			progress_step(at);
		}
		if (!rc)
			rc = write_table(&w);
	}
	ZSTD_freeCCtx(w.zstd);
	free(w.plain);
	free(w.packed);
	free(w.whole);
	packed_streams_fini(&w.streams);
	str_free(&w.table);
	return rc ? err_set(err, rc, "%s", strerror(-rc)) : 0;
}
