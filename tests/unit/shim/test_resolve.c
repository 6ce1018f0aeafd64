/*
 * test_resolve.c - look-ups without dlsym agree with dlsym.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <dlfcn.h>
#include <malloc.h>

#include "resolve.h"

static void test_agrees(void **state)
{
	/* functions, an object, an ifunc, one with old versions beside the new */
	static const char *const names[] = {"malloc", "free", "mmap64", "getpid", "memcpy",
	    "strchr", "pthread_create", "dlopen", "posix_spawn", "fopen", "sched_getaffinity"};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		void *expected = dlsym(RTLD_DEFAULT, names[i]);

		if (expected)
			assert_ptr_equal(resolve_next(names[i]), expected);
	}
	assert_null(resolve_find("whyoom_no_such_symbol"));
	assert_null(resolve_find(""));
}

static void test_real(void **state)
{
	void *p;

	resolve_all();
	resolve_all();
	p = real.malloc(100);
	assert_non_null(p);
	assert_true(real.malloc_usable_size(p) >= 100);
	real.free(p);
	assert_ptr_equal(real.malloc, dlsym(RTLD_DEFAULT, "malloc"));
	assert_false(resolve_program_owns);
}

static void test_module(void **state)
{
	struct resolve_module m;

	assert_true(resolve_module_of(dlsym(RTLD_DEFAULT, "malloc"), &m));
	assert_non_null(strstr(m.path, "libc.so"));
	assert_true(m.low < m.high);
	assert_true(resolve_module_of(&test_module, &m));
	assert_non_null(strstr(m.path, "resolve"));
	assert_false(resolve_module_of(&m, &m)); /* the stack is nobody's */
}

static void test_counts(void **state)
{
	uint64_t loaded, unloaded, loaded2;

	assert_true(resolve_counts(&loaded, &unloaded));
	assert_true(loaded > 0);
	assert_true(resolve_counts(&loaded2, &unloaded));
	assert_int_equal(loaded, loaded2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_agrees),
	    cmocka_unit_test(test_real),
	    cmocka_unit_test(test_module),
	    cmocka_unit_test(test_counts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
