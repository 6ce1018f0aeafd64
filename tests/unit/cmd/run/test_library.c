#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../../util/unit.h"
#include "../scratch.h"
#include "cmd/run/library.h"

static const char *find(const char *program, int expect)
{
	static char path[PATH_MAX];
	struct err err = {""};
	int rc = run_library_find(program, path, &err);

	if (rc != expect)
		fail_msg("%d instead of %d: %s", rc, expect, err.text);
	return rc ? strdup(err.text) : path;
}

static void beside_the_program(void **state)
{
	const char *library;
	char *words;

	words = (char *)find(scratch("bin/whyoom"), -ENOENT);
	assert_non_null(strstr(words, scratch("bin"))); /* the error names the searched paths */
	free(words);

	/* The build tree: build/analyzer/cmd/whyoom and build/shim. */
	library = scratch_file("build/shim/libwhyoom.so", "x");
	scratch_dir("build/analyzer/cmd");
	assert_string_equal(find(scratch("build/analyzer/cmd/whyoom"), 0), library);

	/* A tarball or a prefix; a link to the library is followed. */
	library = scratch_file("prefix/lib/libwhyoom.so.1", "x");
	scratch_dir("prefix/bin");
	assert_int_equal(symlink("libwhyoom.so.1", scratch("prefix/lib/libwhyoom.so")), 0);
	assert_string_equal(find(scratch("prefix/bin/whyoom"), 0), library);

	/* The simulated device lies in a folder beside it; up to version 0.1 it lay beside it. */
	{
		char path[PATH_MAX];
		struct err err = {""};

		assert_int_equal(run_library_simgpu(library, path, &err), -ENOENT);
		assert_non_null(strstr(err.text, "libwhyoom-simgpu.so"));
		scratch_file("prefix/lib/libwhyoom-simgpu.so", "x");
		assert_int_equal(run_library_simgpu(library, path, &err), 0);
		assert_non_null(strstr(path, "/lib/libwhyoom-simgpu.so"));
		scratch_dir("prefix/lib/simgpu");
		scratch_file("prefix/lib/simgpu/libwhyoom-simgpu.so", "x");
		assert_int_equal(run_library_simgpu(library, path, &err), 0);
		assert_non_null(strstr(path, "/lib/simgpu/libwhyoom-simgpu.so"));
		assert_false(run_library_nvml(library, path));
		scratch_file("prefix/lib/whyoom-nvml", "x");
		assert_true(run_library_nvml(library, path));
	}

	/* LD_PRELOAD would split such a path. */
	scratch_file("a b/lib/libwhyoom.so", "x");
	scratch_dir("a b/bin");
	words = (char *)find(scratch("a b/bin/whyoom"), -EINVAL);
	assert_non_null(strstr(words, "LD_PRELOAD"));
	free(words);
	scratch_file("a:b/lib/libwhyoom.so", "x");
	scratch_dir("a:b/bin");
	free((char *)find(scratch("a:b/bin/whyoom"), -EINVAL));
}

static void preload(const char *path, const char *before, const char *expect)
{
	char *all = run_library_preload(path, before);

	assert_string_equal(all, expect);
	free(all);
}

static void in_front_of_the_others(void **state)
{
	preload("/l/w.so", NULL, "/l/w.so");
	preload("/l/w.so", "", "/l/w.so");
	preload("/l/w.so", "/l/x.so", "/l/w.so:/l/x.so");
	preload("/l/w.so", "/l/x.so /l/y.so:z.so", "/l/w.so:/l/x.so /l/y.so:z.so");
	/* A run within a run: once is enough. */
	preload("/l/w.so", "/l/w.so", "/l/w.so");
	preload("/l/w.so", "/l/w.so:/l/x.so", "/l/w.so:/l/x.so");
	preload("/l/w.so", "/l/w.so /l/x.so", "/l/w.so /l/x.so");
	/* Another path with the same beginning. */
	preload("/l/w.so", "/l/w.so.1", "/l/w.so:/l/w.so.1");
	preload("/l/w.so", "/l/x.so:/l/w.so", "/l/w.so:/l/x.so:/l/w.so");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    scratch_test(beside_the_program),
	    cmocka_unit_test(in_front_of_the_others),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
