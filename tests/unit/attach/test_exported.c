/* Functions of loaded modules are found where the dynamic loader says they are, and what is no
 * module is refused, as a cut or a senseless one is. */
#include <dlfcn.h>
#include <elf.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "attach/exported.h"
#include "attach/target.h"

#define PAGES 16384u

static uint64_t base_of(const char *beginning)
{
	struct target self = {.pid = getpid()};
	const struct target_map *map;
	uint64_t base;

	assert_int_equal(target_read_maps(&self), 0);
	map = target_module(&self, beginning);
	base = map ? map->lo : 0;
	target_fini(&self);
	assert_true(base);
	return base;
}

static void test_libc(void **state)
{
	static const char *const names[] = {
	    "malloc", "free", "calloc", "realloc", "dlopen", "dl_iterate_phdr", "fork", "syscall"};
	void *libc = dlopen("libc.so.6", RTLD_NOW | RTLD_NOLOAD);
	struct exported_function f;
	struct exported e;

	(void)state;
	assert_non_null(libc);
	assert_int_equal(exported_open(getpid(), base_of("libc.so.6"), &e), 0);
	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
		assert_true(exported_find(&e, names[i], &f));
		assert_int_equal(f.address, (uintptr_t)dlsym(libc, names[i]));
		assert_true(f.bytes);
	}
	assert_false(exported_find(&e, "no_such_function", &f));
	assert_false(exported_find(&e, "", &f));
	/* What a module only uses is not found in it. */
	assert_int_equal(exported_open(getpid(), base_of("libcmocka"), &e), 0);
	assert_true(exported_find(&e, "_cmocka_run_group_tests", &f));
	assert_false(exported_find(&e, "malloc", &f));
}

static void test_no_module(void **state)
{
	struct exported e;

	(void)state;
	assert_int_equal(exported_open(getpid(), 0, &e), -ENOEXEC);
	assert_int_equal(
	    exported_open(getpid(), (uintptr_t)test_no_module & ~4095ull, &e), -ENOEXEC);
}

/* A module's first pages with a few words turned over: it may be refused or not, but answers come
 * back. */
static void test_damaged(void **state)
{
	unsigned char *copy =
	    mmap(NULL, PAGES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	const unsigned char *from = (const unsigned char *)(uintptr_t)base_of("libc.so.6");
	unsigned refused = 0;

	(void)state;
	assert_true(copy != MAP_FAILED);
	srandom(1);
	for (unsigned i = 0; i < 2000; i++) {
		struct exported_function f;
		struct exported e;

		memcpy(copy, from, 4096);
		for (unsigned k = 0; k < 4; k++)
			copy[(size_t)random() % 1024] = (unsigned char)random();
		if (exported_open(getpid(), (uintptr_t)copy, &e))
			refused++;
		else
			exported_find(&e, "malloc", &f);
	}
	assert_true(refused > 100);
	munmap(copy, PAGES);
}

/* A table of one bucket whose chain never ends, in a module made by hand. */
static void test_endless_chain(void **state)
{
	static struct {
		Elf64_Ehdr e;
		Elf64_Phdr p[2];
		Elf64_Dyn d[5];
		uint32_t hash[4];
		uint64_t bloom;
		uint32_t bucket, chain[100000];
		Elf64_Sym table[1];
		char names[8];
	} module;
	uint64_t base = (uintptr_t)&module;
	struct exported_function f;
	struct exported e;

	(void)state;
	memcpy(module.e.e_ident, ELFMAG, SELFMAG);
	module.e.e_ident[EI_CLASS] = ELFCLASS64;
#if defined(__x86_64__)
	module.e.e_machine = EM_X86_64;
#else
	module.e.e_machine = EM_AARCH64;
#endif
	module.e.e_phentsize = sizeof(Elf64_Phdr);
	module.e.e_phnum = 2;
	module.e.e_phoff = offsetof(__typeof__(module), p);
	module.p[0] = (Elf64_Phdr){.p_type = PT_LOAD};
	module.p[1] = (Elf64_Phdr){.p_type = PT_DYNAMIC,
	    .p_vaddr = offsetof(__typeof__(module), d),
	    .p_memsz = sizeof(module.d)};
	module.d[0] = (Elf64_Dyn){DT_SYMTAB, {offsetof(__typeof__(module), table)}};
	module.d[1] = (Elf64_Dyn){DT_STRTAB, {offsetof(__typeof__(module), names)}};
	module.d[2] = (Elf64_Dyn){DT_STRSZ, {sizeof(module.names)}};
	module.d[3] = (Elf64_Dyn){DT_GNU_HASH, {offsetof(__typeof__(module), hash)}};
	module.hash[0] = 1;
	module.hash[2] = 1;
	assert_int_equal(exported_open(getpid(), base, &e), 0);
	assert_false(exported_find(&e, "malloc", &f));
	module.hash[0] = 0;
	assert_int_equal(exported_open(getpid(), base, &e), -ENOEXEC);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_libc),
	    cmocka_unit_test(test_no_module),
	    cmocka_unit_test(test_damaged),
	    cmocka_unit_test(test_endless_chain),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
