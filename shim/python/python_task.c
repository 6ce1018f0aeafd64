/*
 * python_task.c - keys of Python's tasks, and their deaths. Owns the set of keys that were given
 * out, and the wrapper around the destructor of contexts. Must not call the interpreter, nor read a
 * context but the calling thread's own current one, which that thread's state keeps alive.
 */
#include "python/python_task.h"

#include <string.h>
#include <sys/syscall.h>

#include "base/sys.h"
#include "loaded/symbols.h"
#include "trace/definitions.h"

/* Keys that were given out and whose object has not died. One for which there is no room is given
 * out nevertheless: only its death will not be told. */
#define PLACES 16384u /* a power of two */
#define PROBES 8u

/* struct _pycontextobject, the same from 3.7 to 3.14; confirmed by what its type says of itself. */
#define CONTEXT_PREVIOUS 16 /* where it was entered from; 0: none */
#define CONTEXT_ENTERED 40 /* int: somebody runs in it. Not so where a thread has made its own */
#define CONTEXT_WEAKREFS 32
#define CONTEXT_BYTES 48

#define CONTEXTS_DEEP 256u /* entered within each other; one for some frames of Python code */

#define FRAME_PAGE 4096u

_Atomic uint32_t python_task_state;

static struct {
	uintptr_t type; /* 0: contexts are not read */
	void (*ended)(uintptr_t key, const void *caller);
	void (*dealloc)(void *);
	bool frame_pages; /* the outermost frame begins a mapping of its own */
	bool threads_enter; /* threading.Thread runs in a context of its own: 3.14 on */
	const char *why_not;
	_Atomic bool wrong; /* what lies where the context should be is none */
} state;

static _Atomic(uintptr_t) given[PLACES];

/* ---- the set ---- */

static uint32_t first_place(uintptr_t key)
{
	return (uint32_t)((key >> 4) * 0x9e3779b97f4a7c15ull >> 40) & (PLACES - 1);
}

static bool is_given(uintptr_t key)
{
	for (uint32_t n = 0, i = first_place(key); n < PROBES; n++, i = (i + 1) & (PLACES - 1))
		if (atomic_load_explicit(&given[i], memory_order_relaxed) == key)
			return true;
	return false;
}

static void give(uintptr_t key)
{
	for (uint32_t n = 0, i = first_place(key); n < PROBES; n++, i = (i + 1) & (PLACES - 1)) {
		uintptr_t unused = 0;

		if (atomic_compare_exchange_strong_explicit(
			&given[i], &unused, key, memory_order_relaxed, memory_order_relaxed))
			return;
	}
}

/* True: it was given. */
static bool take_back(uintptr_t key)
{
	bool was = false;

	for (uint32_t n = 0, i = first_place(key); n < PROBES; n++, i = (i + 1) & (PLACES - 1)) {
		uintptr_t wanted = key;

		was |= atomic_load_explicit(&given[i], memory_order_relaxed) == key &&
		       atomic_compare_exchange_strong_explicit(
			   &given[i], &wanted, 0, memory_order_relaxed, memory_order_relaxed);
	}
	/* Whoever has it as its thread's last key gives it out anew. */
	if (was)
		atomic_fetch_add_explicit(
		    &python_task_state, PYTHON_TASK_DEATH, memory_order_release);
	return was;
}

/* In place of PyContext_Type.tp_dealloc. */
static void context_dealloc(void *object)
{
	if (take_back((uintptr_t)object))
		state.ended((uintptr_t)object, __builtin_return_address(0));
	state.dealloc(object);
}

static bool is_green(void)
{
	return atomic_load_explicit(&python_task_state, memory_order_relaxed) & PYTHON_TASK_GREEN;
}

bool python_task_unmapped(uintptr_t address)
{
	return is_green() && take_back(address);
}

/* ---- the key ---- */

static uintptr_t word(uintptr_t p, unsigned offset)
{
	uintptr_t v;
	memcpy(&v, (const void *)(p + offset), sizeof v);
	return v;
}

/* Is it a context that somebody entered? One that nobody did was made by the thread, or the green
 * thread, for itself, when it first needed one: it says nothing that these do not. */
