#include <elf.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../../util/unit.h"
#include "../scratch.h"
#include "cmd/run/program.h"

#if defined(__x86_64__)
#define MACHINE EM_X86_64
#else
#define MACHINE EM_AARCH64
#endif

/* A program that was never linked: headers, an interpreter's name, one needed library. */
struct image {
	Elf64_Ehdr eh;
	Elf64_Phdr ph[3];
	char interpreter[64];
	Elf64_Dyn dynamic[4];
	char strings[200000]; /* several reads long */
};

static struct image m;

static void make(const char *interpreter, const char *needed)
{
	memset(&m, 0, sizeof(m));
	memcpy(m.eh.e_ident, ELFMAG, SELFMAG);
	m.eh.e_ident[EI_CLASS] = ELFCLASS64;
	m.eh.e_ident[EI_DATA] = ELFDATA2LSB;
	m.eh.e_type = ET_EXEC;
	m.eh.e_machine = MACHINE;
	m.eh.e_phoff = offsetof(struct image, ph);
	m.eh.e_phentsize = sizeof(Elf64_Phdr);
	m.eh.e_phnum = 3;
	m.ph[0] = (Elf64_Phdr){.p_type = PT_LOAD, .p_vaddr = 0x10000, .p_filesz = sizeof(m)};
	if (interpreter) {
		strcpy(m.interpreter, interpreter);
		m.ph[1] = (Elf64_Phdr){.p_type = PT_INTERP,
		    .p_offset = offsetof(struct image, interpreter),
		    .p_filesz = strlen(interpreter) + 1};
	}
	if (needed) {
		strcpy(m.strings + 1, needed);
		m.ph[2] = (Elf64_Phdr){.p_type = PT_DYNAMIC,
		    .p_offset = offsetof(struct image, dynamic),
		    .p_filesz = sizeof(m.dynamic)};
		m.dynamic[0] = (Elf64_Dyn){.d_tag = DT_NEEDED, .d_un.d_val = 1};
		m.dynamic[1] = (Elf64_Dyn){
		    .d_tag = DT_STRTAB, .d_un.d_ptr = 0x10000 + offsetof(struct image, strings)};
		m.dynamic[2] = (Elf64_Dyn){.d_tag = DT_STRSZ, .d_un.d_val = sizeof(m.strings)};
	}
}

static enum run_program_kind kind_of(size_t bytes)
{
	struct run_program p;

	scratch_bytes("program", &m, bytes);
	chmod(scratch("program"), 0755);
	run_program_look(scratch("program"), &p);
	assert_int_equal(p.error, 0);
	return p.kind;
}

static void kinds(void **state)
{
	make("/lib64/ld-linux-x86-64.so.2", "libc.so.6");

	assert_int_equal(kind_of(sizeof(m)), RUN_PROGRAM_SEEN);
	/* a sanitizer's runtime: a library or not, its entry is named; each of its positions is
	 * checked */
	for (size_t at = 20; at + 16 < sizeof(m.strings); at += 65517 / 3) {
		make("/lib64/ld-linux-x86-64.so.2", "libc.so.6");
		strcpy(m.strings + at, "__tsan_init");
		assert_int_equal(kind_of(sizeof(m)), RUN_PROGRAM_ASAN);
		m.strings[at - 1] = 'x';
		assert_int_equal(kind_of(sizeof(m)), RUN_PROGRAM_SEEN);
	}
	for (size_t at = 65536 - 16; at < 65536 + 2; at++) {
		make("/lib64/ld-linux-x86-64.so.2", "libc.so.6");
		strcpy(m.strings + at, "__hwasan_init");
		assert_int_equal(kind_of(sizeof(m)), RUN_PROGRAM_ASAN);
	}
	make("/lib64/ld-linux-x86-64.so.2", "libasan.so.8"); /* no part of it is used */
	assert_int_equal(kind_of(sizeof(m)), RUN_PROGRAM_ASAN);
	make("/lib/ld-musl-x86_64.so.1", "libc.so");
	assert_int_equal(kind_of(sizeof(m)), RUN_PROGRAM_MUSL);
	make(NULL, NULL);
	assert_int_equal(kind_of(sizeof(m)), RUN_PROGRAM_STATIC);
	make("/lib/ld.so", NULL);
	m.eh.e_machine = EM_S390;
	assert_int_equal(kind_of(sizeof(m)), RUN_PROGRAM_OTHER);
	m.eh.e_machine = MACHINE;
	m.eh.e_ident[EI_CLASS] = ELFCLASS32;
	assert_int_equal(kind_of(sizeof(m)), RUN_PROGRAM_OTHER);
}

