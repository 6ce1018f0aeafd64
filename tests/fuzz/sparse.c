/* sparse.c - see sparse.h. */
#include "sparse.h"

#include <stdlib.h>
#include <string.h>

#define GAP 12u /* so many zeros end a piece */
#define PIECE 65535u

void sparse_read(struct sparse *s, const uint8_t *data, size_t bytes)
{
	size_t at = 1;

	*s = (struct sparse){.command = bytes ? data[0] : 0};
	for (size_t i = 0; i < SPARSE_FILES; i++) {
		s->files[i].data = calloc(1, SPARSE_BYTES);
		if (!s->files[i].data)
			abort();
	}
	while (at + 5 <= bytes) {
		struct sparse_file *f = &s->files[data[at] >> 7];
		size_t where = (data[at] & 127u) % SPARSE_SLOTS * TRACE_SLOT_BYTES +
			       (data[at + 1] | (size_t)data[at + 2] << 8);
		size_t length = data[at + 3] | (size_t)data[at + 4] << 8;

		at += 5;
		if (!length) {
			f->bytes = where;
			continue;
		}
		if (length > bytes - at)
			length = bytes - at;
		if (length > SPARSE_BYTES - where)
			length = SPARSE_BYTES - where;
		memcpy(f->data + where, data + at, length);
		at += length;
		/* Whole slots, as they are in a file. */
		where =
		    (where + length + TRACE_SLOT_BYTES - 1) / TRACE_SLOT_BYTES * TRACE_SLOT_BYTES;
		if (where > f->bytes)
			f->bytes = where;
	}
}

static size_t put_head(uint8_t *out, size_t at, size_t file, size_t where, size_t length)
{
	out[at++] = (uint8_t)(file << 7 | where / TRACE_SLOT_BYTES);
	out[at++] = (uint8_t)(where % TRACE_SLOT_BYTES);
	out[at++] = (uint8_t)(where % TRACE_SLOT_BYTES >> 8);
	out[at++] = (uint8_t)length;
	out[at++] = (uint8_t)(length >> 8);
	return at;
}

/* The end of the piece that begins at `at`: before many zeros, or at its slot's end. */
static size_t piece_end(const struct sparse_file *f, size_t at, size_t stop)
{
	size_t end = at, zeros = 0;

	for (size_t i = at; i < stop && zeros < GAP && i - at < PIECE; i++) {
		zeros = f->data[i] ? 0 : zeros + 1;
		if (f->data[i])
			end = i + 1;
	}
	return end;
}

size_t sparse_write(const struct sparse *s, uint8_t *out, size_t room)
{
	size_t at = 1;

	if (!room)
		return 0;
	out[0] = s->command;
	for (size_t i = 0; i < SPARSE_FILES; i++) {
		const struct sparse_file *f = &s->files[i];
		size_t p = 0, reached = 0;

		while (p < f->bytes) {
			size_t stop = (p / TRACE_SLOT_BYTES + 1) * TRACE_SLOT_BYTES, end;

			if (stop > f->bytes)
				stop = f->bytes;
			if (!f->data[p]) {
				p++;
				continue;
			}
			end = piece_end(f, p, stop);
			if (room - at < 5 + end - p)
				break;
			at = put_head(out, at, i, p, end - p);
			memcpy(out + at, f->data + p, end - p);
			at += end - p;
			p = end;
			reached = (p + TRACE_SLOT_BYTES - 1) / TRACE_SLOT_BYTES * TRACE_SLOT_BYTES;
		}
		if (reached != f->bytes && f->bytes < SPARSE_BYTES && room - at >= 5)
			at = put_head(out, at, i, f->bytes, 0);
	}
	return at;
}

void sparse_fini(struct sparse *s)
{
	for (size_t i = 0; i < SPARSE_FILES; i++)
		free(s->files[i].data);
}