static bool is_entered(uintptr_t context)
{
	int entered;

	if ((context & 7) || context <= 65536 || context >> 48 ||
	    word(context, PYTHON_TYPE) != state.type) {
		atomic_store_explicit(&state.wrong, true, memory_order_relaxed);
		state.why_not = "no: its thread state is not that of its version";
		python_task_facts();
		return false;
	}
	memcpy(&entered, (const void *)(context + CONTEXT_ENTERED), sizeof entered);
	return entered != 0;
}

static bool is_main(struct python_task *t)
{
	if (t->thread == PYTHON_THREAD_UNASKED)
		t->thread =
		    sys_call(SYS_gettid, 0, 0, 0, 0, 0, 0) == sys_call(SYS_getpid, 0, 0, 0, 0, 0, 0)
			? PYTHON_THREAD_MAIN
			: PYTHON_THREAD_OTHER;
	return t->thread == PYTHON_THREAD_MAIN;
}

/* The task's is the outermost: a call that is made in a context of its own (contextvars' run(), as
 * frameworks wrap each step in) is no other task. Around it a thread may have its own, for all that
 * it does. Whoever entered a context keeps it until he is back, so that those on the way are alive.
 * 0: none. */
static uintptr_t context_of_task(struct python_task *t, uintptr_t context)
{
	uintptr_t outermost = 0, within = 0;

	if (!state.type || atomic_load_explicit(&state.wrong, memory_order_relaxed))
		return 0;
	for (unsigned n = 0; context && n < CONTEXTS_DEEP && is_entered(context); n++) {
		within = outermost;
		outermost = context;
		context = word(context, CONTEXT_PREVIOUS);
	}
	if (atomic_load_explicit(&state.wrong, memory_order_relaxed))
		return 0;
	return within && state.threads_enter && !is_main(t) ? within : outermost;
}

void python_task_changed(struct python_task *t, uintptr_t context, uintptr_t root, uint32_t now)
{
	uintptr_t key = context_of_task(t, context);

	t->context = context;
	t->root = root;
	t->state = now;
	if (!key && root)
		key = state.frame_pages ? root & ~(uintptr_t)(FRAME_PAGE - 1) : root;
	if (key == t->key && (!key || is_given(key)))
		return;
	if (key && !is_given(key))
		give(key);
	t->key = key;
	t->turn++;
}

/* ---- finding out ---- */

void python_task_facts(void)
{
	if (state.why_not)
		definitions_info("python.tasks", state.why_not);
	else if (state.type)
		definitions_info(
		    "python.tasks", is_green() ? "contexts, green threads" : "contexts");
}

void python_task_look(void)
{
	if (!is_green() && (symbols_find("PyInit__greenlet") || symbols_find("PyInit_greenlet"))) {
		atomic_fetch_or_explicit(
		    &python_task_state, PYTHON_TASK_GREEN, memory_order_relaxed);
		python_task_facts();
	}
}

void python_task_init(const struct python_abi *abi, const void *context_type,
    void (*ended)(uintptr_t key, const void *caller))
{
	uintptr_t type = (uintptr_t)context_type;

	state.frame_pages = abi->kind != PYTHON_OBJECTS;
	state.threads_enter = abi->minor >= 14;
	if (!type || !abi->thread_context)
		state.why_not = "no: it does not export what is needed";
	else if (word(type, PYTHON_TYPE_BASICSIZE) != CONTEXT_BYTES ||
		 word(type, PYTHON_TYPE_WEAKREFS) != CONTEXT_WEAKREFS)
		state.why_not = "no: its contexts are not those of its version";
	else
		state.type = type;
	if (state.type && ended) {
		_Atomic(uintptr_t) *place = (void *)(type + PYTHON_TYPE_DEALLOC);
		uintptr_t own = atomic_load(place);

		if (own && own != (uintptr_t)context_dealloc) {
			state.ended = ended;
			state.dealloc = (void (*)(void *))own;
			atomic_store(place, (uintptr_t)context_dealloc);
		}
	}
	python_task_look();
	python_task_facts();
}
