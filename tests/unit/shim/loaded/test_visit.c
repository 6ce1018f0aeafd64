/* test_visit.c - each visitor sees each module once, unless the loader's counts leave doubt
 * about which modules are loaded. The loader is a list here. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "loaded/loader.h"
#include "loaded/visit.h"

/* --- the loader --- */

static struct dl_phdr_info list[2000];
static unsigned count, loaded, unloaded;
static bool may_ask = true;

int loader_each(loader_callback *callback, void *data)
{
	int rc = 0;

	for (unsigned i = 0; may_ask && !rc && i < count; i++) {
		list[i].dlpi_adds = loaded;
		list[i].dlpi_subs = unloaded;
		rc = callback(&list[i], sizeof(list[i]), data);
	}
	return rc;
}

bool loader_may_ask(void)
{
	return may_ask;
}

/* A module with one segment and a dynamic section, with or without a DT_RPATH. */
struct file {
	ElfW(Dyn) dynamic[2];
	ElfW(Phdr) headers[2];
	char name[2];
};
static struct file files[2000];

static void load_as(unsigned file, bool rpath)
{
	struct file *f = &files[file];

	f->name[0] = 'x';
	f->dynamic[0].d_tag = rpath ? DT_RPATH : DT_RUNPATH;
	f->headers[0] = (ElfW(Phdr)){.p_type = PT_LOAD, .p_memsz = sizeof(*f)};
	f->headers[1] =
	    (ElfW(Phdr)){.p_type = PT_DYNAMIC, .p_vaddr = offsetof(struct file, dynamic)};
	list[count++] = (struct dl_phdr_info){.dlpi_addr = (uintptr_t)f,
	    .dlpi_name = f->name,
	    .dlpi_phdr = f->headers,
	    .dlpi_phnum = 2};
	loaded++;
}

static void load(unsigned file)
{
	load_as(file, false);
}

static void unload(unsigned file)
{
	unsigned i = 0;

	while (list[i].dlpi_addr != (uintptr_t)&files[file])
		i++;
	memmove(&list[i], &list[i + 1], (--count - i) * sizeof(list[0]));
	unloaded++;
}

/* --- the watcher --- */

static unsigned scans, gone;
static uint64_t known_unloaded, gone_biases;

static void rescan(void)
{
	scans++;
}

static void module_gone(uintptr_t bias)
{
	gone++;
	gone_biases += bias;
}

static void told(uint64_t n)
{
	known_unloaded = n;
}

static const struct visit_watcher watcher = {module_gone, told, rescan};

/* --- the visitors --- */

static char seen[64]; /* the files visited, in order */
static unsigned refused = UINT32_MAX; /* this file is not ready */

static bool look(const struct dl_phdr_info *info)
{
	unsigned file = (unsigned)((struct file *)info->dlpi_addr - files);
	size_t n = strlen(seen);

	if (n < sizeof(seen) - 1) {
		seen[n] = (char)('0' + file);
		seen[n + 1] = 0;
	}
	return file != refused;
}

static const struct visitor one = {VISIT_ALLOCATORS, look};

static const char *visit_one(bool done)
{
	seen[0] = 0;
	gone = 0;
	gone_biases = 0;
	assert_int_equal(visit_modules(&one, 1), done);
	return seen;
}

static int fresh_list(void **state)
{
	/* unload the previous test's modules */
	while (count) {
		count--;
		unloaded++;
	}
	for (unsigned file = 0; file < 3; file++)
		load(file);
	visit_modules(&one, 1);
	visit_one(true);
	scans = 0;
	return 0;
}

static void test_once(void **state)
{
	assert_string_equal(visit_one(true), "");
	load(3);
	load(4);
	assert_string_equal(visit_one(true), "34");
	assert_string_equal(visit_one(true), "");
	visit_again(VISIT_ALLOCATORS);
	assert_string_equal(visit_one(true), "01234");
	assert_string_equal(visit_one(true), "");
	assert_int_equal(scans, 0);
}

static void test_unload(void **state)
{
	load(3);
	load(4);
	visit_one(true);
	unload(3);
	assert_string_equal(visit_one(true), "");
	assert_int_equal(gone, 1);
	assert_int_equal(gone_biases, (uintptr_t)&files[3]);
	assert_int_equal(known_unloaded, unloaded);
	load(3); /* its unload was seen */
	assert_string_equal(visit_one(true), "3");
	/* not seen, but it is at the end, and the number of new modules matches the loader's
	 * count */
	unload(4);
	load(4);
	assert_string_equal(visit_one(true), "4");
	assert_int_equal(gone, 1);
	unload(3);
	unload(4);
	assert_string_equal(visit_one(true), "");
	assert_int_equal(gone, 2);
	assert_int_equal(scans, 0);
}

