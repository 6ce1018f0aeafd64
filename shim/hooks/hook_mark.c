/*
 * hook_mark.c - what programs say of their requests and phases: the functions that
 * include/whyoom/mark.h looks for, under the same names for ctypes and its kin, and the records of
 * all marks. Owns the names that marks may have. Must not trust a name to be short, or the same
 * twice.
 */
#include "hooks/hook_mark.h"

#include <errno.h>
#include <stdatomic.h>
#include <string.h>

#include "base/varint.h"
#include "record.h"
#include "thread/chunk_writer.h"
#include "trace/definitions.h"

#define NAMES_MAX 1000u
#define NAME_PLACES 4096u /* a power of two */
#define MARK_BYTES 128 /* nine fields, in need of at most ten bytes each, and what goes before */
#define FIRST_ID (UINT64_C(1) << 48)

/* A name's number is that of its place, plus 1. */
static struct name {
	_Atomic uint64_t hash; /* 0: free */
	_Atomic(const char *) text; /* NULL: not yet */
	_Atomic uint32_t
	    id; /* of the string in this trace; 0: not written yet, or there was no room */
} names[NAME_PLACES];
static char texts[NAMES_MAX][MARK_NAME_BYTES];
static _Atomic uint32_t name_count;
static _Atomic uint64_t last_id = FIRST_ID;

uint64_t mark_next_id(void)
{
	return atomic_fetch_add_explicit(&last_id, 1, memory_order_relaxed);
}

/* The place is ours: its name follows. False: there are too many; the place stays without one. */
static bool fill(struct name *place, const char *name, size_t length)
{
	uint32_t n = atomic_fetch_add_explicit(&name_count, 1, memory_order_relaxed);

	if (n >= NAMES_MAX)
		return false;
	memcpy(texts[n], name, length);
	atomic_store_explicit(&place->text, texts[n], memory_order_release);
	return true;
}

/* Names come from a program that may make a new one for each request: they are counted here, so
 * that the table of strings has room for others. */
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
	/* A quarter full, but for threads that come at one moment: so every search ends. */
	for (i = (uint32_t)(hash >> 20) & (NAME_PLACES - 1);; i = (i + 1) & (NAME_PLACES - 1)) {
		uint64_t there = atomic_load_explicit(&names[i].hash, memory_order_acquire);

		if (there == hash)
			return i + 1;
		if (there)
			continue;
		if (atomic_load_explicit(&name_count, memory_order_relaxed) >= NAMES_MAX)
			return 0;
		if (atomic_compare_exchange_strong(&names[i].hash, &there, hash))
			return fill(&names[i], name, length) ? i + 1 : 0;
		if (there == hash)
			return i + 1;
	}
}

static uint32_t string_of(uint32_t number)
{
	struct name *place;
	const char *text;
	uint32_t id;

	if (!number || number > NAME_PLACES)
		return 0;
	place = &names[number - 1];
	id = atomic_load_explicit(&place->id, memory_order_acquire);
	text = atomic_load_explicit(&place->text, memory_order_acquire);
	if (!id && text) {
		id = definitions_string(text);
		atomic_store_explicit(&place->id, id, memory_order_release);
	}
	return id;
}

static void record(struct note n, const struct mark *m, const struct stack_start *start)
{
	struct thread *t = n.thread;
	uint32_t stack, name, domain;
	struct extended x;
	uint8_t *p;

	if (!record_is_plain(n))
		return;
	/* What is left of the budget is for requests, not for the ranges of each kernel. */
	if (shim.budget && m->what >= TRACE_MARK_PUSHED) {
		trace_file_dropped(TRACE_DROP_BUDGET, 1, 0);
		return;
	}
	record_begin(t);
	/* Room first: in the child of a fork strings have no ids before it. */
	if (!chunk_writer_make_room(t, MARK_BYTES, true, 0))
		goto out;
	name = string_of(m->name);
	domain = string_of(m->domain);
	/* Also where nothing was acquired yet since the thread went on with another task. */
	stack = record_stack(n, start);
	if (!extended_begin(t, &x, TRACE_MARK, MARK_BYTES, true, 0))
		goto out;
	p = extended_dt(t, &x);
	p = varint_put(p, m->phase);
	p = varint_put(p, m->id);
	p = varint_put(p, name);
	p = varint_put(p, m->what);
	p = varint_put(p, stack);
	p = varint_put(p, domain);
	if (m->phase == TRACE_MARK_LENGTH)
		p = varint_put(p, m->tokens);
	extended_end(t, &x, p);
out:
	record_end(t);
}

void mark_say(const void *caller, const struct mark *m, const struct stack_start *start)
{
	int saved = errno;
	struct note n = note_enter(caller);

	record(n, m, start);
	note_leave(n);
	errno = saved;
}

void hook_mark_forked(void)
{
	/* strings have other ids in the child's file */
	for (uint32_t i = 0; i < NAME_PLACES; i++)
		atomic_store_explicit(&names[i].id, 0, memory_order_relaxed);
}

#define SAY(phase_, what_, id_, ...)                                                               \
	do {                                                                                       \
		struct stack_start start = STACK_START();                                          \
		struct mark m = {TRACE_MARK_##phase_, TRACE_MARK_##what_, id_, __VA_ARGS__};       \
		mark_say(__builtin_return_address(0), &m, &start);                                 \
	} while (0)

/* Prototypes of mark.h are inline functions: these are what they look for. */
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

	SAY(BEGIN, REQUEST, id, .name = mark_name(name));
	return id;
}

void whyoom_request_begin_id(uint64_t id, const char *name)
{
	SAY(BEGIN, REQUEST, id, .name = mark_name(name));
}

void whyoom_request_end(uint64_t id)
{
	SAY(END, REQUEST, id, .name = 0);
}

void whyoom_request_enter(uint64_t id)
{
	SAY(ENTER, REQUEST, id, .name = 0);
}

void whyoom_request_leave(uint64_t id)
{
	SAY(LEAVE, REQUEST, id, .name = 0);
}

void whyoom_request_tokens(uint64_t id, uint64_t tokens)
{
	SAY(LENGTH, REQUEST, id, .tokens = tokens);
}

uint64_t whyoom_phase_begin(const char *name)
{
	uint64_t id = mark_next_id();

	SAY(BEGIN, PHASE, id, .name = mark_name(name));
	return id;
}

void whyoom_phase_end(uint64_t id)
{
	SAY(END, PHASE, id, .name = 0);
}

void whyoom_point(const char *name)
{
	SAY(POINT, REQUEST, 0, .name = mark_name(name));
}
