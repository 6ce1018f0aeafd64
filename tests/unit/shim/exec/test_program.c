/* test_program.c - what kind of program a file is. The test makes the files byte by byte, also
 * damaged ones. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <elf.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "exec/program.h"

#if defined(__x86_64__)
#define MACHINE EM_X86_64
#else
#define MACHINE EM_AARCH64
#endif

#define LOADER "/lib64/ld-linux-x86-64.so.2"

static char folder[] = "/tmp/whyoom-look-XXXXXX";
static char path[200];

static int begin(void **state)
{
	return mkdtemp(folder) ? 0 : -1;
}

static int end(void **state)
{
	return rmdir(folder);
}

static void write_file(const char *name, const void *bytes, size_t size)
{
	int fd;

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0755);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, bytes, size), size);
	close(fd);
}

static struct program look(void)
{
	struct program out;

	program_examine(AT_FDCWD, path, 0, &out);
	return out;
}

/* An ELF file with these parts. */
struct image {
	Elf64_Ehdr head;
	Elf64_Phdr segments[3];
	Elf64_Dyn dynamic[6];
	char interpreter[64], strings[128];
	uint32_t hash[4];
	uint64_t bloom;
	uint32_t bucket, chain;
};

static uint32_t gnu_hash(const char *name)
{
	uint32_t h = 5381;

	for (; *name; name++)
		h = h * 33 + (uint8_t)*name;
	return h;
}

static struct image image_of(const char *interpreter, const char *needed, const char *exported)
{
	struct image i = {.head = {.e_type = ET_DYN,
			      .e_machine = MACHINE,
			      .e_phoff = offsetof(struct image, segments),
			      .e_phentsize = sizeof(Elf64_Phdr),
			      .e_phnum = 3}};
	uint32_t h = gnu_hash(exported ? exported : "nothing");
	const uint64_t at = 0x10000; /* the addresses differ from the offsets */

	memcpy(i.head.e_ident, ELFMAG, SELFMAG);
	i.head.e_ident[EI_CLASS] = ELFCLASS64;
	i.head.e_ident[EI_DATA] = ELFDATA2LSB;
	i.segments[0] = (Elf64_Phdr){.p_type = PT_LOAD, .p_vaddr = at, .p_filesz = sizeof(i)};
	if (interpreter) {
		strcpy(i.interpreter, interpreter);
		i.segments[1] = (Elf64_Phdr){.p_type = PT_INTERP,
		    .p_offset = offsetof(struct image, interpreter),
		    .p_filesz = strlen(interpreter) + 1};
	}
	i.segments[2] = (Elf64_Phdr){.p_type = PT_DYNAMIC,
	    .p_offset = offsetof(struct image, dynamic),
	    .p_filesz = sizeof(i.dynamic)};
	strcpy(i.strings + 1, "libc.so.6");
	strcpy(i.strings + 20, needed ? needed : "libm.so.6");
	i.dynamic[0] = (Elf64_Dyn){DT_NEEDED, {1}};
	i.dynamic[1] = (Elf64_Dyn){DT_NEEDED, {20}};
	i.dynamic[2] = (Elf64_Dyn){DT_STRTAB, {at + offsetof(struct image, strings)}};
	i.dynamic[3] = (Elf64_Dyn){DT_GNU_HASH, {at + offsetof(struct image, hash)}};
	i.hash[0] = 1; /* buckets */
	i.hash[1] = 1; /* the first hashed symbol */
	i.hash[2] = 1; /* words of the filter */
	i.hash[3] = 6;
	i.bloom = 1ull << (h % 64) | 1ull << ((h >> 6) % 64);
	i.bucket = 1;
	i.chain = h | 1;
	return i;
}

static enum program_kind kind_of(const struct image *i)
{
	struct program p;

	write_file("program", i, sizeof(*i));
	p = look();
	unlink(path);
	return p.kind;
}

static enum program_kind kind(const char *interpreter, const char *needed, const char *exported)
{
	struct image i = image_of(interpreter, needed, exported);

