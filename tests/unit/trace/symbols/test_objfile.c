#include <elfutils/libdwfl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../../util/unit.h"
#include "../sample.h"
#include "trace/symbols/objfile.h"
#include "trace/symbols/symcache.h"
#include "util/map.h"

static struct sample sample;

static unsigned loads;

Dwfl_Module *__real_dwfl_report_elf(
    Dwfl *dwfl, const char *name, const char *path, int fd, GElf_Addr base, bool add_vaddr);
Dwfl_Module *__wrap_dwfl_report_elf(
    Dwfl *dwfl, const char *name, const char *path, int fd, GElf_Addr base, bool add_vaddr);

Dwfl_Module *__wrap_dwfl_report_elf(
    Dwfl *dwfl, const char *name, const char *path, int fd, GElf_Addr base, bool add_vaddr)
{
	loads++;
	return __real_dwfl_report_elf(dwfl, name, path, fd, base, add_vaddr);
}

static struct def_module module_of(const char *path)
{
	return (struct def_module){
	    .path = path, .build_id = sample.build_id, .build_id_bytes = sample.build_id_bytes};
}

/* How many functions the module's file has at sample.call; 0 if it is not found. */
static size_t found_in(const struct def_module *m)
{
	struct objfile_frame f[OBJFILE_FRAMES_MAX];
	struct objfile *o = objfile_open(m, NULL);
	size_t n = objfile_lookup(o, sample.call - 1, f);

	objfile_close(o);
	return n;
}

/* With DWARF: the inlined functions, each at its call's line. */
static void inlined_functions(void **state)
{
	struct def_module m = module_of(SAMPLE);
	struct objfile *o = objfile_open(&m, NULL);
	struct objfile_frame f[OBJFILE_FRAMES_MAX];

	assert_int_equal(objfile_lookup(o, sample.call - 1, f), 3);
	assert_string_equal(f[0].function, "sample_outer");
	assert_false(f[0].inlined);
	assert_int_equal(f[0].line, sample_line("/* OUTER */"));
	assert_string_equal(f[1].function, "middle");
	assert_true(f[1].inlined);
	assert_int_equal(f[1].line, sample_line("/* MIDDLE */"));
	assert_string_equal(f[2].function, "inner");
	assert_true(f[2].inlined);
	assert_int_equal(f[2].line, sample_line("/* INNER */"));
	for (int i = 0; i < 3; i++)
		assert_non_null(strstr(f[i].file, "sample.c"));
	assert_int_equal(objfile_lookup(o, 0x7fffffff0000, f), 0);
	assert_false(objfile_is_kept(o)); /* there is no store */
	objfile_close(o);
}

/* Only .symtab, only .dynsym: the names at least. */
static void without_debug_information(void **state)
{
	static const char *const commands[] = {"strip -g -o %2$s %1$s", "strip -s -o %2$s %1$s"};

	for (int i = 0; i < 2; i++) {
		struct objfile_frame f[OBJFILE_FRAMES_MAX];
		struct objfile *o;
		struct def_module m;
		char path[64];

		sample_copy(commands[i], path);
		m = module_of(path);
		o = objfile_open(&m, NULL);
		assert_int_equal(objfile_lookup(o, sample.call - 1, f), 1);
		assert_string_equal(f[0].function, "sample_outer");
		assert_null(f[0].file);
		assert_int_equal(objfile_lookup(o, sample.sink + sample.sink_size - 1, f), 1);
		assert_string_equal(f[0].function, "sample::sink");
		objfile_close(o);
		unlink(path);
	}
}

/* .gnu_debuglink, beside the file and in .debug, checked by its sum. */
static void separate_debug_information(void **state)
{
	for (int wrong = 0; wrong < 2; wrong++) {
		struct objfile_frame f[OBJFILE_FRAMES_MAX];
		struct objfile *o;
		struct def_module m;
		char path[64], command[400];

		sample_copy("objcopy --only-keep-debug %1$s %2$s.dbg && strip -g -o %2$s %1$s && "
			    "objcopy --add-gnu-debuglink=%2$s.dbg %2$s",
		    path);
		if (wrong) {
			snprintf(command, sizeof(command), "printf x >> %s.dbg", path);
			assert_int_equal(system(command), 0);
		}
		m = module_of(path);
		o = objfile_open(&m, NULL);
		assert_int_equal(objfile_lookup(o, sample.call - 1, f), wrong ? 1 : 3);
		objfile_close(o);
		snprintf(command, sizeof(command), "rm %s %s.dbg", path, path);
		assert_int_equal(system(command), 0);
	}
}

/* A copy that outlives the file. */
static const char *kept_text(const char *text)
{
	static struct intern texts;

	return text ? intern_text(&texts, intern_add(&texts, text, strlen(text))) : NULL;
}

/* The frames at sample.call, through the cache in a directory; and the number of loads of the
 * file. */
static size_t look_again(const struct def_module *m, struct objfile_frame *f, unsigned *loaded)
{
	struct symcache_store *store = symcache_store_open();
	struct objfile *o;
	size_t n;

	assert_non_null(store);
	loads = 0;
	o = objfile_open(m, store);
	assert_non_null(o);
	n = objfile_lookup(o, sample.call - 1, f);
	for (size_t i = 0; i < n; i++) {
		f[i].function = kept_text(f[i].function);
		f[i].file = kept_text(f[i].file);
	}
	objfile_close(o);
	symcache_store_close(store);
	*loaded = loads;
	return n;
}

/* A cached answer is not read from the file again, until its debug information comes or goes, or
 * the file changes. */