/* The last module was unloaded and another one, or the same again, took its place:
 * indistinguishable. */
static void test_same_place(void **state)
{
	unload(2);
	load(2);
	assert_string_equal(visit_one(true), "012");
	assert_int_equal(scans, 1);
	assert_string_equal(visit_one(true), "");
	unload(2);
	load(2);
	load(3);
	assert_string_equal(visit_one(true), "30123");
	assert_int_equal(scans, 2);
	/* one that was loaded and unloaded unseen leaves the same doubt */
	load(4);
	unload(4);
	assert_string_equal(visit_one(true), "0123");
	assert_string_equal(visit_one(true), "");
	assert_int_equal(scans, 3);
}

static void test_not_ready(void **state)
{
	load(3);
	refused = 3;
	assert_string_equal(visit_one(false), "3");
	load(4);
	assert_string_equal(visit_one(false), "34");
	refused = UINT32_MAX;
	assert_string_equal(visit_one(true), "3");
	assert_string_equal(visit_one(true), "");
}

static unsigned calls, ask_at;

static bool look_again(const struct dl_phdr_info *info)
{
	if (++calls == ask_at)
		visit_again(VISIT_CUDA);
	return true;
}

/* A visitor that finds its target in the second module sees all modules again; others do not. */
static void test_again(void **state)
{
	static const struct visitor both[] = {{VISIT_ALLOCATORS, look}, {VISIT_CUDA, look_again}};

	seen[0] = 0;
	calls = 0;
	ask_at = 2;
	assert_true(visit_modules(both, 2));
	assert_int_equal(calls, 3 + 3);
	assert_string_equal(seen, "");
	assert_true(visit_modules(both, 2));
	assert_int_equal(calls, 3 + 3);
}

static bool nested;

static bool look_nested(const struct dl_phdr_info *info)
{
	nested |= visit_modules(&one, 1);
	nested |= !visit_caller_matters(info);
	return true;
}

static void test_nested(void **state)
{
	static const struct visitor v = {VISIT_PYTHON, look_nested};

	assert_true(visit_modules(&v, 1));
	assert_false(nested);
	visit_forked();
	assert_string_equal(visit_one(true), "");
}

static void test_many(void **state)
{
	for (unsigned file = 3; file < 2000; file++)
		load(file);
	visit_one(true);
	assert_int_equal(strlen(seen), sizeof(seen) - 1);
	assert_string_equal(visit_one(true), "");
	for (unsigned file = 1000; file < 2000; file++)
		unload(file);
	assert_string_equal(visit_one(true), "");
	assert_int_equal(gone, 1000);
}

static void test_caller(void **state)
{
	const char *of_start = (const char *)&files[1], *later = (const char *)&files[3];

	visit_started();
	load(3);
	assert_false(visit_caller_matters(of_start));
	assert_false(visit_caller_matters(later));
	load_as(4, true); /* serves its own modules, or those loaded with it */
	assert_false(visit_caller_matters(of_start));
	assert_true(visit_caller_matters(later));
	unload(4);
	assert_false(visit_caller_matters(later));
	load_as(5, true);
	visit_started();
	assert_true(visit_caller_matters(of_start));
	assert_true(visit_caller_matters(later));
}

/* When the list may not be walked, as in the child of a fork. */
static void test_unasked(void **state)
{
	load(3);
	may_ask = false;
	assert_string_equal(visit_one(false), "");
	assert_true(visit_caller_matters(files));
	may_ask = true;
	assert_string_equal(visit_one(true), "3");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test_setup(test_once, fresh_list),
	    cmocka_unit_test_setup(test_unload, fresh_list),
	    cmocka_unit_test_setup(test_same_place, fresh_list),
	    cmocka_unit_test_setup(test_not_ready, fresh_list),
	    cmocka_unit_test_setup(test_again, fresh_list),
	    cmocka_unit_test_setup(test_nested, fresh_list),
	    cmocka_unit_test_setup(test_many, fresh_list),
	    cmocka_unit_test_setup(test_caller, fresh_list),
	    cmocka_unit_test_setup(test_unasked, fresh_list),
	};

	visit_init(&watcher);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
