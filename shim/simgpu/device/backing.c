/*
 * backing.c - see backing.h. One reserved mapping, used in pieces of 64 KiB.
 */
#include "simgpu/device/backing.h"

#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include "base/sys.h"
#include "simgpu/device/heap.h"

#define PIECE 65536ull

static char *store;
static uint32_t *free_pieces; /* a stack; pieces are numbered from 1 */
static uint64_t bound, next_piece, free_count;
static bool warned;

void backing_init(uint64_t bytes)
{
	long p;

	bound = bytes / PIECE;
	if (!bound || store)
		return;
	p = sys_call(SYS_mmap, 0, (long)(bound * PIECE), PROT_READ | PROT_WRITE,
	    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	free_pieces = heap_new(bound * sizeof(*free_pieces));
	if (sys_failed(p) || !free_pieces) {
		bound = 0;
		return;
	}
	store = (char *)p;
	sys_call(SYS_madvise, p, (long)(bound * PIECE), MADV_DONTFORK, 0, 0, 0);
}

static char *piece_at(uint32_t piece)
{
	return store + (piece - 1) * PIECE;
}

static uint32_t piece_new(void)
{
	if (free_count)
		return free_pieces[--free_count];
	if (next_piece < bound)
		return (uint32_t)++next_piece;
	if (!warned) {
		warned = true;
		sys_say("the simulated GPU's real memory is full: what is written further is "
			"dropped (WHYOOM_SIMGPU_BACKING)");
	}
	return 0;
}

void backing_free(struct backing *backing)
{
	for (uint64_t i = 0; i < backing->count; i++) {
		if (!backing->pieces[i])
			continue;
		/* gives the pages to the kernel, so that they read as zeros again */
		sys_call(
		    SYS_madvise, (long)piece_at(backing->pieces[i]), PIECE, MADV_DONTNEED, 0, 0, 0);
		free_pieces[free_count++] = backing->pieces[i];
	}
	heap_free(backing->pieces, backing->count * sizeof(*backing->pieces));
	*backing = (struct backing){0};
}

/* Returns where the byte at `offset` is kept; NULL: nowhere. */
static char *piece_address(struct backing *backing, uint64_t size, uint64_t offset)
{
	uint64_t i = offset / PIECE;

	if (!backing->pieces) {
		uint64_t count = (size + PIECE - 1) / PIECE;

		backing->pieces = heap_new(count * sizeof(*backing->pieces));
		if (!backing->pieces)
			return NULL;
		backing->count = count;
	}
	if (i >= backing->count)
		return NULL;
	if (!backing->pieces[i])
		backing->pieces[i] = piece_new();
	return backing->pieces[i] ? piece_at(backing->pieces[i]) + offset % PIECE : NULL;
}

static uint64_t in_piece(uint64_t offset, uint64_t n)
{
	uint64_t left = PIECE - offset % PIECE;

	return n < left ? n : left;
}

void backing_write(
    struct backing *backing, uint64_t size, uint64_t offset, const void *from, uint64_t n)
{
	for (uint64_t part; n; n -= part, offset += part, from = (const char *)from + part) {
		char *to = piece_address(backing, size, offset);

		part = in_piece(offset, n);
		if (to)
			memcpy(to, from, part);
	}
}

void backing_read(const struct backing *backing, uint64_t offset, void *to, uint64_t n)
{
	for (uint64_t part; n; n -= part, offset += part, to = (char *)to + part) {
		uint64_t i = offset / PIECE;

		part = in_piece(offset, n);
		if (i < backing->count && backing->pieces[i])
			memcpy(to, piece_at(backing->pieces[i]) + offset % PIECE, part);
		else
			memset(to, 0, part);
	}
}

void backing_fill(struct backing *backing, uint64_t size, uint64_t offset, uint32_t value,
    unsigned width, uint64_t n)
{
	for (uint64_t part; n; n -= part, offset += part) {
		uint64_t i = offset / PIECE;
		char *to;

		part = in_piece(offset, n);
		/* memory without a piece reads as zeros anyway */
		if (!value && (i >= backing->count || !backing->pieces[i]))
			continue;
		to = piece_address(backing, size, offset);
		if (!to)
			continue;
		if (width == 1)
			memset(to, (int)value, part);
		else
			for (uint64_t at = 0; at + width <= part; at += width)
				memcpy(to + at, &value, width);
	}
}
