/* usurp.c - puts a malloc of its own into the slots of all modules but the C library's, as tools do
 * that attach themselves. */
#include <elf.h>
#include <link.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#if defined(__x86_64__)
#define JUMP_SLOT R_X86_64_JUMP_SLOT
#define GLOB_DAT R_X86_64_GLOB_DAT
#else
#define JUMP_SLOT R_AARCH64_JUMP_SLOT
#define GLOB_DAT R_AARCH64_GLOB_DAT
#endif

void plugin_usurp(void);

static void *theirs(size_t size)
{
	return calloc(1, size);
}

static void change(struct dl_phdr_info *info, const ElfW(Rela) * r, size_t count,
    const ElfW(Sym) * symbols, const char *strings)
{
	long page = sysconf(_SC_PAGESIZE);

	for (size_t i = 0; r && i < count; i++) {
		unsigned type = (unsigned)ELF64_R_TYPE(r[i].r_info);
		char *slot = (char *)(info->dlpi_addr + r[i].r_offset);

		if ((type != JUMP_SLOT && type != GLOB_DAT) ||
		    strcmp(strings + symbols[ELF64_R_SYM(r[i].r_info)].st_name, "malloc") != 0)
			continue;
		mprotect((void *)((unsigned long)slot & -(unsigned long)page), (size_t)page,
		    PROT_READ | PROT_WRITE);
		*(void **)(void *)slot = (void *)theirs;
	}
}

static int each(struct dl_phdr_info *info, size_t size, void *data)
{
	const ElfW(Dyn) *d = NULL;
	const ElfW(Sym) *symbols = NULL;
	const ElfW(Rela) * tables[2] = {NULL, NULL};
	size_t bytes[2] = {0, 0};
	const char *strings = NULL;

	if (strstr(info->dlpi_name, "ld-linux") || strstr(info->dlpi_name, "libc.so") ||
	    strstr(info->dlpi_name, "whyoom") || strstr(info->dlpi_name, "vdso"))
		return 0;
	for (int i = 0; i < info->dlpi_phnum; i++)
		if (info->dlpi_phdr[i].p_type == PT_DYNAMIC)
			d = (const void *)(info->dlpi_addr + info->dlpi_phdr[i].p_vaddr);
	for (; d && d->d_tag; d++)
		switch (d->d_tag) {
		case DT_SYMTAB:
			symbols = (const void *)d->d_un.d_ptr;
			break;
		case DT_STRTAB:
			strings = (const void *)d->d_un.d_ptr;
			break;
		case DT_JMPREL:
			tables[0] = (const void *)d->d_un.d_ptr;
			break;
		case DT_PLTRELSZ:
			bytes[0] = d->d_un.d_val;
			break;
		case DT_RELA:
			tables[1] = (const void *)d->d_un.d_ptr;
			break;
		case DT_RELASZ:
			bytes[1] = d->d_un.d_val;
			break;
		}
	for (int t = 0; symbols && strings && t < 2; t++)
		change(info, tables[t], bytes[t] / sizeof(ElfW(Rela)), symbols, strings);
	return 0;
}

void plugin_usurp(void)
{
	dl_iterate_phdr(each, NULL);
}
