/*
 * elf_write.c - see elf_write.h. Two segments: read-only data with code, and the dynamic section.
 * Defines each version that a function has, as the loader insists on it when another object needs
 * that version.
 */
#include "simgpu/standins/elf_write.h"

#include <elf.h>
#include <link.h>
#include <string.h>

#include "simgpu/device/heap.h"

#define PAGE 65536ull /* the largest page of aarch64; a multiple of all others */
#define VERSIONS 16
#define CODE 16 /* bytes of a function */

struct layout {
	uint64_t hash, symbols, strings, versions, definitions, code, end; /* offsets = addresses */
	uint64_t dynamic, size;
	uint64_t strings_size;
};

static uint32_t elf_hash(const char *name)
{
	uint32_t h = 0, g;

	for (; *name; name++) {
		h = (h << 4) + (unsigned char)*name;
		g = h & 0xf0000000;
		h = (h ^ g >> 24) & ~g;
	}
	return h;
}

static uint64_t align_up(uint64_t n)
{
	return (n + 15) & ~15ull;
}

/* Returns the version's number in the table, from 2 on; 1: no version. */
static unsigned version_index(const char **versions, unsigned *count, const char *version)
{
	if (!version)
		return 1;
	for (unsigned i = 0; i < *count; i++)
		if (!strcmp(versions[i], version))
			return i + 2;
	if (*count == VERSIONS)
		return 1;
	versions[(*count)++] = version;
	return *count + 1;
}

static void write_code(
    unsigned char *at, uint64_t address, const struct elf_function *f, uint64_t text)
{
#if defined(__x86_64__)
	static const unsigned char landing[] = {0xf3, 0x0f, 0x1e, 0xfa};

	memcpy(at, landing, 4); /* endbr64 */
	if (f->text) {
		int32_t far = (int32_t)(text - (address + 11));

		memcpy(at + 4, "\x48\x8d\x05", 3); /* lea far(%rip), %rax */
		memcpy(at + 7, &far, 4);
		at[11] = 0xc3;
	} else {
		at[4] = 0xb8; /* mov $result, %eax */
		memcpy(at + 5, &f->result, 4);
		at[9] = 0xc3;
	}
#else
	uint32_t words[4] = {0xd503245f, 0, 0, 0xd65f03c0}; /* bti c; ...; ret */

	if (f->text) {
		uint32_t far = (uint32_t)(text - (address + 4)) & 0x1fffff;

		words[1] = 0x10000000 | (far & 3) << 29 | far >> 2 << 5; /* adr x0, far */
		words[2] = 0xd503201f;
	} else {
		words[1] = 0x52800000 | (f->result & 0xffff) << 5; /* mov w0 */
		words[2] = 0x72a00000 | (f->result >> 16 & 0xffff) << 5; /* movk w0, lsl 16 */
	}
	memcpy(at, words, sizeof(words));
#endif
}

static void write_headers(char *out, const struct layout *l)
{
	ElfW(Ehdr) *head = (void *)out;
	ElfW(Phdr) *p = (void *)(out + sizeof(*head));

	memcpy(head->e_ident, ELFMAG, SELFMAG);
	head->e_ident[EI_CLASS] = ELFCLASS64;
	head->e_ident[EI_DATA] = ELFDATA2LSB;
	head->e_ident[EI_VERSION] = EV_CURRENT;
	head->e_type = ET_DYN;
#if defined(__x86_64__)
	head->e_machine = EM_X86_64;
#else
	head->e_machine = EM_AARCH64;
#endif
	head->e_version = EV_CURRENT;
	head->e_phoff = sizeof(*head);
	head->e_ehsize = sizeof(*head);
	head->e_phentsize = sizeof(*p);
	head->e_phnum = 4;
	head->e_shentsize = sizeof(ElfW(Shdr));
	p[0] = (ElfW(Phdr)){.p_type = PT_LOAD,
	    .p_flags = PF_R | PF_X,
	    .p_filesz = l->end,
	    .p_memsz = l->end,
	    .p_align = PAGE};
	p[1] = (ElfW(Phdr)){.p_type = PT_LOAD,
	    .p_flags = PF_R | PF_W,
	    .p_offset = l->dynamic,
	    .p_vaddr = l->dynamic,
	    .p_paddr = l->dynamic,
	    .p_filesz = l->size - l->dynamic,
	    .p_memsz = l->size - l->dynamic,
	    .p_align = PAGE};
	p[2] = p[1];
	p[2].p_type = PT_DYNAMIC;
	p[2].p_align = 8;
	p[3] = (ElfW(Phdr)){.p_type = PT_GNU_STACK, .p_flags = PF_R | PF_W, .p_align = 16};
}

static uint64_t add_string(char *out, const struct layout *l, uint64_t *used, const char *s)
{
	uint64_t at = *used;

	strcpy(out + l->strings + at, s);
	*used += strlen(s) + 1;
	return at;
}

