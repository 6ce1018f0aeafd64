/*
 * definitions.c - owns the definition chunks and the table of strings. Lock-free: a signal handler
 * may write a definition while its thread is writing one.
 */
#include "trace/definitions.h"

#include <string.h>

#include "base/options.h"
#include "base/sys.h"
#include "base/varint.h"
#include "base/xxh64.h"
#include "trace/trace_file.h"

/* A chunk and how far it is claimed. Never reused for another chunk: a late thread may still read
 * it. */
struct area {
	struct file_chunk mapped;
	uint32_t room; /* bytes of the body */
	uint32_t claimed; /* grows beyond `room` when the chunk is full */
	/* bytes that are written or never will be; at `room` the chunk is sealed */
	uint32_t complete;
};

static struct area *current, *spare;
static uint32_t sequence;

static uint64_t written; /* bytes of definitions in this trace */

static uint32_t string_last;
static struct string_entry {
	uint64_t hash; /* 0: free */
	uint32_t id; /* 0: not written yet */
} strings[4096];

/* Areas come from pages that are never given back; one page serves 64 MiB of chunks. */
static struct area *area_new(void)
{
	static struct {
		struct area areas[32];
	} * page;
	static uint32_t used = 32;
	uint32_t i = __atomic_fetch_add(&used, 1, __ATOMIC_ACQ_REL);
	void *fresh;

	if (i < 32)
		return &__atomic_load_n(&page, __ATOMIC_ACQUIRE)->areas[i];
	fresh = sys_pages(sizeof(*page));
	if (!fresh)
		return NULL;
	/* A thread that comes here at the same moment makes a page of its own: wasteful, but
	 * rare. */
	__atomic_store_n(&page, fresh, __ATOMIC_RELEASE);
	__atomic_store_n(&used, 1, __ATOMIC_RELEASE);
	return fresh;
}

static struct area *area_open(uint32_t bytes, bool dedicated)
{
	struct area *area = NULL;
	struct file_chunk c;
	enum trace_drop why;

	if (!dedicated)
		area = __atomic_exchange_n(&spare, NULL, __ATOMIC_ACQ_REL);
	if (area)
		return area;
	if (!trace_file_claim(&c, TRACE_CHUNK_DEFINITIONS, bytes, 0, 0,
		__atomic_fetch_add(&sequence, 1, __ATOMIC_RELAXED), true, &why) &&
	    (bytes == TRACE_FIRST_CHUNK_BYTES || dedicated ||
		!trace_file_claim(&c, TRACE_CHUNK_DEFINITIONS, TRACE_FIRST_CHUNK_BYTES, 0, 0,
		    sequence, true, &why)))
		return NULL;
	area = area_new();
	if (!area) {
		trace_file_unmap(&c);
		return NULL;
	}
	area->mapped = c;
	area->room = c.bytes - (uint32_t)sizeof(struct trace_chunk);
	area->claimed = 0;
	area->complete = 0;
	return area;
}

/* Publish `bytes` more of the chunk. */
static void area_written(struct area *area, uint32_t bytes)
{
	__atomic_fetch_add(&area->mapped.chunk->committed, bytes, __ATOMIC_RELEASE);
}

static void area_complete(struct area *area, uint32_t bytes)
{
	if (__atomic_add_fetch(&area->complete, bytes, __ATOMIC_ACQ_REL) == area->room)
		trace_file_seal(&area->mapped);
}

