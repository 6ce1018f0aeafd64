#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cmd/run_library.h"
#include "place.h"
#include "unit.h"

static void beside_the_program(void **state)
{
	char found[PATH_MAX], program[PATH_MAX];
	struct err err;

	strcpy(program, place_path("unpacked/bin/whyoom"));
	place_text("unpacked/bin/whyoom", "");
	assert_int_equal(run_library_find(program, found, &err), -ENOENT);
	assert_non_null(strstr(err.text, "libwhyoom.so"));
	place_text("unpacked/lib/libwhyoom.so", "");
	assert_int_equal(run_library_find(program, found, &err), 0);
	assert_string_equal(found, place_path("unpacked/lib/libwhyoom.so"));

	strcpy(program, place_path("tree/analyzer/cmd/whyoom"));
	place_text("tree/analyzer/cmd/whyoom", "");
	place_text("tree/shim/libwhyoom.so", "");
	assert_int_equal(run_library_find(program, found, &err), 0);
	assert_string_equal(found, place_path("tree/shim/libwhyoom.so"));
}

static void a_path_that_cannot_be_preloaded(void **state)
{
	char found[PATH_MAX];
	struct err err;

	place_text("with blank/bin/whyoom", "");
	place_text("with blank/lib/libwhyoom.so", "");
	assert_int_equal(
	    run_library_find(place_path("with blank/bin/whyoom"), found, &err), -EINVAL);
}

static void in_front(void **state)
{
	static const struct {
		const char *before, *after;
	} cases[] = {
	    {NULL, "/l/libwhyoom.so"},
	    {"", "/l/libwhyoom.so"},
	    {"a.so:b.so", "/l/libwhyoom.so:a.so:b.so"},
	    {"a.so b.so", "/l/libwhyoom.so:a.so b.so"},
	    {"/l/libwhyoom.so", "/l/libwhyoom.so"},
	    {"/l/libwhyoom.so:a.so", "/l/libwhyoom.so:a.so"},
	    {"/l/libwhyoom.so.1", "/l/libwhyoom.so:/l/libwhyoom.so.1"},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		char *all = run_library_preload("/l/libwhyoom.so", cases[i].before);

		assert_string_equal(all, cases[i].after);
		free(all);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(beside_the_program),
	    cmocka_unit_test(a_path_that_cannot_be_preloaded),
	    cmocka_unit_test(in_front),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
