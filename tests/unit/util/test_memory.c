/* The kernel keeps to the limit, and the error tells how much memory would be enough. */
#include "util/memory.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include "unit.h"
#include "util/progress.h"
#include "util/text/err.h"

#define MB (1u << 20)

/* Not with malloc(), which a sanitizer makes end the process. */
static bool is_limited(void)
{
	void *p = mmap(NULL, 200 * MB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED)
		return true;
	munmap(p, 200 * MB);
	return false;
}

static void test_limit(void **state)
{
	struct rlimit before, now;

	assert_int_equal(getrlimit(RLIMIT_DATA, &before), 0);
	assert_int_equal(memory_limit(64 * MB, true), 0);
	assert_int_equal(getrlimit(RLIMIT_DATA, &now), 0);
	assert_int_equal(now.rlim_cur, 64 * MB);
	assert_int_equal(now.rlim_max, before.rlim_max);
	assert_true(is_limited());
	memory_lift();
	assert_int_equal(getrlimit(RLIMIT_DATA, &now), 0);
	assert_int_equal(now.rlim_cur, before.rlim_cur);
	assert_int_equal(memory_limit(0, true), 0);
	assert_false(is_limited());
}

static void test_words(void **state)
{
	struct err err;

	err_set(&err, -ENOMEM, "no memory for %s", "x");
	assert_string_equal(err.text, "no memory for x");
	assert_int_equal(memory_limit(64 * MB, true), 0);
	err_set(&err, -ENOMEM, "no memory for %s", "x");
	assert_string_equal(err.text, "no memory for x (--max-memory is 64.0 MiB; try 128 MiB)");
	/* As another error's words. */
	char text[512];
	strcpy(text, err.text);
	err_set(&err, -ENOMEM, "%s", text);
	assert_string_equal(err.text, text);
	err_set(&err, -EINVAL, "wrong");
	assert_string_equal(err.text, "wrong");
	progress_begin("reading", 1000);
	progress_step(250);
	err_set(&err, -ENOMEM, "no memory");
	assert_string_equal(err.text,
	    "no memory (--max-memory is 64.0 MiB; by how far it came, about 384 MiB should do)");
	progress_end();
	assert_int_equal(memory_limit(64 * MB, false), 0);
	err_set(&err, -ENOMEM, "no memory");
	assert_string_equal(err.text,
	    "no memory (--max-memory is 64.0 MiB, three quarters of what is here; try 128 MiB)");
	memory_limit(0, false);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_limit),
	    cmocka_unit_test(test_words),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