void *elf_write(const char *soname, const char *needed, const struct elf_function *functions,
    size_t count, size_t *size)
{
	const char *versions[VERSIONS];
	uint64_t names[VERSIONS], soname_at, needed_at = 0, used = 1;
	unsigned version_count = 0;
	struct layout l;
	ElfW(Sym) * symbols;
	ElfW(Half) * indices;
	ElfW(Dyn) * dynamic;
	uint32_t *hash;
	char *out;

	l.strings_size = 1 + strlen(soname) + 1 + (needed ? strlen(needed) + 1 : 0);
	for (size_t i = 0; i < count; i++) {
		version_index(versions, &version_count, functions[i].version);
		l.strings_size += strlen(functions[i].name) + 1;
		l.strings_size += functions[i].text ? strlen(functions[i].text) + 1 : 0;
	}
	for (unsigned i = 0; i < version_count; i++)
		l.strings_size += strlen(versions[i]) + 1;
	l.hash = align_up(sizeof(ElfW(Ehdr)) + 4 * sizeof(ElfW(Phdr)));
	/* as many buckets as symbols */
	l.symbols = align_up(l.hash + 4 * (2 + 2 * (count + 1)));
	l.strings = align_up(l.symbols + (count + 1) * sizeof(*symbols));
	l.versions = align_up(l.strings + l.strings_size);
	l.definitions = align_up(l.versions + (count + 1) * sizeof(*indices));
	l.code = align_up(
	    l.definitions + (version_count + 1) * (sizeof(ElfW(Verdef)) + sizeof(ElfW(Verdaux))));
	l.end = l.code + count * CODE;
	l.dynamic = (l.end + PAGE - 1) & ~(PAGE - 1);
	l.size = l.dynamic + 16 * sizeof(*dynamic);
	out = heap_new(l.size);
	if (!out)
		return NULL;
	write_headers(out, &l);
	soname_at = add_string(out, &l, &used, soname);
	if (needed)
		needed_at = add_string(out, &l, &used, needed);
	for (unsigned i = 0; i < version_count; i++)
		names[i] = add_string(out, &l, &used, versions[i]);

	hash = (void *)(out + l.hash);
	hash[0] = hash[1] = (uint32_t)count + 1;
	symbols = (void *)(out + l.symbols);
	indices = (void *)(out + l.versions);
	for (size_t i = 0; i < count; i++) {
		const struct elf_function *f = &functions[i];
		uint64_t address = l.code + i * CODE, text = 0;
		uint32_t *bucket = &hash[2 + elf_hash(f->name) % (count + 1)];

		symbols[i + 1].st_name = (ElfW(Word))add_string(out, &l, &used, f->name);
		symbols[i + 1].st_info = ELF64_ST_INFO(STB_GLOBAL, STT_FUNC);
		symbols[i + 1].st_shndx = 1;
		symbols[i + 1].st_value = address;
		symbols[i + 1].st_size = CODE;
		indices[i + 1] = (ElfW(Half))version_index(versions, &version_count, f->version);
		hash[2 + (count + 1) + i + 1] = *bucket;
		*bucket = (uint32_t)i + 1;
		if (f->text)
			text = l.strings + add_string(out, &l, &used, f->text);
		write_code((unsigned char *)out + address, address, f, text);
	}

	for (unsigned i = 0; i <= version_count; i++) {
		uint64_t step = sizeof(ElfW(Verdef)) + sizeof(ElfW(Verdaux));
		ElfW(Verdef) *def = (void *)(out + l.definitions + i * step);
		ElfW(Verdaux) *aux = (void *)(def + 1);
		const char *name = i ? versions[i - 1] : soname;

		def->vd_version = VER_DEF_CURRENT;
		def->vd_flags = i ? 0 : VER_FLG_BASE;
		def->vd_ndx = (ElfW(Half))(i + 1);
		def->vd_cnt = 1;
		def->vd_hash = elf_hash(name);
		def->vd_aux = sizeof(*def);
		def->vd_next = i < version_count ? (ElfW(Word))step : 0;
		aux->vda_name = (ElfW(Word))(i ? names[i - 1] : soname_at);
	}

	dynamic = (void *)(out + l.dynamic);
	*dynamic++ = (ElfW(Dyn)){DT_SONAME, {soname_at}};
	if (needed)
		*dynamic++ = (ElfW(Dyn)){DT_NEEDED, {needed_at}};
	*dynamic++ = (ElfW(Dyn)){DT_HASH, {l.hash}};
	*dynamic++ = (ElfW(Dyn)){DT_SYMTAB, {l.symbols}};
	*dynamic++ = (ElfW(Dyn)){DT_SYMENT, {sizeof(*symbols)}};
	*dynamic++ = (ElfW(Dyn)){DT_STRTAB, {l.strings}};
	*dynamic++ = (ElfW(Dyn)){DT_STRSZ, {used}};
	*dynamic++ = (ElfW(Dyn)){DT_VERSYM, {l.versions}};
	*dynamic++ = (ElfW(Dyn)){DT_VERDEF, {l.definitions}};
	*dynamic++ = (ElfW(Dyn)){DT_VERDEFNUM, {version_count + 1}};
	*size = l.size;
	return out;
}
