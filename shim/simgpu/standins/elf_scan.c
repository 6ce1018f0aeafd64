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

static void scan_symbols(
    const struct image *image, const uint64_t *tags, const struct elf_visitor *v)
{
	const uint32_t *hash;
	uint64_t count = 0;

	/* in a table with the GNU hash, defined symbols come last */
	if (tags[1] && (hash = bytes_at(image, tags[1], 8)))
		count = hash[1];
	else if (tags[0] && (hash = bytes_at(image, tags[0], 8)))
		count = hash[1];
	for (uint64_t i = 1; i < count; i++) {
		const ElfW(Sym) *symbol =
		    bytes_at(image, tags[2] + i * sizeof(*symbol), sizeof(*symbol));
		const ElfW(Half) * index;
		const char *name, *library = NULL, *version = NULL;

		if (!symbol)
			return;
		if (symbol->st_shndx != SHN_UNDEF || !symbol->st_name)
			continue;
		name = string_at(image, symbol->st_name);
		if (!name)
			return;
		index =
		    tags[3] ? bytes_at(image, tags[3] + i * sizeof(*index), sizeof(*index)) : NULL;
		if (index && (*index & 0x7fff) > 1)
			version_of(image, tags[4], tags[5], *index & 0x7fff, &library, &version);
		v->undefined(v->data, name, library, version);
	}
}

static bool scan(struct image *image, const struct elf_visitor *v)
{
	const ElfW(Ehdr) *head = (const void *)image->base;
	const ElfW(Dyn) *dynamic = NULL;
	uint64_t count = 0, strings = 0, tags[6] = {0};

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
				dynamic = (const void *)(image->base + p->p_offset);
				count = p->p_filesz / sizeof(*dynamic);
			}
		}
	for (uint64_t i = 0; i < count && dynamic[i].d_tag != DT_NULL; i++) {
		uint64_t value = dynamic[i].d_un.d_val;

		switch (dynamic[i].d_tag) {
		case DT_STRTAB:
			strings = value;
			break;
		case DT_STRSZ:
			image->strings_size = value;
			break;
		case DT_HASH:
			tags[0] = value;
			break;
		case DT_GNU_HASH:
			tags[1] = value;
			break;
		case DT_SYMTAB:
			tags[2] = value;
			break;
		case DT_VERSYM:
			tags[3] = value;
			break;
		case DT_VERNEED:
			tags[4] = value;
			break;
		case DT_VERNEEDNUM:
			tags[5] = value;
			break;
		default:
			break;
		}
	}
	image->strings = strings ? bytes_at(image, strings, image->strings_size) : NULL;
	if (!image->strings)
		return false;
	for (uint64_t i = 0; i < count && dynamic[i].d_tag != DT_NULL; i++) {
		const char *s = string_at(image, dynamic[i].d_un.d_val);

		if (s && dynamic[i].d_tag == DT_NEEDED && v->needs)
			v->needs(v->data, s);
		if (s && (dynamic[i].d_tag == DT_RPATH || dynamic[i].d_tag == DT_RUNPATH) &&
		    v->path)
			v->path(v->data, s);
	}
	if (v->undefined && tags[2])
		scan_symbols(image, tags, v);
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