/* The file is only looked at, whatever its contents. */
static void damaged(void **state)
{
	make("/lib/ld.so", "libc.so.6");

	for (size_t bytes = 0; bytes < 2000; bytes += 7)
		kind_of(bytes);
	m.eh.e_phoff = UINT64_MAX - 10;
	kind_of(sizeof(m));
	m.eh.e_phoff = offsetof(struct image, ph);
	m.eh.e_phnum = UINT16_MAX;
	kind_of(sizeof(m));
	m.ph[1].p_offset = UINT64_MAX;
	m.ph[1].p_filesz = UINT64_MAX;
	m.ph[2].p_filesz = UINT64_MAX;
	m.ph[2].p_offset = UINT64_MAX - 3;
	kind_of(sizeof(m));
	m.dynamic[0].d_un.d_val = UINT64_MAX;
	m.ph[2].p_offset = offsetof(struct image, dynamic);
	kind_of(sizeof(m));
}

static void scripts(void **state)
{
	make(NULL, NULL);
	char text[PATH_MAX + 16];
	struct run_program p;

	kind_of(sizeof(m));
	snprintf(text, sizeof(text), "#! \t%s -x\n", scratch("program"));
	scratch_file("script", text);
	chmod(scratch("script"), 0755);
	run_program_look(scratch("script"), &p);
	assert_int_equal(p.kind, RUN_PROGRAM_STATIC); /* its interpreter is */
	assert_string_equal(p.file, scratch("program"));
	assert_string_equal(p.path, scratch("script"));
	snprintf(text, sizeof(text), "#!%s\n", scratch("loop"));
	scratch_file("loop", text);
	chmod(scratch("loop"), 0755);
	run_program_look(scratch("loop"), &p); /* ends */
	assert_int_equal(p.kind, RUN_PROGRAM_SEEN);
}

static void search(void **state)
{
	struct run_program p;
	char path[PATH_MAX];

	mkdir(scratch("a"), 0755);
	scratch_file("a/tool", "#!/bin/sh\n"); /* not executable: the next one is taken */
	scratch_file("b/tool", "#!/bin/sh\n");
	scratch_file("b/plain", "");
	chmod(scratch("b/tool"), 0755);
	snprintf(path, sizeof(path), "%s:/no/such:%s", scratch("a"), scratch("b"));
	setenv("PATH", path, 1);
	run_program_look("tool", &p);
	assert_int_equal(p.error, 0);
	assert_string_equal(p.path, scratch("b/tool"));
	run_program_look("plain", &p);
	assert_int_equal(p.error, EACCES);
	run_program_look("absent", &p);
	assert_int_equal(p.error, ENOENT);
	run_program_look(scratch(""), &p); /* a directory */
	assert_int_equal(p.error, EACCES);
	run_program_look("", &p);
	assert_int_not_equal(p.error, 0);
}

static void words(void **state)
{
	assert_null(run_program_warning(RUN_PROGRAM_SEEN));
	for (int k = RUN_PROGRAM_STATIC; k <= RUN_PROGRAM_OTHER; k++)
		assert_non_null(run_program_warning((enum run_program_kind)k));
	assert_false(run_program_preloadable(RUN_PROGRAM_MUSL));
	assert_false(run_program_preloadable(RUN_PROGRAM_ASAN));
	assert_true(run_program_preloadable(RUN_PROGRAM_STATIC)); /* for its children */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    scratch_test(kinds),
	    scratch_test(damaged),
	    scratch_test(scripts),
	    scratch_test(search),
	    scratch_test(words),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
