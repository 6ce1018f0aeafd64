#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../../util/unit.h"
#include "../scratch.h"
#include "cmd/run/termination.h"

static struct err err;

static const char *written(const struct termination *t, const char *text, bool earlier)
{
	assert_int_equal(termination_write(t, text, earlier, &err), 0);
	return scratch_read(t->path);
}

/* The user's file: made if need be, and its content is replaced. */
static void a_given_file(void **state)
{
	const char *path = scratch("log");
	struct termination t;

	assert_int_equal(termination_find(path, &t, &err), 0);
	assert_string_equal(t.path, path);
	assert_string_equal(scratch_read(path), "");
	assert_string_equal(written(&t, "leak. Fix: free it.", false), "leak. Fix: free it.");
	assert_string_equal(written(&t, "short", false), "short");
	scratch_file("log", "the program's own words, which are longer than the verdict");
	assert_string_equal(written(&t, "leak", false), "leak");
	(void)state;
}

/* The container's file, which the program may have written to as well. */
static void words_of_the_program_stay(void **state)
{
	struct termination t = {scratch_file("log", "its own words"), false};

	assert_string_equal(written(&t, "leak", false), "its own words");
	scratch_file("log", "");
	assert_string_equal(written(&t, "leak", false), "leak");
	assert_string_equal(written(&t, "another", false), "leak");
	(void)state;
}

static void the_run_before(void **state)
{
	struct termination t = {scratch_file("log", ""), false};
	const char *text = written(&t, "leak", true);

	assert_string_equal(text, "The run before this one was killed. leak");
	assert_string_equal(written(&t, "queue", false), "queue");
	termination_forget_earlier(&t);
	assert_string_equal(scratch_read(t.path), "queue");
	scratch_file("log", "");
	written(&t, "leak", true);
	termination_forget_earlier(&t);
	assert_string_equal(scratch_read(t.path), "");
	scratch_file("log", "its own words");
	termination_forget_earlier(&t);
	assert_string_equal(scratch_read(t.path), "its own words");
	(void)state;
}

/* At most 1023 bytes, and no part of a character. */
static void long_texts(void **state)
{
	struct termination t = {scratch("log"), true};
	char text[4001];

	for (size_t shift = 0; shift < 3; shift++) {
		memset(text, 'x', shift);
		for (size_t i = shift; i + 3 < sizeof(text); i += 3)
			memcpy(text + i, "\xe2\x82\xac", 4);
		scratch_file("log", "");
		assert_int_equal(strlen(written(&t, text, false)), 1023 - (1023 - shift) % 3);
		assert_memory_equal(scratch_read(t.path), text, 1020);
	}
	(void)state;
}

static void what_is_no_file(void **state)
{
	const char *pipe = scratch("pipe"), *dir = scratch_dir("dir");
	struct termination t;

	assert_int_equal(mkfifo(pipe, 0600), 0);
	assert_int_not_equal(termination_find(pipe, &t, &err), 0); /* and does not wait for it */
	assert_null(t.path);
	assert_non_null(strstr(err.text, pipe));
	assert_int_not_equal(termination_find(dir, &t, &err), 0);
	assert_int_equal(termination_find(scratch("no/such"), &t, &err), -ENOENT);
	assert_int_equal(termination_find("/dev/null", &t, &err), -EINVAL);
	assert_null(t.path);
	/* Without a file nothing is written, and nothing is wrong. */
	assert_int_equal(termination_write(&t, "leak", false, &err), 0);
	termination_forget_earlier(&t);
	(void)state;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    scratch_test(a_given_file),
	    scratch_test(words_of_the_program_stay),
	    scratch_test(the_run_before),
	    scratch_test(long_texts),
	    scratch_test(what_is_no_file),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
