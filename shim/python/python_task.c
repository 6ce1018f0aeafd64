/*
 * python_task.c - see python_task.h. Owns the set of keys in use and the wrapper around the
 * destructor of contexts. Must not call the interpreter, nor read any context but the calling
 * thread's current one, which the thread state keeps alive.
 */
#include "python/python_task.h"

#include <string.h>
#include <sys/syscall.h>

#include "base/sys.h"
#include "loaded/symbols.h"
#include "trace/definitions.h"

/* Keys whose object is alive. A key without room is used all the same; only the end of its task is
 * then not recorded. */
#define KEY_SLOTS 16384u /* a power of two */
#define PROBES 8u

/* struct _pycontextobject, the same from 3.7 to 3.14; its type confirms the size. */
#define CONTEXT_PREVIOUS 16 /* the context from which it was entered; 0: none */
#define CONTEXT_ENTERED 40 /* int: it was entered; 0 for one that a thread made for itself */
#define CONTEXT_WEAKREFS 32
#define CONTEXT_BYTES 48

#define CONTEXTS_MAX 256u /* nested; each takes some frames of Python code */

#define FRAME_PAGE 4096u

_Atomic uint32_t python_task_state;

static struct {
	uintptr_t type; /* 0: contexts are not read */
	void (*ended)(uintptr_t key, const void *caller);
	void (*dealloc)(void *);
	bool frame_pages; /* the outermost frame begins a mapping of its own */
	bool threads_enter; /* threading.Thread runs in a context of its own, from 3.14 on */
	const char *why_not;
	_Atomic bool no_contexts; /* the field does not hold a context */
} state;

static _Atomic(uintptr_t) keys[KEY_SLOTS];

/* ---- the set ---- */

static uint32_t first_slot(uintptr_t key)
{
	return (uint32_t)((key >> 4) * 0x9e3779b97f4a7c15ull >> 40) & (KEY_SLOTS - 1);
}

static bool key_present(uintptr_t key)
{
	for (uint32_t n = 0, i = first_slot(key); n < PROBES; n++, i = (i + 1) & (KEY_SLOTS - 1))
		if (atomic_load_explicit(&keys[i], memory_order_relaxed) == key)
			return true;
	return false;
}

static void key_add(uintptr_t key)
{
	for (uint32_t n = 0, i = first_slot(key); n < PROBES; n++, i = (i + 1) & (KEY_SLOTS - 1)) {
		uintptr_t unused = 0;

		if (atomic_compare_exchange_strong_explicit(
			&keys[i], &unused, key, memory_order_relaxed, memory_order_relaxed))
			return;
	}
}

/* Returns true if the key was in use. */
static bool key_remove(uintptr_t key)
{
	bool was = false;

	for (uint32_t n = 0, i = first_slot(key); n < PROBES; n++, i = (i + 1) & (KEY_SLOTS - 1)) {
		uintptr_t wanted = key;

		was |= atomic_load_explicit(&keys[i], memory_order_relaxed) == key &&
		       atomic_compare_exchange_strong_explicit(
			   &keys[i], &wanted, 0, memory_order_relaxed, memory_order_relaxed);
	}
	/* threads with this last key will look again */
	if (was)
		atomic_fetch_add_explicit(
		    &python_task_state, PYTHON_TASK_DEATH, memory_order_release);
	return was;
}

/* Replaces PyContext_Type.tp_dealloc. */
static void context_dealloc(void *object)
{
	if (key_remove((uintptr_t)object))
		state.ended((uintptr_t)object, __builtin_return_address(0));
	state.dealloc(object);
}

static bool is_green(void)
{
	return atomic_load_explicit(&python_task_state, memory_order_relaxed) & PYTHON_TASK_GREEN;
}

bool python_task_unmapped(uintptr_t address)
{
	return is_green() && key_remove(address);
}

/* ---- the key ---- */

static uintptr_t read_word(uintptr_t p, unsigned offset)
{
	uintptr_t v;

	memcpy(&v, (const void *)(p + offset), sizeof v);
	return v;
}

/* Says whether the context was entered. One that was not belongs to the thread or green thread that
 * made it for itself, and says nothing more than these do. */
static bool is_entered(uintptr_t context)
{
	int entered;

	if ((context & 7) || context <= 65536 || context >> 48 ||
	    read_word(context, PYTHON_TYPE) != state.type) {
		atomic_store_explicit(&state.no_contexts, true, memory_order_relaxed);
		state.why_not = "no: its thread state is not that of its version";
		python_task_write_info();
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

/* Returns the task's context; 0: none. It is the outermost one, as a call in a context of its own
 * (contextvars' run(), which frameworks use for each step) is no other task; but where threads
 * enter a context for all that they run, it is the next. The caller that entered a context keeps it
 * until the call returns, so all contexts on the way are alive. */
static uintptr_t context_of_task(struct python_task *t, uintptr_t context)
{
	uintptr_t outermost = 0, within = 0;

	if (!state.type || atomic_load_explicit(&state.no_contexts, memory_order_relaxed))
		return 0;
	for (unsigned n = 0; context && n < CONTEXTS_MAX && is_entered(context); n++) {
		within = outermost;
		outermost = context;
		context = read_word(context, CONTEXT_PREVIOUS);
	}
	if (atomic_load_explicit(&state.no_contexts, memory_order_relaxed))
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
	if (key == t->key && (!key || key_present(key)))
		return;
	if (key && !key_present(key))
		key_add(key);
	t->key = key;
	t->turn++;
}

/* ---- finding tasks ---- */

void python_task_write_info(void)
{
	if (state.why_not)
		definitions_info("python.tasks", state.why_not);
	else if (state.type)
		definitions_info(
		    "python.tasks", is_green() ? "contexts, green threads" : "contexts");
}

void python_task_find_greenlet(void)
{
	if (!is_green() && (symbols_find("PyInit__greenlet") || symbols_find("PyInit_greenlet"))) {
		atomic_fetch_or_explicit(
		    &python_task_state, PYTHON_TASK_GREEN, memory_order_relaxed);
		python_task_write_info();
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
	else if (read_word(type, PYTHON_TYPE_BASICSIZE) != CONTEXT_BYTES ||
		 read_word(type, PYTHON_TYPE_WEAKREFS) != CONTEXT_WEAKREFS)
		state.why_not = "no: its contexts are not those of its version";
	else
		state.type = type;
	if (state.type && ended) {
		_Atomic(uintptr_t) *dealloc_field = (void *)(type + PYTHON_TYPE_DEALLOC);
		uintptr_t own = atomic_load(dealloc_field);

		if (own && own != (uintptr_t)context_dealloc) {
			state.ended = ended;
			state.dealloc = (void (*)(void *))own;
			atomic_store(dealloc_field, (uintptr_t)context_dealloc);
		}
	}
	python_task_find_greenlet();
	python_task_write_info();
}
