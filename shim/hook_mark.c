/*
 * hook_mark.c - what programs say of their requests and phases: the functions that
 * include/whyoom/mark.h looks for, under the same names for ctypes and its kin, and the records of
 * all marks. Owns the names that marks may have. Must not trust a name to be short, or the same
 * twice.
 */
#include "hook_mark.h"

#include <errno.h>
#include <stdatomic.h>
#include <string.h>

#include "defs.h"
#include "record.h"
#include "tbuf.h"
#include "wire.h"

#define NAME_BYTES 128 /* with its end */
#define NAMES_MAX 1000u
#define NAME_PLACES 4096u /* a power of two */
#define MARK_BYTES 128 /* eight fields, in need of at most ten bytes each, and what goes before */
#define FIRST_ID (UINT64_C(1) << 48)

struct mark {
	enum trace_mark phase;
	enum trace_mark_what what;
	uint64_t id;
};

static struct {
	_Atomic uint64_t hash; /* 0: free */
	_Atomic uint32_t id; /* 0: not written yet, or there was no room */
} names[NAME_PLACES];
static _Atomic uint32_t name_count;
static _Atomic uint64_t last_id = FIRST_ID;

static uint64_t next_id(void)
{
	return atomic_fetch_add_explicit(&last_id, 1, memory_order_relaxed);
}

/* Names come from a program that may make a new one for each request: they are counted here, so
 * that the table of strings has room for others. */
static uint32_t name_id(const char *name)
{
	char text[NAME_BYTES];
	uint64_t hash = 1469598103934665603ull;
	size_t length = 0;
	uint32_t id;

	if (!name)
		return 0;
	for (; length < NAME_BYTES - 1 && name[length]; length++) {
		text[length] = name[length];
		hash = (hash ^ (uint8_t)name[length]) * 1099511628211ull;
	}
	text[length] = 0;
	hash += !hash;
	for (uint32_t i = (uint32_t)(hash >> 20) & (NAME_PLACES - 1);;
	     i = (i + 1) & (NAME_PLACES - 1)) {
		uint64_t there = atomic_load_explicit(&names[i].hash, memory_order_acquire);

		if (!there) {
			/* A quarter full at most, so that every search ends. */
			if (atomic_load_explicit(&name_count, memory_order_relaxed) >= NAMES_MAX)
				return 0;
			if (!atomic_compare_exchange_strong(&names[i].hash, &there, hash)) {
				if (there != hash)
					continue;
			} else {
				atomic_fetch_add_explicit(&name_count, 1, memory_order_relaxed);
			}
			there = hash;
		}
		if (there != hash)
			continue;
		id = atomic_load_explicit(&names[i].id, memory_order_acquire);
		if (!id) {
			id = def_string(text);
			atomic_store_explicit(&names[i].id, id, memory_order_release);
		}
		return id;
	}
}

static void record(
    struct note n, const struct mark *m, const char *name, const struct stack_start *start)
{
	struct thread *t = n.thread;
	struct extended x;
	uint32_t stack, id;
	uint8_t *p;

	if (!plain(n))
		return;
	record_begin(t);
	/* Room first: in the child of a fork names have no ids before it. */
	if (!tbuf_make_room(t, MARK_BYTES, true, 0))
		goto out;
	id = name_id(name);
	/* Also where nothing was acquired yet since the thread went on with another task. */
	stack = capture(n, start);
	if (!extended_begin(t, &x, TRACE_MARK, MARK_BYTES, true, 0))
		goto out;
	p = extended_dt(t, &x);
	p = wire_varint(p, m->phase);
	p = wire_varint(p, m->id);
	p = wire_varint(p, id);
	p = wire_varint(p, m->what);
	p = wire_varint(p, stack);
	p = wire_varint(p, 0); /* no domain */
	extended_end(t, &x, p);
out:
	record_end(t);
}

void hook_mark_forked(void)
{
	/* strings have other ids in the child's file */
	memset(names, 0, sizeof(names));
	atomic_store(&name_count, 0);
}

static void say(
    const void *caller, const struct mark *m, const char *name, const struct stack_start *start)
{
	int saved = errno;
	struct note n = note_enter(caller);

	record(n, m, name, start);
	note_leave(n);
	errno = saved;
}

#define SAY(phase_, what_, id_, name)                                                              \
	do {                                                                                       \
		struct stack_start start = STACK_START();                                          \
		struct mark m = {TRACE_MARK_##phase_, TRACE_MARK_##what_, id_};                    \
		say(__builtin_return_address(0), &m, name, &start);                                \
	} while (0)

/* Prototypes of mark.h are inline functions: these are what they look for. */
SHIM_EXPORT uint64_t whyoom_request_begin(const char *name);
SHIM_EXPORT void whyoom_request_begin_id(uint64_t id, const char *name);
SHIM_EXPORT void whyoom_request_end(uint64_t id);
SHIM_EXPORT void whyoom_request_enter(uint64_t id);
SHIM_EXPORT void whyoom_request_leave(uint64_t id);
SHIM_EXPORT uint64_t whyoom_phase_begin(const char *name);
SHIM_EXPORT void whyoom_phase_end(uint64_t id);
SHIM_EXPORT void whyoom_point(const char *name);

uint64_t whyoom_request_begin(const char *name)
{
	uint64_t id = next_id();

	SAY(BEGIN, REQUEST, id, name);
	return id;
}

void whyoom_request_begin_id(uint64_t id, const char *name)
{
	SAY(BEGIN, REQUEST, id, name);
}

void whyoom_request_end(uint64_t id)
{
	SAY(END, REQUEST, id, NULL);
}

void whyoom_request_enter(uint64_t id)
{
	SAY(ENTER, REQUEST, id, NULL);
}

void whyoom_request_leave(uint64_t id)
{
	SAY(LEAVE, REQUEST, id, NULL);
}

uint64_t whyoom_phase_begin(const char *name)
{
	uint64_t id = next_id();

	SAY(BEGIN, PHASE, id, name);
	return id;
}

void whyoom_phase_end(uint64_t id)
{
	SAY(END, PHASE, id, NULL);
}

void whyoom_point(const char *name)
{
	SAY(POINT, REQUEST, 0, name);
}
