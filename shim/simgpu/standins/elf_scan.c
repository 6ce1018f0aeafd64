/*
 * elf_scan.c - see elf_scan.h. Uses program headers alone, as the loader does, and checks every
 * offset against the file's size.
 */
#include "simgpu/standins/elf_scan.h"

#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "base/sys.h"

#if defined(__x86_64__)
#define MACHINE EM_X86_64
#else
#define MACHINE EM_AARCH64
#endif

struct image {
	const char *base;
	uint64_t size;
	const ElfW(Phdr) * headers;
	unsigned count;
	const ElfW(Dyn) * dynamic;
	uint64_t dynamic_count;
	const char *strings;
	uint64_t strings_size;
};

/* Returns the file's `n` bytes at an address; NULL: the file has fewer. */
static const void *bytes_at(const struct image *image, uint64_t address, uint64_t n)
{
	for (unsigned i = 0; i < image->count; i++) {
		const ElfW(Phdr) *p = &image->headers[i];
		uint64_t from;

		if (p->p_type != PT_LOAD || address < p->p_vaddr ||
		    address - p->p_vaddr >= p->p_filesz || n > p->p_filesz - (address - p->p_vaddr))
			continue;
		from = p->p_offset + (address - p->p_vaddr);
		return from <= image->size && n <= image->size - from ? image->base + from : NULL;
	}
	return NULL;
}

static const char *string_at(const struct image *image, uint64_t offset)
{
	const char *s;

	if (offset >= image->strings_size)
		return NULL;
	s = image->strings + offset;
	return memchr(s, 0, image->strings_size - offset) ? s : NULL;
}

/* Finds library and version of a version index. */
static bool version_of(const struct image *image, uint64_t address, uint64_t count, unsigned index,
    const char **library, const char **version)
{
	for (uint64_t i = 0; i < count; i++) {
		const ElfW(Verneed) *need = bytes_at(image, address, sizeof(*need));
		uint64_t aux_at;

		if (!need)
			return false;
		aux_at = address + need->vn_aux;
		for (unsigned k = 0; k < need->vn_cnt; k++) {
			const ElfW(Vernaux) *aux = bytes_at(image, aux_at, sizeof(*aux));

			if (!aux)
				return false;
			if ((aux->vna_other & 0x7fff) == index) {
				*library = string_at(image, need->vn_file);
				*version = string_at(image, aux->vna_name);
				return *library && *version;
			}
			aux_at += aux->vna_next;
		}
		address += need->vn_next;
	}
	return false;
}

/* Returns the value of the first entry of the dynamic section with a tag; 0: there is none. */
static uint64_t dynamic_value(const struct image *image, int64_t tag)
{
	for (uint64_t i = 0; i < image->dynamic_count; i++)
		if (image->dynamic[i].d_tag == tag)
			return image->dynamic[i].d_un.d_val;
	return 0;
}

static void scan_symbols(const struct image *image, const struct elf_visitor *v)
{
	uint64_t symbols = dynamic_value(image, DT_SYMTAB);
	uint64_t versions = dynamic_value(image, DT_VERSYM);
	uint64_t needed = dynamic_value(image, DT_VERNEED);
	uint64_t needed_count = dynamic_value(image, DT_VERNEEDNUM);
	uint64_t gnu_hash = dynamic_value(image, DT_GNU_HASH);
	uint64_t old_hash = dynamic_value(image, DT_HASH);
	const uint32_t *hash = gnu_hash ? bytes_at(image, gnu_hash, 8) : NULL;

	/* in a table with the GNU hash, defined symbols come last */
	if (!hash && old_hash)
		hash = bytes_at(image, old_hash, 8);
	for (uint64_t i = 1; symbols && hash && i < hash[1]; i++) {
		const ElfW(Sym) *symbol =
		    bytes_at(image, symbols + i * sizeof(*symbol), sizeof(*symbol));
		const ElfW(Half) * index;
		const char *name, *library = NULL, *version = NULL;

		if (!symbol)
			return;
		if (symbol->st_shndx != SHN_UNDEF || !symbol->st_name)
			continue;
		name = string_at(image, symbol->st_name);
		if (!name)
			return;
		index = versions ? bytes_at(image, versions + i * sizeof(*index), sizeof(*index))
				 : NULL;
		if (index && (*index & 0x7fff) > 1)
			version_of(
			    image, needed, needed_count, *index & 0x7fff, &library, &version);
		v->undefined(v->data, name, library, version);
	}
}

static bool scan(struct image *image, const struct elf_visitor *v)
{
	const ElfW(Ehdr) *head = (const void *)image->base;
	uint64_t strings;

	if (image->size < sizeof(*head) || memcmp(head->e_ident, ELFMAG, SELFMAG) ||
	    head->e_ident[EI_CLASS] != ELFCLASS64 || head->e_machine != MACHINE ||
	    head->e_phoff > image->size ||
	    (image->size - head->e_phoff) / sizeof(ElfW(Phdr)) < head->e_phnum)
		return false;
	image->headers = (const void *)(image->base + head->e_phoff);
	image->count = head->e_phnum;
	for (unsigned i = 0; i < image->count; i++)
		if (image->headers[i].p_type == PT_DYNAMIC) {
			const ElfW(Phdr) *p = &image->headers[i];

			if (p->p_offset <= image->size &&
			    p->p_filesz <= image->size - p->p_offset) {
				image->dynamic = (const void *)(image->base + p->p_offset);
				image->dynamic_count = p->p_filesz / sizeof(*image->dynamic);
			}
		}
	for (uint64_t i = 0; i < image->dynamic_count; i++)
		if (image->dynamic[i].d_tag == DT_NULL)
			image->dynamic_count = i;
	strings = dynamic_value(image, DT_STRTAB);
	image->strings_size = dynamic_value(image, DT_STRSZ);
	image->strings = strings ? bytes_at(image, strings, image->strings_size) : NULL;
	if (!image->strings)
		return false;
	for (uint64_t i = 0; i < image->dynamic_count; i++) {
		int64_t tag = image->dynamic[i].d_tag;
		const char *s = string_at(image, image->dynamic[i].d_un.d_val);

		if (s && tag == DT_NEEDED && v->needs)
			v->needs(v->data, s);
		if (s && (tag == DT_RPATH || tag == DT_RUNPATH) && v->path)
			v->path(v->data, s);
	}
	if (v->undefined)
		scan_symbols(image, v);
	return true;
}

bool elf_scan(const char *file, const struct elf_visitor *visitor)
{
	struct image image = {0};
	struct stat st;
	bool done;
	long p;
	int fd = sys_open(file, O_RDONLY, 0);

	if (fd < 0)
		return false;
	if (sys_call(SYS_fstat, fd, (long)&st, 0, 0, 0, 0) < 0 || !S_ISREG(st.st_mode) ||
	    st.st_size < 64) {
		sys_close(fd);
		return false;
	}
	p = sys_call(SYS_mmap, 0, (long)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	sys_close(fd);
	if (sys_failed(p))
		return false;
	image.base = (const char *)p;
	image.size = (uint64_t)st.st_size;
	done = scan(&image, visitor);
	sys_call(SYS_munmap, p, (long)st.st_size, 0, 0, 0, 0);
	return done;
}