	return kind_of(&i);
}

static void test_loaders(void **state)
{
	assert_int_equal(kind(LOADER, NULL, NULL), PROGRAM_PLAIN);
	assert_int_equal(kind("/gnu/store/x/lib/ld-linux-aarch64.so.1", NULL, NULL), PROGRAM_PLAIN);
	assert_int_equal(kind("/lib/ld-musl-x86_64.so.1", NULL, NULL), PROGRAM_MUSL);
	assert_int_equal(kind("/system/bin/linker64", NULL, NULL), PROGRAM_LOADER);
	assert_int_equal(kind(NULL, NULL, NULL), PROGRAM_STATIC);
}

static void test_machines(void **state)
{
	struct image i = image_of(LOADER, NULL, NULL);

	i.head.e_machine = EM_S390;
	assert_int_equal(kind_of(&i), PROGRAM_MACHINE);
	i = image_of(LOADER, NULL, NULL);
	i.head.e_ident[EI_CLASS] = ELFCLASS32;
	assert_int_equal(kind_of(&i), PROGRAM_MACHINE);
}

static void test_sanitizers(void **state)
{
	static const char *const needed[] = {"libasan.so.8", "libtsan.so.2", "liblsan.so.0",
	    "libclang_rt.asan-x86_64.so", "libhwasan.so.0"};
	static const char *const inside[] = {
	    "__asan_init", "__tsan_init", "__msan_init", "__lsan_init", "mcheck_pedantic"};
	struct image i;
	struct program p;

	for (size_t n = 0; n < sizeof(needed) / sizeof(needed[0]); n++) {
		i = image_of(LOADER, needed[n], NULL);
		write_file("program", &i, sizeof(i));
		p = look();
		unlink(path);
		assert_int_equal(p.kind, PROGRAM_SANITIZER_LIBRARY);
		assert_string_equal(p.text, needed[n]);
	}
	assert_int_equal(kind(LOADER, "libubsan.so.1", NULL), PROGRAM_PLAIN);
	assert_int_equal(kind(LOADER, "libasan.so.8:x", NULL), PROGRAM_SANITIZER_UNNAMED);
	for (size_t n = 0; n < sizeof(inside) / sizeof(inside[0]); n++)
		assert_int_equal(kind(LOADER, NULL, inside[n]), PROGRAM_SANITIZED);
	assert_int_equal(kind(LOADER, NULL, "__asan_initialised"), PROGRAM_PLAIN);
	assert_true(program_is_runtime("/usr/lib/libasan.so.8", 21));
	assert_false(program_is_runtime("/usr/lib/libasan.so.8", 12));
	assert_false(program_is_runtime("/libasan.so/a.so", 16));
}

/* Any content of the file gives an answer. */
static void test_damaged(void **state)
{
	struct image i;

	for (size_t n = 0; n < sizeof(i); n += 4)
		for (int by = 0; by < 2; by++) {
			i = image_of(LOADER, "libasan.so.8", "__asan_init");
			memset((char *)&i + n, by ? 0xff : 0, 4);
			write_file("program", &i, sizeof(i));
			look();
		}
	for (size_t n = 0; n < sizeof(i); n += 7) {
		write_file("program", &i, n);
		look();
	}
	unlink(path);
}

