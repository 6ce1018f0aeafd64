#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../../util/unit.h"
#include "../scratch.h"
#include "cmd/doctor/programs.h"

static struct diagnosis d;

/* scratch() has sixteen buffers, and these tests write more files. */
static const char *top(void)
{
	static char path[4096];

	snprintf(path, sizeof(path), "%s", scratch(""));
	return path;
}

static const struct diagnosis_check *last(void)
{
	assert_true(d.count > 0);
	return &d.checks[d.count - 1];
}

static void script(const char *name, const char *text)
{
	assert_int_equal(chmod(scratch_file(name, text), 0755), 0);
}

/* The ELF file behind a script, by its base name. */
static const char *behind(const char *first_line)
{
	static struct run_program p;
	char *command[] = {(char *)(uintptr_t)scratch("script"), NULL};

	script("script", first_line);
	doctor_resolve(command, &p);
	return p.error ? "" : str_base_name(p.file);
}

static void env(void **state)
{
	struct run_program p;

	assert_string_equal(behind("#!/bin/sh\n"), "sh");
	assert_string_equal(behind("#!/usr/bin/env sh\n"), "sh");
	assert_string_equal(behind("#! /usr/bin/env -S A=1 sh -x\n"), "sh");
	assert_string_equal(behind("#!/usr/bin/env -S -u B -i env C=2 sh\n"), "sh");
	assert_string_equal(behind("#!/usr/bin/env\n"), "env");
	assert_string_equal(behind("#!/usr/bin/env no-such-program-here\n"), "");
	doctor_resolve((char *[]){"env", "X=1", "sh", "-c", "env", NULL}, &p);
	assert_int_equal(p.error, 0);
	assert_string_equal(str_base_name(p.file), "sh");
	doctor_resolve((char *[]){"env", NULL}, &p);
	assert_string_equal(str_base_name(p.file), "env");
	assert_true(*p.interpreter == '/');
}

static void programs(void **state)
{
	struct run_program p = {.file = "/srv/x"};

	doctor_program(&d, "x", &p);
	assert_int_equal(last()->status, DIAGNOSIS_OK);
	for (int kind = RUN_PROGRAM_STATIC; kind <= RUN_PROGRAM_OTHER; kind++) {
		p.kind = (enum run_program_kind)kind;
		doctor_program(&d, "x", &p);
		assert_int_equal(last()->status, DIAGNOSIS_FAIL);
		assert_non_null(strstr(last()->fact, "/srv/x "));
		assert_true(*last()->way_out);
	}
	p.error = 2;
	doctor_program(&d, "x", &p);
	assert_non_null(strstr(last()->fact, "cannot run 'x': No such file"));
}

static int version(const char *path, char kind)
{
	char found;
	int minor = doctor_python_version(path, &found);

	assert_int_equal(found, kind);
	return minor;
}

static void python_versions(void **state)
{
	char path[4096];

	assert_int_equal(version("/usr/bin/python3.11", 0), 11);
	assert_int_equal(version("/usr/bin/python3.8", 0), 8);
	assert_int_equal(version("/x/python3.13t", 't'), 13);
	assert_int_equal(version("/x/python3.12d", 'd'), 12);
	assert_int_equal(version("/x/python3.11-config", 0), -1);
	assert_int_equal(version("/x/python2.7", 0), -1);
	assert_int_equal(version("/x/pypy3", 0), -1);
	/* by the folder of modules, if there is one and no other */
	script("bin/python3", "");
	snprintf(path, sizeof(path), "%s", scratch("bin/python3"));
	assert_int_equal(version(path, 0), -1);
	scratch_dir("lib");
	scratch_dir("lib/python3.10");
	assert_int_equal(version(path, 0), 10);
	scratch_dir("lib/python3.9");
	assert_int_equal(version(path, 0), -1);
}

static void preload(void **state)
{
	const char *root = top();
	char other[4096];

	doctor_preload(&d, root, NULL, NULL);
	assert_string_equal(last()->fact, "nothing else is preloaded");
	scratch_file("lib/libjemalloc.so.2", "x");
	doctor_preload(&d, root, "/lib/libjemalloc.so.2", NULL);
	assert_int_equal(last()->status, DIAGNOSIS_OK);
	assert_non_null(strstr(last()->fact, "in front of it"));
	doctor_preload(&d, root, "/lib/libjemalloc.so.2:/lib/no.so", NULL);
	assert_int_equal(last()->status, DIAGNOSIS_WARN);
	assert_non_null(strstr(last()->fact, "cannot be read"));
	doctor_preload(&d, root, "/x/libheaptrack_preload.so /y", NULL);
	assert_non_null(strstr(last()->fact, "heaptrack records the same calls"));
	doctor_preload(&d, root, "libasan.so.8", NULL);
	assert_non_null(strstr(last()->fact, "sanitizer"));
	scratch_file("etc/ld.so.preload", "# none\n/lib/gone.so\n");
	doctor_preload(&d, root, "", NULL);
	assert_non_null(strstr(last()->fact, "/etc/ld.so.preload holds"));
	unlink(scratch("etc/ld.so.preload"));
	snprintf(other, sizeof(other), "%s", scratch_file("b/libwhyoom.so", "x"));
	doctor_preload(&d, "", other, "/usr/lib/libwhyoom.so");
	assert_non_null(strstr(last()->fact, "another libwhyoom.so"));
	doctor_preload(&d, "", other, other);
	assert_int_equal(last()->status, DIAGNOSIS_OK);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    scratch_test(env),
	    scratch_test(programs),
	    scratch_test(python_versions),
	    scratch_test(preload),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
