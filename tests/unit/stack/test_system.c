/* test_system.c - a frame whose rules our reader does not handle: the stack ends there until a
 * library may be loaded; then the system's libunwind continues. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>
#include <dlfcn.h>

#include "under.h"

#define AFTER() __asm__ volatile("" ::: "memory")
#define ROOM 200

/* Two functions that call f: one as a compiler makes it, and one that remembers more states of the
 * rules than the reader keeps. */
#define PASSES_ON(name, remember, restore)                                                         \
	void name(void (*f)(void));                                                                \
	__asm__(".text\n"                                                                          \
		".globl " #name "\n"                                                               \
		".type " #name ",@function\n" #name ":\n"                                          \
		".cfi_startproc\n"                                                                 \
		"subq $24, %rsp\n"                                                                 \
		".cfi_adjust_cfa_offset 24\n" remember "call *%rdi\n" restore "addq $24, %rsp\n"   \
		".cfi_adjust_cfa_offset -24\n"                                                     \
		"ret\n"                                                                            \
		".cfi_endproc\n"                                                                   \
		".size " #name ",.-" #name "\n")

PASSES_ON(few_states, "", "");
PASSES_ON(
    many_states, ".rept 12\n.cfi_remember_state\n.endr\n", ".rept 12\n.cfi_restore_state\n.endr\n");

static uint32_t id;

static __attribute__((noinline)) void captures(void)
{
	id = under_hook(false);
	AFTER();
}

static __attribute__((noinline)) void between(void (*through)(void (*)(void)), int depth)
{
	if (depth)
		between(through, depth - 1);
	else
		through(captures);
	AFTER();
}

static int frames_through(void (*through)(void (*)(void)), struct under_frame *out)
{
	under_forget();
	between(through, 20);
	return under_frames(id, out, ROOM);
}

static void goes_on_with_the_systems(void **state)
{
	static struct under_frame want[ROOM], got[ROOM];

	void (*volatile ways[])(void (*)(void)) = {few_states, many_states};
	int n = 0, m = 0;

	/* one call site (built without optimisation), so that the outer frames are equal */
	for (int i = 0; i < 3; i++) {
		int frames = frames_through(ways[i > 0], i ? got : want);

		if (i == 0) {
			n = frames;
			assert_in_range(n, 23, ROOM);
			continue;
		}
		m = frames;
		if (i == 1) {
			assert_null(dlopen("libunwind.so.8", RTLD_NOLOAD | RTLD_NOW));
			assert_in_range(m, 1, 3); /* it ends at the frame, and says so */
			assert_int_equal(got[m - 1].type, UNDER_END);
			under_changed();
			assert_non_null(dlopen("libunwind.so.8", RTLD_NOLOAD | RTLD_NOW));
		}
	}
	assert_int_equal(m, n);
	for (int i = 0; i < n; i++) {
		Dl_info where;

		assert_int_equal(got[i].type, want[i].type);
		if (got[i].type != UNDER_NATIVE)
			continue;
		if (i == 1) {
			assert_true(dladdr((void *)(uintptr_t)under_address(&got[i]), &where));
			assert_string_equal(where.dli_sname, "many_states");
			continue;
		}
		assert_int_equal(under_address(&got[i]), under_address(&want[i]));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(goes_on_with_the_systems),
	};

	if (under_init())
		return 1;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