static void test_scripts(void **state)
{
	struct image i = image_of("/lib/ld-musl-x86_64.so.1", NULL, NULL);
	struct program p;
	char target[200], line[600];

	write_file("musl", &i, sizeof(i));
	strcpy(target, path);
	snprintf(line, sizeof(line), "#! \t%s -x\n", target);
	write_file("one", line, strlen(line));
	p = look();
	assert_int_equal(p.kind, PROGRAM_MUSL);
	assert_string_equal(p.path, target);
	snprintf(line, sizeof(line), "#!%s", path);
	write_file("two", line, strlen(line));
	p = look();
	assert_int_equal(p.kind, PROGRAM_MUSL);
	assert_string_equal(p.path, target);
	write_file("three", "#!", 2);
	assert_int_equal(look().kind, PROGRAM_PLAIN);
	write_file("three", "echo\n", 5);
	assert_int_equal(look().kind, PROGRAM_PLAIN);
	memset(line, 'a', sizeof(line));
	memcpy(line, "#!/", 3);
	write_file("three", line, sizeof(line));
	assert_int_equal(look().kind, PROGRAM_PLAIN);
	snprintf(line, sizeof(line), "#!%s/four", folder); /* itself */
	write_file("four", line, strlen(line));
	assert_int_equal(look().kind, PROGRAM_PLAIN);
	for (const char *name = "musl\0one\0two\0three\0four\0"; *name; name += strlen(name) + 1) {
		snprintf(path, sizeof(path), "%s/%s", folder, name);
		unlink(path);
	}
}

static void set_age(time_t seconds)
{
	const struct timespec times[2] = {{.tv_sec = seconds}, {.tv_sec = seconds}};

	assert_int_equal(utimensat(AT_FDCWD, path, times, 0), 0);
}

/* Other bytes in the same file are another program, even with the same length. */
static void test_changed(void **state)
{
	struct image one = image_of(LOADER, NULL, NULL), two = image_of(NULL, NULL, NULL);

	for (int round = 0; round < 3; round++) {
		write_file("program", &one, sizeof(one));
		set_age(1000000000 + round);
		assert_int_equal(look().kind, PROGRAM_PLAIN);
		assert_int_equal(look().kind, PROGRAM_PLAIN);
		write_file("program", &two, sizeof(two));
		set_age(1000000000 + round);
		assert_int_equal(look().kind, PROGRAM_STATIC);
	}
	unlink(path);
}

static void test_descriptors(void **state)
{
	struct image i = image_of(NULL, NULL, NULL);
	struct program p;
	int fd, dir;

	write_file("program", &i, sizeof(i));
	fd = open(path, O_PATH);
	dir = open(folder, O_RDONLY | O_DIRECTORY);
	program_examine(fd, "", AT_EMPTY_PATH, &p);
	assert_int_equal(p.kind, PROGRAM_STATIC);
	program_examine(dir, "program", 0, &p);
	assert_int_equal(p.kind, PROGRAM_STATIC);
	program_examine(dir, "", AT_EMPTY_PATH, &p);
	assert_int_equal(p.kind, PROGRAM_PLAIN);
	program_examine(AT_FDCWD, "/nowhere/at/all", 0, &p);
	assert_int_equal(p.kind, PROGRAM_PLAIN);
	assert_string_equal(p.path, "/nowhere/at/all");
	close(fd);
	close(dir);
	unlink(path);
}

static void test_search(void **state)
{
	char out[200], small[8], list[400];
	struct image i = image_of(NULL, NULL, NULL);

	write_file("program", &i, sizeof(i));
	snprintf(list, sizeof(list), "/nowhere:%s:/bin", folder);
	assert_true(program_search("program", list, out, sizeof(out)));
	assert_string_equal(out, path);
	assert_false(program_search("program", "/nowhere", out, sizeof(out)));
	assert_false(program_search("program", list, small, sizeof(small)));
	assert_false(program_search("", list, out, sizeof(out)));
	assert_true(program_search("./program", "/nowhere", out, sizeof(out)));
	assert_string_equal(out, "./program");
	assert_true(program_search("sh", NULL, out, sizeof(out)));
	assert_string_equal(out, "/bin/sh");
	chmod(path, 0);
	if (getuid())
		assert_false(program_search("program", list, out, sizeof(out)));
	unlink(path);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_loaders),
	    cmocka_unit_test(test_machines),
	    cmocka_unit_test(test_sanitizers),
	    cmocka_unit_test(test_damaged),
	    cmocka_unit_test(test_scripts),
	    cmocka_unit_test(test_changed),
	    cmocka_unit_test(test_descriptors),
	    cmocka_unit_test(test_search),
	};

	return cmocka_run_group_tests(tests, begin, end);
}
