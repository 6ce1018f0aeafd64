/* test_symbols.c - look-ups agree with dlsym. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <dlfcn.h>
#include <malloc.h>

#include "loaded/symbols.h"

static void test_agrees(void **state)
{
	/* functions, an object, an ifunc, one with old versions besides the default */
	static const char *const names[] = {"malloc", "free", "mmap64", "getpid", "memcpy",
	    "strchr", "pthread_create", "dlopen", "posix_spawn", "fopen", "sched_getaffinity"};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		void *expected = dlsym(RTLD_DEFAULT, names[i]);

		if (expected)
			assert_ptr_equal(symbols_next(names[i]), expected);
	}
	assert_null(symbols_find("whyoom_no_such_symbol"));
	assert_null(symbols_find(""));
}

static void test_real(void **state)
{
	void *p;

	symbols_all();
	symbols_all();
	p = real.malloc(100);
	assert_non_null(p);
	assert_true(real.malloc_usable_size(p) >= 100);
	real.free(p);
	assert_ptr_equal(real.malloc, dlsym(RTLD_DEFAULT, "malloc"));
	assert_false(symbols_program_owns);
}

static void test_module(void **state)
{
	struct symbols_module m;

	assert_true(symbols_module_of(dlsym(RTLD_DEFAULT, "malloc"), &m));
	assert_non_null(strstr(m.path, "libc.so"));
	assert_true(m.low < m.high);
	assert_true(symbols_module_of(&test_module, &m));
	assert_non_null(strstr(m.path, "symbols"));
	assert_false(symbols_module_of(&m, &m)); /* the stack belongs to no module */
}

static const char *const asked[] = {"free", "resolve_no_such_symbol", "dlsym"};
static uint32_t hashes[3];

/* In single modules: definitions agree with dlsym, and the program's imports are found among its
 * own symbols. */
static int in_module(struct dl_phdr_info *info, size_t size, void *data)
{
	bool program = !info->dlpi_name[0], libc = strstr(info->dlpi_name, "/libc.so") != NULL;
	struct symbols_symbol symbols[8];
	void *found[3] = {NULL, NULL, NULL};
	size_t n = symbols_of_names(info, asked, hashes, 3, symbols, 8);

	if (!program && !libc)
		return 0;
	++*(unsigned *)data;
	assert_int_equal(symbols_defined(info, asked, hashes, found, 3), libc);
	assert_null(found[1]);
	assert_ptr_equal(found[0], libc ? dlsym(RTLD_DEFAULT, "free") : NULL);
	if (program) {
		assert_int_equal(n, 2);
		assert_int_equal(symbols[0].name + symbols[1].name, 0 + 2);
		assert_true(symbols[0].symbol && symbols[0].symbol != symbols[1].symbol);
		assert_int_equal(symbols_of_names(info, asked, hashes, 3, symbols, 1), 1);
	}
	return 0;
}

static void test_in_module(void **state)
{
	void *volatile block = malloc(1);
	unsigned seen = 0;

	free(block); /* so that it is imported */
	for (int i = 0; i < 3; i++)
		hashes[i] = symbols_hash(asked[i]);
	dl_iterate_phdr(in_module, &seen);
	assert_int_equal(seen, 2);
}

static void test_counts(void **state)
{
	uint64_t loaded, unloaded, loaded2;

	assert_true(symbols_counts(&loaded, &unloaded));
	assert_true(loaded > 0);
	assert_true(symbols_counts(&loaded2, &unloaded));
	assert_int_equal(loaded, loaded2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_agrees),
	    cmocka_unit_test(test_real),
	    cmocka_unit_test(test_module),
	    cmocka_unit_test(test_in_module),
	    cmocka_unit_test(test_counts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
