/*
 * exported.c - see exported.h. Names are looked up by DT_GNU_HASH, as the dynamic loader does; all
 * modules that link editors of the last fifteen years make have it.
 */
#include "attach/exported.h"

#include <elf.h>
#include <errno.h>
#include <string.h>

#include "attach/target.h"

#define HEADERS_MAX 64 /* program headers; real modules have about a dozen */
#define DYNAMIC_MAX 256 /* entries of PT_DYNAMIC; real modules have about 30 */
#define CHAIN_MAX 65536 /* symbols of one bucket: ends the walk in a damaged table */
#define NAME_MAX_BYTES 64

#if defined(__x86_64__)
#define OUR_MACHINE EM_X86_64
#elif defined(__aarch64__)
#define OUR_MACHINE EM_AARCH64
#else
#define OUR_MACHINE EM_NONE
#endif

static uint32_t hash_of(const char *name)
{
	uint32_t hash = 5381;

	for (; *name; name++)
		hash = hash * 33 + (unsigned char)*name;
	return hash;
}

/* Reads the program headers: the bias, and where PT_DYNAMIC is. */
static int read_headers(struct exported *s, uint64_t base, Elf64_Phdr *dynamic)
{
	bool loads = false, found = false;
	Elf64_Phdr headers[HEADERS_MAX];
	Elf64_Ehdr e;

	if (!target_peek(s->pid, base, &e, sizeof(e)) || memcmp(e.e_ident, ELFMAG, SELFMAG) != 0 ||
	    e.e_ident[EI_CLASS] != ELFCLASS64 || e.e_machine != OUR_MACHINE ||
	    e.e_phentsize != sizeof(*headers) || !e.e_phnum || e.e_phnum > HEADERS_MAX ||
	    !target_peek(s->pid, base + e.e_phoff, headers, e.e_phnum * sizeof(*headers)))
		return -ENOEXEC;
	for (unsigned i = 0; i < e.e_phnum; i++) {
		if (headers[i].p_type == PT_LOAD && !loads) {
			s->bias = base - (headers[i].p_vaddr - headers[i].p_offset);
			loads = true;
		} else if (headers[i].p_type == PT_DYNAMIC) {
			*dynamic = headers[i];
			found = true;
		}
	}
	return loads && found ? 0 : -ENOEXEC;
}

/* The loader puts addresses in place of the file's offsets, but not in a read-only PT_DYNAMIC. */
static uint64_t placed(const struct exported *s, uint64_t base, uint64_t pointer)
{
	return pointer < base ? pointer + s->bias : pointer;
}

int exported_open(pid_t pid, uint64_t base, struct exported *out)
{
	struct exported s = {.pid = pid};
	Elf64_Dyn entries[DYNAMIC_MAX];
	uint32_t header[4];
	Elf64_Phdr dynamic = {0};
	size_t count;

	if (read_headers(&s, base, &dynamic))
		return -ENOEXEC;
	count = dynamic.p_memsz / sizeof(*entries);
	count = count < DYNAMIC_MAX ? count : DYNAMIC_MAX;
	if (!target_peek(pid, s.bias + dynamic.p_vaddr, entries, count * sizeof(*entries)))
		return -ENOEXEC;
	for (size_t i = 0; i < count && entries[i].d_tag != DT_NULL; i++) {
		if (entries[i].d_tag == DT_SYMTAB)
			s.table = placed(&s, base, entries[i].d_un.d_ptr);
		else if (entries[i].d_tag == DT_STRTAB)
			s.names = placed(&s, base, entries[i].d_un.d_ptr);
		else if (entries[i].d_tag == DT_STRSZ)
			s.name_bytes = entries[i].d_un.d_val;
		else if (entries[i].d_tag == DT_GNU_HASH)
			s.hash = placed(&s, base, entries[i].d_un.d_ptr);
	}
	if (!s.table || !s.names || !s.hash || !target_peek(pid, s.hash, header, sizeof(header)) ||
	    !header[0])
		return -ENOEXEC;
	s.buckets = header[0];
	s.first = header[1];
	s.words = header[2];
	*out = s;
	return 0;
}

static bool is_name(const struct exported *s, uint32_t at, const char *name)
{
	size_t bytes = strlen(name) + 1;
	char theirs[NAME_MAX_BYTES];

	return bytes <= sizeof(theirs) && at < s->name_bytes && bytes <= s->name_bytes - at &&
	       target_peek(s->pid, s->names + at, theirs, bytes) && !memcmp(theirs, name, bytes);
}

bool exported_find(const struct exported *s, const char *name, struct exported_function *out)
{
	/* header, bloom filter of `words` 64-bit words, buckets, chains */
	uint64_t buckets = s->hash + 16 + (uint64_t)s->words * 8;
	uint64_t chains = buckets + (uint64_t)s->buckets * 4;
	uint32_t hash = hash_of(name), index, other;

	if (!target_peek(s->pid, buckets + (uint64_t)(hash % s->buckets) * 4, &index, 4) ||
	    index < s->first)
		return false;
	for (unsigned i = 0; i < CHAIN_MAX; i++, index++) {
		Elf64_Sym symbol;

		if (!target_peek(s->pid, chains + (uint64_t)(index - s->first) * 4, &other, 4))
			return false;
		if ((other | 1) == (hash | 1) &&
		    target_peek(s->pid, s->table + (uint64_t)index * sizeof(symbol), &symbol,
			sizeof(symbol)) &&
		    symbol.st_shndx != SHN_UNDEF && symbol.st_value &&
		    ELF64_ST_TYPE(symbol.st_info) != STT_GNU_IFUNC &&
		    is_name(s, symbol.st_name, name)) {
			*out =
			    (struct exported_function){s->bias + symbol.st_value, symbol.st_size};
			return true;
		}
		if (other & 1)
			return false;
	}
	return false;
}
