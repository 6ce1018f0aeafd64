/*
 * unwind_system.c - steps with libunwind.so.8. Declares its ABI here, so that building needs no
 * headers; calls nothing before unwind_system_load() has found all of it.
 */
#include "stack/unwind_system.h"

#include <dlfcn.h>
#include <stdatomic.h>
#include <stddef.h>

#include "base/sys.h"
#include "loaded/symbols.h"

/* Upper bounds of unw_cursor_t and of the context, which is ucontext_t or a part of it. */
#define CURSOR_BYTES 4096
#define CONTEXT_BYTES 8192
#define STEPS_MAX 8192u

#if defined(__x86_64__)
#define PREFIX "_ULx86_64_"
#define CONTEXT_NAME "_Ux86_64_getcontext"
#define REG_IP 16
#define REG_SP 7
#define REG_FP 6
#else
#define PREFIX "_ULaarch64_"
#define CONTEXT_NAME NULL /* an inline function there: not supported */
#define REG_IP 32
#define REG_SP 31
#define REG_FP 29
#endif

struct api {
	int (*getcontext)(void *);
	int (*init_local)(void *, void *);
	int (*step)(void *);
	int (*get_reg)(void *, int, uintptr_t *);
	int (*is_signal_frame)(void *);
};

static _Atomic bool load_wanted, load_tried;
static struct api api;
static _Atomic(const struct api *) ready_api;

/* Clears our failure from the host's next dlerror(). */
static void clear_dlerror(void)
{
	char *(*error)(void) = (char *(*)(void))symbols_find("dlerror");

	if (error)
		error();
}

void unwind_system_load(void)
{
	void *lib;

	if (!atomic_load(&load_wanted) || atomic_exchange(&load_tried, true) || !CONTEXT_NAME)
		return;
	lib = dlopen("libunwind.so.8", RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
	if (!lib) {
		clear_dlerror();
		return;
	}
	api.getcontext = (int (*)(void *))symbols_find(CONTEXT_NAME ? CONTEXT_NAME : "");
	api.init_local = (int (*)(void *, void *))symbols_find(PREFIX "init_local");
	api.step = (int (*)(void *))symbols_find(PREFIX "step");
	api.get_reg = (int (*)(void *, int, uintptr_t *))symbols_find(PREFIX "get_reg");
	api.is_signal_frame = (int (*)(void *))symbols_find(PREFIX "is_signal_frame");
	if (api.getcontext && api.init_local && api.step && api.get_reg && api.is_signal_frame)
		atomic_store_explicit(&ready_api, &api, memory_order_release);
}

enum unwind_step unwind_system_step(struct unwind_state *at)
{
	const struct api *a = atomic_load_explicit(&ready_api, memory_order_acquire);
	void *cursor, *context;
	uint8_t *memory;
	enum unwind_step rc;

	if (!a) {
		atomic_store(&load_wanted, true);
		return STEP_NO_CFI;
	}
	memory = sys_pages(CURSOR_BYTES + CONTEXT_BYTES);
	if (!memory)
		return STEP_NO_CFI;
	cursor = memory;
	context = memory + CURSOR_BYTES;
	rc = STEP_NO_CFI;
	a->getcontext(context);
	if (a->init_local(cursor, context) < 0)
		goto out;
	for (unsigned i = 0; i < STEPS_MAX; i++) {
		uintptr_t pc = 0, sp = 0;
		bool there, trampoline;
		int more;

		a->get_reg(cursor, REG_IP, &pc);
		a->get_reg(cursor, REG_SP, &sp);
		there = pc == at->pc && sp == at->sp;
		trampoline = a->is_signal_frame(cursor) > 0;
		more = a->step(cursor);
		if (!there) {
			if (more <= 0)
				goto out;
			continue;
		}
		if (more <= 0) {
			rc = more == 0 ? STEP_ROOT : STEP_NO_CFI;
			goto out;
		}
		a->get_reg(cursor, REG_IP, &at->pc);
		a->get_reg(cursor, REG_SP, &at->sp);
		a->get_reg(cursor, REG_FP, &at->fp);
		at->exact = trampoline;
		rc = at->pc ? STEP_OK : STEP_ROOT;
		goto out;
	}
out:
	sys_pages_free(memory, CURSOR_BYTES + CONTEXT_BYTES);
	return rc;
}