/* Return room for a definition, in the current area or the next; NULL: none. */
static uint8_t *claim(uint32_t bytes, struct area **where)
{
	for (int tries = 0; tries < 16; tries++) {
		struct area *area = __atomic_load_n(&current, __ATOMIC_ACQUIRE), *next, *expected;

		if (area) {
			uint32_t at = __atomic_load_n(&area->claimed, __ATOMIC_RELAXED);

			if (at < area->room)
				at = __atomic_fetch_add(&area->claimed, bytes, __ATOMIC_ACQ_REL);
			if (at + bytes <= area->room && at < area->room) {
				*where = area;
				return (uint8_t *)area->mapped.chunk + sizeof(struct trace_chunk) +
				       at;
			}
			if (at < area->room) /* the first that did not fit: nothing follows it */
				area_complete(area, area->room - at);
		}
		next = area_open(area ? trace_file_chunk_bytes() : TRACE_FIRST_CHUNK_BYTES, false);
		if (!next)
			return NULL;
		expected = area;
		if (!__atomic_compare_exchange_n(
			&current, &expected, next, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) {
			/* Another thread was faster: keep this area for the next time. */
			next = __atomic_exchange_n(&spare, next, __ATOMIC_ACQ_REL);
			if (next)
				trace_file_unmap(&next->mapped);
		}
	}
	return NULL;
}

static void write_record(
    uint8_t *at, enum trace_def_kind kind, const void *body, size_t size, uint32_t bytes)
{
	struct trace_def *head = (struct trace_def *)(void *)at;
	struct trace_def value = {.bytes = bytes, .kind = (uint16_t)kind};
	uint64_t word;

	uint32_t check;

	memcpy(&word, &value, sizeof(word));
	__atomic_store_n((uint64_t *)(void *)head, word, __ATOMIC_RELEASE);
	memcpy(head + 1, body, size);
	check = (uint32_t)xxh64(at, bytes - sizeof(check));
	memcpy(at + bytes - sizeof(check), &check, sizeof(check));
	value.committed = 1;
	memcpy(&word, &value, sizeof(word));
	__atomic_store_n((uint64_t *)(void *)head, word, __ATOMIC_RELEASE);
}

enum definitions_room definitions_room(void)
{
	uint64_t now = __atomic_load_n(&written, __ATOMIC_RELAXED);

	if (!trace_file_expects_checkpoints() || now < options.max_trace / 4)
		return DEFINITIONS_AMPLE;
	if (now < options.max_trace / 3)
		return DEFINITIONS_BRIEF;
	return now < options.max_trace / 8 * 3 ? DEFINITIONS_BRIEFEST : DEFINITIONS_NONE;
}

void definitions_count_brief(void)
{
	trace_file_count(&trace_file_header->brief_stacks, 1);
}

void definitions_count_untold(void)
{
	trace_file_count(&trace_file_header->untold, 1);
}

/* Is the number of definitions of this kind unbounded, so that a share of the budget must limit
 * it? */
static bool has_share(enum trace_def_kind kind)
{
	switch (kind) {
	case TRACE_DEF_THREAD: /* tells only a name; the id is in the chunks */
		return definitions_room() == DEFINITIONS_AMPLE;
	case TRACE_DEF_CODE:
	case TRACE_DEF_STACK:
	case TRACE_DEF_STRING: /* entry points of the driver are among them */
		return definitions_room() != DEFINITIONS_NONE;
	case TRACE_DEF_MODULE:
	case TRACE_DEF_INFO:
	case TRACE_DEF_SPACE:
		break;
	}
	return true;
}

bool definitions_write(enum trace_def_kind kind, const void *body, size_t size)
{
	uint32_t bytes =
	    (uint32_t)((sizeof(struct trace_def) + size + TRACE_DEF_CHECK_BYTES + 7) & ~(size_t)7);
	struct area *area;
	uint8_t *at;

	if (!has_share(kind)) {
		definitions_count_untold();
		return false;
	}
	if (size > TRACE_CHUNK_BYTES_MAX / 2)
		goto drop;
	__atomic_fetch_add(&written, bytes, __ATOMIC_RELAXED);
	if (bytes > TRACE_FIRST_CHUNK_BYTES / 2) {
		/* in a chunk of its own, so that the rest of another is not wasted */
		uint32_t chunk =
		    (uint32_t)(bytes + sizeof(struct trace_chunk) + TRACE_SLOT_BYTES - 1) &
		    ~(TRACE_SLOT_BYTES - 1);

		area = area_open(chunk, true);
		if (!area)
			goto drop;
		at = (uint8_t *)area->mapped.chunk + sizeof(struct trace_chunk);
		write_record(at, kind, body, size, bytes);
		area_written(area, bytes);
		area_complete(area, area->room);
		return true;
	}
	at = claim(bytes, &area);
	if (!at)
		goto drop;
	write_record(at, kind, body, size, bytes);
	area_written(area, bytes);
	area_complete(area, bytes);
	return true;
drop:
	trace_file_dropped(TRACE_DROP_DEFINITION, 1, 0);
	return false;
}

uint32_t definitions_string(const char *text)
{
	uint8_t body[1200];
	size_t n = strlen(text);
	uint64_t hash = 1469598103934665603ull, expected;
	struct string_entry *e = NULL;
	uint32_t i, id;

	if (n > 1024)
		n = 1024;
	for (size_t k = 0; k < n; k++)
		hash = (hash ^ (uint8_t)text[k]) * 1099511628211ull;
	hash += !hash;
	for (i = 0; i < 64; i++) {
		e = &strings[(hash + i) % (sizeof(strings) / sizeof(strings[0]))];
		expected = 0;
		if (__atomic_compare_exchange_n(
			&e->hash, &expected, hash, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
			break;
		if (expected == hash) {
			id = __atomic_load_n(&e->id, __ATOMIC_ACQUIRE);
			if (id)
				return id;
			/* another thread is writing it: write it twice, the ids may differ */
			break;
		}
	}
	id = __atomic_add_fetch(&string_last, 1, __ATOMIC_RELAXED);
	if (!definitions_write(TRACE_DEF_STRING, body,
		(size_t)(varint_put_bytes(varint_put(body, id), text, n) - body)))
		return 0;
	if (i < 64)
		__atomic_store_n(&e->id, id, __ATOMIC_RELEASE);
	return id;
}

void definitions_info_bytes(const char *key, const char *value, size_t n)
{
	size_t key_bytes = strlen(key), pages = n + key_bytes + 32;
	uint8_t small[512], *body = small, *p;

	if (pages > sizeof(small))
		body = sys_pages(pages);
	if (!body) {
		trace_file_dropped(TRACE_DROP_DEFINITION, 1, 0);
		return;
	}
	p = varint_put_bytes(body, key, key_bytes);
	p = varint_put_bytes(p, value, n);
	definitions_write(TRACE_DEF_INFO, body, (size_t)(p - body));
	if (body != small)
		sys_pages_free(body, pages);
}

void definitions_info(const char *key, const char *value)
{
	definitions_info_bytes(key, value, strlen(value));
}

void definitions_forked(void)
{
	if (current)
		trace_file_unmap(&current->mapped);
	if (spare)
		trace_file_unmap(&spare->mapped);
	current = spare = NULL;
	sequence = 0;
	written = 0;
	string_last = 0;
	memset(strings, 0, sizeof(strings));
}
