/*
 * hook_lookup.c - dlsym and dlvsym, by which a program, or a CUDA runtime that is linked into it,
 * fetches the driver's functions. We answer only for a name of the table, looked up in a handle (or
 * in RTLD_DEFAULT, if every caller would get the same answer) by a caller that gets wrappers. All
 * else jumps into the real function, as its result and dlerror() depend on the return address.
 */
#include "hooks/hook_visitors.h"

#include <errno.h>
#include <stdint.h>
#include <string.h>

#include "base/shim_state.h"
#include "cuda/cuda_find.h"
#include "loaded/got.h"
#include "loaded/symbols.h"
#include "shim.h"

#define FROM_ASM __attribute__((used, noinline, visibility("hidden")))

/* dlfcn.h must not be included: it declares functions that are defined here */
#define DEFAULT_HANDLE ((void *)0)
#define NEXT_HANDLE ((void *)-1)

static void *real_dlsym(void)
{
	symbols_all();
	/* older C libraries have it in a separate library, which may be loaded after us */
	if (SHIM_UNLIKELY(!real.dlsym))
		real.dlsym = (void *(*)(void *, const char *))symbols_next("dlsym");
	return (void *)real.dlsym;
}

static void *real_dlvsym(void)
{
	symbols_all();
	if (SHIM_UNLIKELY(!real.dlvsym))
		real.dlvsym = (void *(*)(void *, const char *, const char *))symbols_next("dlvsym");
	return (void *)real.dlvsym;
}

/* Nothing between the real call and the return may touch dlerror's state. */
static void *wrap_result(const char *name, void *function)
{
	int saved = errno;

	if (function)
		function = cuda_wrapper_by_symbol(name, function);
	errno = saved;
	return function;
}

static void *hook_dlsym(void *handle, const char *name)
{
	return wrap_result(name, real.dlsym(handle, name));
}

static void *hook_dlvsym(void *handle, const char *name, const char *version)
{
	return wrap_result(name, real.dlvsym(handle, name, version));
}

static bool deepbind_seen;

/* Says whether a look-up in RTLD_DEFAULT has the same result for every caller: a function of
 * libcuda in the global scope comes first for all modules that were not loaded with RTLD_DEEPBIND.
 * An error that this leaves in dlerror() does not matter, as the real function is called once more.
 */
static bool default_is_unambiguous(const char *name)
{
	void *function =
	    __atomic_load_n(&deepbind_seen, __ATOMIC_RELAXED) ? NULL : symbols_find(name);

	return function && cuda_is_driver_function(function) &&
	       real.dlsym(DEFAULT_HANDLE, name) == function;
}

static bool is_wrapped(void *handle, const char *name, const void *caller)
{
	int saved = errno;
	bool yes = handle != NEXT_HANDLE && cuda_wanted(name) && shim.mode == SHIM_RECORDING &&
		   !shim_is_copy() && cuda_caller_wants(caller) &&
		   (handle != DEFAULT_HANDLE || default_is_unambiguous(name));

	errno = saved;
	return yes;
}

FROM_ASM void *hook_dlsym_before(void *handle, const char *name, const void *caller);
FROM_ASM void *hook_dlsym_before(void *handle, const char *name, const void *caller)
{
	void *function = real_dlsym();

	return is_wrapped(handle, name, caller) ? (void *)hook_dlsym : function;
}

FROM_ASM void *hook_dlvsym_before(void *handle, const char *name, const void *caller);
FROM_ASM void *hook_dlvsym_before(void *handle, const char *name, const void *caller)
{
	void *function = real_dlvsym();

	return handle != DEFAULT_HANDLE && is_wrapped(handle, name, caller) ? (void *)hook_dlvsym
									    : function;
}

/* --- libraries loaded with RTLD_DEEPBIND --- */

extern const char hook_dlsym_entry[] __attribute__((visibility("hidden")));
extern const char hook_dlvsym_entry[] __attribute__((visibility("hidden")));

static bool is_lookup(const char *name)
{
	return name[0] == 'd' && name[1] == 'l' &&
	       (!strcmp(name, "dlsym") || !strcmp(name, "dlvsym"));
}

/* Changes only slots that lead to the C library, not to another preloaded library. */
static void *lookup_slot(const struct got_slot *slot, bool *later)
{
	bool versioned = slot->name[2] == 'v';
	void *function = versioned ? real_dlvsym() : real_dlsym(), *now = got_function(slot);

	*later |= !now;
	if (!now || now != function)
		return NULL;
	return (void *)(uintptr_t)(versioned ? hook_dlvsym_entry : hook_dlsym_entry);
}

void hook_lookup_deepbind_seen(void)
{
	__atomic_store_n(&deepbind_seen, true, __ATOMIC_RELAXED);
}

bool hook_lookup_deepbind(const struct dl_phdr_info *info)
{
	static const struct got_walk walk = {.wanted = is_lookup, .wrapper = lookup_slot};

	return got_walk(info, &walk);
}

/* clang-format off */
#if defined(__x86_64__)
#define LOOKUP(name)                                                                               \
	__asm__(".text\n.hidden hook_" #name "_entry\n.globl hook_" #name "_entry\n"               \
		".globl " #name "\n.type " #name ",@function\n"                                   \
		"hook_" #name "_entry:\n" #name ":\n"                                            \
		"	.cfi_startproc\n	endbr64\n"                                         \
		"	push %rdi\n	.cfi_adjust_cfa_offset 8\n"                                \
		"	push %rsi\n	.cfi_adjust_cfa_offset 8\n"                                \
		"	push %rdx\n	.cfi_adjust_cfa_offset 8\n"                                \
		"	mov 24(%rsp),%rdx\n"                                                       \
		"	call hook_" #name "_before\n"                                              \
		"	pop %rdx\n	.cfi_adjust_cfa_offset -8\n"                               \
		"	pop %rsi\n	.cfi_adjust_cfa_offset -8\n"                               \
		"	pop %rdi\n	.cfi_adjust_cfa_offset -8\n"                               \
		"	jmp *%rax\n	.cfi_endproc\n.size " #name ",.-" #name "\n")
#elif defined(__aarch64__)
/* a jump to a function that begins with "bti c" must use x16 */
#define LOOKUP(name)                                                                               \
	__asm__(".text\n.hidden hook_" #name "_entry\n.globl hook_" #name "_entry\n"               \
		".globl " #name "\n.type " #name ",%function\n"                                   \
		"hook_" #name "_entry:\n" #name ":\n"                                            \
		"	.cfi_startproc\n	hint #34\n"                                        \
		"	stp x29,x30,[sp,-48]!\n	.cfi_adjust_cfa_offset 48\n"                       \
		"	.cfi_offset 29,-48\n	.cfi_offset 30,-40\n	mov x29,sp\n"              \
		"	stp x0,x1,[sp,16]\n	str x2,[sp,32]\n"                                  \
		"	mov x2,x30\n"                                                              \
		"	bl hook_" #name "_before\n"                                                \
		"	mov x16,x0\n"                                                              \
		"	ldp x0,x1,[sp,16]\n	ldr x2,[sp,32]\n"                                  \
		"	ldp x29,x30,[sp],48\n	.cfi_adjust_cfa_offset -48\n"                      \
		"	.cfi_restore 29\n	.cfi_restore 30\n"                                 \
		"	br x16\n	.cfi_endproc\n.size " #name ",.-" #name "\n")
#endif
LOOKUP(dlsym);
LOOKUP(dlvsym);
/* clang-format on */