static void looked_up_once(void **state)
{
	char folder[] = "/tmp/whyoom-objfile-XXXXXX", path[64], command[400];
	struct objfile_frame f[OBJFILE_FRAMES_MAX];
	struct def_module m;
	unsigned loaded;

	assert_non_null(mkdtemp(folder));
	setenv("WHYOOM_CACHE", folder, 1);
	sample_copy("objcopy --only-keep-debug %1$s %2$s.later && strip -g -o %2$s %1$s && "
		    "objcopy --add-gnu-debuglink=%2$s.later %2$s && mv %2$s.later %2$s.away",
	    path);
	m = module_of(path);
	assert_int_equal(look_again(&m, f, &loaded), 1);
	assert_int_equal(loaded, 1);
	assert_int_equal(look_again(&m, f, &loaded), 1);
	assert_int_equal(loaded, 0);
	assert_string_equal(f[0].function, "sample_outer");
	assert_null(f[0].file);

	snprintf(command, sizeof(command), "mv %s.away %s.later", path, path);
	assert_int_equal(system(command), 0);
	assert_int_equal(look_again(&m, f, &loaded), 3);
	assert_int_equal(loaded, 1);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(look_again(&m, f, &loaded), 3);
		assert_int_equal(loaded, 0);
		assert_string_equal(f[2].function, "inner");
		assert_true(f[2].inlined);
		assert_int_equal(f[2].line, sample_line("/* INNER */"));
		assert_non_null(strstr(f[2].file, "sample.c"));
	}
	/* A new address is looked up beside it. */
	struct symcache_store *store = symcache_store_open();
	struct objfile *o = objfile_open(&m, store);
	assert_int_equal(loads, 0);
	assert_int_equal(objfile_lookup(o, sample.sink + sample.sink_size - 1, f), 1);
	assert_string_equal(f[0].function, "sample::sink");
	assert_int_equal(loads, 1);
	/* After it is closed: also if it is opened again at once. */
	assert_true(objfile_is_kept(o));
	objfile_close(o);
	o = objfile_open(&m, store);
	assert_int_equal(objfile_lookup(o, sample.sink + sample.sink_size - 1, f), 1);
	assert_int_equal(loads, 1);
	objfile_close(o);
	symcache_store_close(store);

	snprintf(command, sizeof(command), "rm %s.later && touch %s", path, path);
	assert_int_equal(system(command), 0);
	assert_int_equal(look_again(&m, f, &loaded), 1);
	assert_int_equal(loaded, 1);
	snprintf(command, sizeof(command), "rm -r %s %s", path, folder);
	assert_int_equal(system(command), 0);
	unsetenv("WHYOOM_CACHE");
}

static void another_file_is_not_used(void **state)
{
	uint8_t other[20] = {1, 2, 3};
	struct def_module m = module_of(SAMPLE);
	char path[64];
	struct stat st;

	m.build_id = other;
	m.build_id_bytes = sizeof(other);
	assert_int_equal(found_in(&m), 0);

	m = module_of("/nonexistent/libx.so");
	assert_int_equal(found_in(&m), 0);
	m = module_of("linux-vdso.so.1");
	assert_int_equal(found_in(&m), 0);
	m = module_of("/dev/zero"); /* is never read */
	assert_int_equal(found_in(&m), 0);

	/* Not ELF at all. */
	sample_copy("head -c 100 /dev/urandom > %2$s; : %1$s", path);
	m = module_of(path);
	assert_int_equal(found_in(&m), 0);
	/* Without a build id, size and time decide. */
	m = (struct def_module){.path = SAMPLE};
	assert_int_equal(stat(SAMPLE, &st), 0);
	m.file_size = (uint64_t)st.st_size;
	m.mtime_ns = (uint64_t)st.st_mtim.tv_sec * 1000000000u + (uint64_t)st.st_mtim.tv_nsec;
	assert_int_equal(found_in(&m), 3);
	m.mtime_ns++;
	assert_int_equal(found_in(&m), 0);
	unlink(path);
}

static void demangles(void **state)
{
	static const struct {
		const char *mangled, *readable;
	} cases[] = {
	    {"_ZN6sample4sinkEi", "sample::sink"},
	    {"_ZN6sample5cloneEi.part.0", "sample::clone"},
	    {"_RNvCs1234_7mycrate3foo", "mycrate::foo"},
	    {"_ZN4core3fmt5Write9write_fmt17h0123456789abcdefE", "core::fmt::Write::write_fmt"},
	    {"_ZNSt6vectorIiSaIiEE9push_backERKi",
		"std::vector<int, std::allocator<int> >::push_back"},
	};
	char *text;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		text = objfile_demangle(cases[i].mangled);
		assert_non_null(text);
		assert_string_equal(text, cases[i].readable);
		free(text);
	}
	assert_null(objfile_demangle("main"));
	assert_null(objfile_demangle(""));
	assert_null(objfile_demangle("_"));
	assert_null(objfile_demangle("_Zrubbish"));
	/* A name made to be endless. */
	text = calloc(1, 100001);
	memset(text, 'N', 100000);
	memcpy(text, "_Z", 2);
	assert_null(objfile_demangle(text));
	free(text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(inlined_functions),
	    cmocka_unit_test(without_debug_information),
	    cmocka_unit_test(separate_debug_information),
	    cmocka_unit_test(looked_up_once),
	    cmocka_unit_test(another_file_is_not_used),
	    cmocka_unit_test(demangles),
	};

	sample_read(SAMPLE, &sample);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
