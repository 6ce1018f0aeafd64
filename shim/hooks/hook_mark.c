/*
 * hook_mark.c - marks of requests and phases: the functions that include/whyoom/mark.h looks for
 * (also reachable by ctypes), and the records of all marks. Owns the names of marks. Must not trust
 * a name to be short, or to be used again.
 */
#include "hooks/hook_mark.h"

#include <errno.h>
#include <stdatomic.h>
#include <string.h>

#include "base/record_fields.h"
#include "record.h"
#include "thread/chunk_writer.h"
#include "trace/definitions.h"

#define NAMES_MAX 1000u
#define NAME_SLOTS 4096u /* a power of two */
#define MARK_BYTES 128 /* nine fields of at most ten bytes, and the header */
#define FIRST_ID (UINT64_C(1) << 48)

/* A name's number is its slot's index plus 1. */
static struct name {
	_Atomic uint64_t hash; /* 0: free */
	_Atomic(const char *) text; /* NULL: not copied yet, or too many names */
	_Atomic uint32_t id; /* of the string in this trace; 0: not written */
} names[NAME_SLOTS];
static char texts[NAMES_MAX][MARK_NAME_BYTES];
static _Atomic uint32_t name_count;
static _Atomic uint64_t last_id = FIRST_ID;

uint64_t mark_next_id(void)
{
	return atomic_fetch_add_explicit(&last_id, 1, memory_order_relaxed);
}

/* Copies the name into the caller's slot. False: there are too many names. */
static bool slot_fill(struct name *slot, const char *name, size_t length)
{
	uint32_t n = atomic_fetch_add_explicit(&name_count, 1, memory_order_relaxed);

	if (n >= NAMES_MAX)
		return false;
	memcpy(texts[n], name, length);
	atomic_store_explicit(&slot->text, texts[n], memory_order_release);
	return true;
}

/* Bounds the number of names, as a program may make a new one for each request and the table of
 * strings must have room for others. */
uint32_t mark_name(const char *name)
{
	uint64_t hash = 1469598103934665603ull;
	size_t length = 0;
	uint32_t i;

	if (!name)
		return 0;
	for (; length < MARK_NAME_BYTES - 1 && name[length]; length++)
		hash = (hash ^ (uint8_t)name[length]) * 1099511628211ull;
	hash += !hash;
	/* about a quarter of the slots is used at most, so every search ends */
	for (i = (uint32_t)(hash >> 20) & (NAME_SLOTS - 1);; i = (i + 1) & (NAME_SLOTS - 1)) {
		uint64_t there = atomic_load_explicit(&names[i].hash, memory_order_acquire);

		if (there == hash)
			return i + 1;
		if (there)
			continue;
		if (atomic_load_explicit(&name_count, memory_order_relaxed) >= NAMES_MAX)
			return 0;
		if (atomic_compare_exchange_strong(&names[i].hash, &there, hash))
			return slot_fill(&names[i], name, length) ? i + 1 : 0;
		if (there == hash)
			return i + 1;
	}
}

static uint32_t name_string(uint32_t number)
{
	struct name *slot;
	const char *text;
	uint32_t id;

	if (!number || number > NAME_SLOTS)
		return 0;
	slot = &names[number - 1];
	id = atomic_load_explicit(&slot->id, memory_order_acquire);
	text = atomic_load_explicit(&slot->text, memory_order_acquire);
	if (!id && text) {
		id = definitions_string(text);
		atomic_store_explicit(&slot->id, id, memory_order_release);
	}
	return id;
}

static void record_mark(struct note n, const struct mark *m, const struct stack_start *start)
{
	struct thread *t = n.thread;
	uint32_t stack, name, domain;
	struct extended x;
	uint8_t *p;

	if (!record_is_plain(n))
		return;
	/* the rest of the budget is for requests, not for ranges of single kernels */
	if (shim.budget && m->what >= TRACE_MARK_PUSHED) {
		trace_file_dropped(TRACE_DROP_BUDGET, 1, 0);
		return;
	}
	record_begin(t);
	/* room first: this is where the child of a fork gets a trace, and strings get new ids */
	if (!chunk_writer_make_room(t, MARK_BYTES, true, 0))
		goto out;
	name = name_string(m->name);
	domain = name_string(m->domain);
	/* also records a change of the Python task, which may precede the next allocation */
	stack = record_stack(n, start);
	if (!extended_begin(t, &x, TRACE_MARK, MARK_BYTES, true, 0))
		goto out;
	p = fields_put_MARK(extended_dt(t, &x),
	    &(struct trace_MARK){.phase = m->phase,
		.id = m->id,
		.name = name,
		.what = m->what,
		.stack = stack,
		.domain = domain,
		.tokens = m->tokens},
	    NULL, TRACE_FIELDS_BEFORE(MARK, tokens) + (m->phase == TRACE_MARK_LENGTH));
	extended_end(t, &x, p);
out:
	record_end(t);
}

void mark_record(const void *caller, const struct mark *m, const struct stack_start *start)
{
	int saved = errno;
	struct note n = note_enter(caller);

	record_mark(n, m, start);
	note_leave(n);
	errno = saved;
}

void hook_mark_forked(void)
{
	/* strings have other ids in the child's file */
	for (uint32_t i = 0; i < NAME_SLOTS; i++)
		atomic_store_explicit(&names[i].id, 0, memory_order_relaxed);
}

/* mark.h has inline functions that look these up. */
SHIM_EXPORT uint64_t whyoom_request_begin(const char *name);
SHIM_EXPORT void whyoom_request_begin_id(uint64_t id, const char *name);
SHIM_EXPORT void whyoom_request_end(uint64_t id);
SHIM_EXPORT void whyoom_request_enter(uint64_t id);
SHIM_EXPORT void whyoom_request_leave(uint64_t id);
SHIM_EXPORT void whyoom_request_tokens(uint64_t id, uint64_t tokens);
SHIM_EXPORT uint64_t whyoom_phase_begin(const char *name);
SHIM_EXPORT void whyoom_phase_end(uint64_t id);
SHIM_EXPORT void whyoom_point(const char *name);

uint64_t whyoom_request_begin(const char *name)
{
	uint64_t id = mark_next_id();

	RECORD_MARK(BEGIN, REQUEST, id, .name = mark_name(name));
	return id;
}

void whyoom_request_begin_id(uint64_t id, const char *name)
{
	RECORD_MARK(BEGIN, REQUEST, id, .name = mark_name(name));
}

void whyoom_request_end(uint64_t id)
{
	RECORD_MARK(END, REQUEST, id, .name = 0);
}

void whyoom_request_enter(uint64_t id)
{
	RECORD_MARK(ENTER, REQUEST, id, .name = 0);
}

void whyoom_request_leave(uint64_t id)
{
	RECORD_MARK(LEAVE, REQUEST, id, .name = 0);
}

void whyoom_request_tokens(uint64_t id, uint64_t tokens)
{
	RECORD_MARK(LENGTH, REQUEST, id, .tokens = tokens);
}

uint64_t whyoom_phase_begin(const char *name)
{
	uint64_t id = mark_next_id();

	RECORD_MARK(BEGIN, PHASE, id, .name = mark_name(name));
	return id;
}

void whyoom_phase_end(uint64_t id)
{
	RECORD_MARK(END, PHASE, id, .name = 0);
}

void whyoom_point(const char *name)
{
	RECORD_MARK(POINT, REQUEST, 0, .name = mark_name(name));
}
