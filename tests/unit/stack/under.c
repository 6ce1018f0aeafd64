/* under.c - the library of under.h. Stands in for the trace (definitions go to memory) and for
 * the interpreter; everything else is the shim's own code. */
#include "under.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "python/python.h"
#include "stack/modules.h"
#include "stack/stack.h"
#include "stack/unwind.h"
#include "stack/unwind_system.h"
#include "trace/definitions.h"
#include "trace/trace_file.h"

#define EXPORT __attribute__((visibility("default")))

struct record {
	enum trace_def_kind kind;
	uint32_t id;
	size_t bytes;
	uint8_t body[];
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct record **stacks, **modules;
static uint32_t stacks_room, modules_room, stack_count;
static uint64_t total_bytes;
static __thread struct walker *walker;
static __thread struct stack_task task;

static uint64_t varint(const uint8_t **p, const uint8_t *end)
{
	uint64_t v = 0;

	for (unsigned shift = 0; *p < end; shift += 7) {
		uint8_t b = *(*p)++;

		v |= (uint64_t)(b & 0x7f) << shift;
		if (!(b & 0x80))
			break;
	}
	return v;
}

static int64_t svarint(const uint8_t **p, const uint8_t *end)
{
	uint64_t v = varint(p, end);

	return (int64_t)(v >> 1) ^ -(int64_t)(v & 1);
}

static void put(struct record ***table, uint32_t *room, struct record *r)
{
	if (r->id >= *room) {
		uint32_t n = *room ? *room : 1024;

		while (n <= r->id)
			n *= 2;
		*table = realloc(*table, n * sizeof(**table));
		memset(*table + *room, 0, (n - *room) * sizeof(**table));
		*room = n;
	}
	(*table)[r->id] = r;
}

static int room_now;
static uint64_t counts[2];

enum definitions_room definitions_room(void)
{
	return (enum definitions_room)room_now;
}

bool trace_file_expects_checkpoints(void)
{
	return false;
}

void definitions_count_brief(void)
{
	counts[0]++;
}

void definitions_count_untold(void)
{
	counts[1]++;
}

EXPORT void under_room(int room)
{
	room_now = room;
}

EXPORT void under_counts(uint64_t *brief, uint64_t *untold)
{
	*brief = counts[0];
	*untold = counts[1];
}

/* Tests call this in signal handlers, too, which must not find the lock held. */
bool definitions_write(enum trace_def_kind kind, const void *body, size_t bytes)
{
	const uint8_t *p = body;
	struct record *r = malloc(sizeof(*r) + bytes);

	r->kind = kind;
	r->bytes = bytes;
	memcpy(r->body, body, bytes);
	r->id = (uint32_t)varint(&p, p + bytes);
	pthread_mutex_lock(&lock);
	if (kind == TRACE_DEF_STACK) {
		stack_count++;
		put(&stacks, &stacks_room, r);
	} else {
		put(&modules, &modules_room, r);
	}
	total_bytes += bytes;
	pthread_mutex_unlock(&lock);
	return true;
}

EXPORT int under_init(void)
{
	return stack_init();
}

EXPORT __attribute__((noinline)) uint32_t under_hook(bool python)
{
	struct stack_start start = STACK_START();

	return stack_capture(&walker, &start, python, &task);
}

EXPORT uint64_t under_task(uint32_t *turn)
{
	*turn = task.turn;
	return task.key;
}

EXPORT bool under_interrupted(void)
{
	return stack_interrupted(walker);
}

EXPORT __attribute__((noinline)) void under_call(void (*f)(void *), void *arg)
{
	f(arg);
	__asm__ volatile("");
}

/* Outermost first. */
static int frames_of(uint32_t id, struct under_frame *out, int room, int keep)
{
	uint64_t address;
	uint32_t base;
	const struct record *r;
	int kept, m, n;
	const uint8_t *p, *end;

	if (!id || id >= stacks_room || !stacks[id])
		return -1;
	r = stacks[id];
	p = r->body;
	end = p + r->bytes;
	varint(&p, end);
	base = (uint32_t)varint(&p, end);
	kept = (int)varint(&p, end);
	m = (int)varint(&p, end);
	n = 0;
	if (kept) {
		n = frames_of(base, out, room, kept);
		if (n != kept)
			return -1;
	}
	address = 0;
	for (int i = 0; i < m; i++) {
		uint64_t v;
		struct under_frame f;

		if (n == room)
			return -1;
		v = varint(&p, end);
		f = (struct under_frame){.type = v & 3};
		if (f.type == TRACE_FRAME_NATIVE) {
			f.module = (uint32_t)(v >> 3);
			f.exact = v >> 2 & 1;
			address += (uint64_t)svarint(&p, end);
			f.value = address;
			if (f.module && (f.module >= modules_room || !modules[f.module]))
				return -1;
		} else if (f.type == TRACE_FRAME_PYTHON) {
			f.code = (uint32_t)(v >> 2);
			f.value = varint(&p, end);
		} else {
			f.value = v >> 2;
		}
		out[n++] = f;
	}
	if (p != end)
		return -1;
	return keep >= 0 && n > keep ? keep : n;
}

EXPORT int under_frames(uint32_t id, struct under_frame *out, int room)
{
	int n;

	pthread_mutex_lock(&lock);
	n = frames_of(id, out, room, -1);
	pthread_mutex_unlock(&lock);
	for (int i = 0; i < n / 2; i++) {
		struct under_frame t = out[i];

		out[i] = out[n - 1 - i];
		out[n - 1 - i] = t;
	}
	return n;
}

/* A thread that waited too long may write a definition again: the new record replaces the old, and
 * the table may move. */
static const struct record *module_of(uint32_t id)
{
	const struct record *r;

	pthread_mutex_lock(&lock);
	r = id && id < modules_room ? modules[id] : NULL;
	pthread_mutex_unlock(&lock);
	return r;
}

EXPORT const char *under_module_path(uint32_t id)
{
	static __thread char path[4096];
	const struct record *r = module_of(id);
	size_t n;
	const uint8_t *p, *end;
	if (!r)
		return NULL;
	p = r->body;
	end = p + r->bytes;
	varint(&p, end);
	n = varint(&p, end);
	memcpy(path, p, n < sizeof(path) ? n : 0);
	path[n < sizeof(path) ? n : 0] = 0;
	return path;
}

EXPORT uint64_t under_address(const struct under_frame *f)
{
	const struct record *r;
	const uint8_t *p, *end;

	if (!f->module)
		return f->value;
	r = module_of(f->module);
	p = r->body;
	end = p + r->bytes;
	varint(&p, end);
	p += varint(&p, end);
	p += varint(&p, end);
	return f->value + varint(&p, end);
}

EXPORT uint64_t under_definition_bytes(void)
{
	return total_bytes;
}

EXPORT uint32_t under_definitions(void)
{
	return stack_count;
}

EXPORT void under_thread_end(void)
{
	stack_thread_end(&walker);
}

EXPORT void under_forget(void)
{
	if (walker) /* its first member: see stack.c */
		((struct unwind *)walker)->count = 0;
}

EXPORT void under_full_walks(uint64_t *count)
{
	*count = walker ? ((struct unwind *)walker)->full_walks : 0;
}

EXPORT void under_fork_child(void)
{
	for (uint32_t i = 0; i < stacks_room; i++)
		stacks[i] = NULL;
	for (uint32_t i = 0; i < modules_room; i++)
		modules[i] = NULL;
	stack_fork_child(walker);
}

EXPORT void under_changing(void)
{
	modules_change_begin();
}

EXPORT void under_changed(void)
{
	unwind_system_load();
	modules_change_commit(NULL, 0);
}

EXPORT uint64_t under_own_bytes(void)
{
	return stack_own_bytes();
}

/* --- the interpreter --- */

static const struct python_view *next_view;
static bool (*next_is_eval)(uintptr_t);

EXPORT void under_python(const struct python_view *view, bool (*is_eval)(uintptr_t))
{
	next_view = view;
	next_is_eval = is_eval;
	python_active_ = view != NULL;
}

_Atomic bool python_active_;

bool python_is_eval(uintptr_t pc)
{
	return next_is_eval && next_is_eval(pc);
}

bool python_walk_now(struct python_walk **walk, struct python_view *view)
{
	(void)walk;
	if (!next_view)
		return false;
	*view = *next_view;
	return true;
}

void python_fork_child(struct python_walk *own)
{
	(void)own;
}

void python_thread_end(struct python_walk **walk)
{
	*walk = NULL;
}
