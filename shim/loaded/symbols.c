/*
 * symbols.c - reads the symbol tables of loaded modules. Owns `real`, the table that every wrapper
 * forwards to. Must not call anything that could allocate.
 */
#include "loaded/symbols.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/syscall.h>

#include "base/bootstrap_arena.h"
#include "base/sys.h"
#include "loaded/loader.h"

/*
 * Until symbols_all() has run, the hot wrappers forward to these. The arena serves calls that
 * arrive on the resolving thread itself, since an ifunc's resolver may allocate.
 */
enum { SYMBOLS_NONE, SYMBOLS_RESOLVING, SYMBOLS_READY };
static int symbols_state;

static void *first_malloc(size_t size)
{
	symbols_all();
	return real.malloc == first_malloc ? bootstrap_alloc(size, 16) : real.malloc(size);
}

static void *first_calloc(size_t count, size_t size)
{
	size_t bytes;

	symbols_all();
	if (real.calloc != first_calloc)
		return real.calloc(count, size);
	return __builtin_mul_overflow(count, size, &bytes) ? NULL : bootstrap_alloc(bytes, 16);
}

static void *first_realloc(void *old, size_t size)
{
	void *p;

	symbols_all();
	if (real.realloc != first_realloc)
		return real.realloc(old, size);
	p = bootstrap_alloc(size, 16);
	if (p && old && bootstrap_owns(old))
		memcpy(p, old, size < bootstrap_size(old) ? size : bootstrap_size(old));
	return p;
}

static void first_free(void *p)
{
	symbols_all();
	if (real.free != first_free)
		real.free(p);
}

static void *first_aligned(size_t align, size_t size)
{
	symbols_all();
	return real.aligned_alloc == first_aligned ? bootstrap_alloc(size, align)
						   : real.aligned_alloc(align, size);
}

static void *first_memalign(size_t align, size_t size)
{
	symbols_all();
	return real.memalign == first_memalign ? bootstrap_alloc(size, align)
					       : real.memalign(align, size);
}

static int first_posix_memalign(void **out, size_t align, size_t size)
{
	symbols_all();
	if (real.posix_memalign != first_posix_memalign)
		return real.posix_memalign(out, align, size);
	*out = bootstrap_alloc(size, align);
	return *out ? 0 : ENOMEM;
}

bool symbols_sanitized;
bool symbols_program_owns __attribute__((visibility("hidden")));
struct symbols_real real __attribute__((visibility("hidden"))) = {
    .malloc = first_malloc,
    .calloc = first_calloc,
    .realloc = first_realloc,
    .free = first_free,
    .posix_memalign = first_posix_memalign,
    .aligned_alloc = first_aligned,
    .memalign = first_memalign,
};

/* One module's tables, from its dynamic section. */
struct module_tables {
	const ElfW(Sym) * symbols;
	const char *strings;
	const uint32_t *gnu_hash;
	const ElfW(Word) * hash;
	const ElfW(Half) * versions;
	const ElfW(Verdef) * defined; /* the versions that it defines */
	const ElfW(Verneed) * needed;
	uintptr_t bias;
};

static bool dynamic_tables(uintptr_t bias, const ElfW(Dyn) * dyn, struct module_tables *m)
{
	memset(m, 0, sizeof(*m));
	m->bias = bias;
	if (!dyn)
		return false;
	for (; dyn->d_tag != DT_NULL; dyn++) {
		const void *p = loader_pointer(m->bias, dyn->d_un.d_ptr);

		switch (dyn->d_tag) {
		case DT_SYMTAB:
			m->symbols = p;
			break;
		case DT_STRTAB:
			m->strings = p;
			break;
		case DT_GNU_HASH:
			m->gnu_hash = p;
			break;
		case DT_HASH:
			m->hash = p;
			break;
		case DT_VERSYM:
			m->versions = p;
			break;
		case DT_VERDEF:
			m->defined = p;
			break;
		case DT_VERNEED:
			m->needed = p;
			break;
		}
	}
	return m->symbols && m->strings && (m->gnu_hash || m->hash);
}

static bool module_tables(const struct dl_phdr_info *info, struct module_tables *m)
{
	return dynamic_tables(info->dlpi_addr, loader_dynamic(info), m);
}

uint32_t symbols_hash(const char *name)
{
	uint32_t h = 5381;

	for (; *name; name++)
		h = h * 33 + (uint8_t)*name;
	return h;
}

static uint32_t sysv_hash_of(const char *name)
{
	uint32_t h = 0;

	for (; *name; name++) {
		h = (h << 4) + (uint8_t)*name;
		h ^= (h >> 24) & 0xf0;
	}
	return h & 0x0fffffff;
}

/* Not strcmp, which a sanitizer may have replaced and cannot run yet: see search_list(). */
static bool same_name(const char *a, const char *b)
{
	while (*a && *a == *b)
		a++, b++;
	return *a == *b;
}

/* 2: the default version; 1: an old one; 0: not this symbol */
static int symbol_fits(const struct module_tables *m, uint32_t index, const char *name)
{
	const ElfW(Sym) *s = &m->symbols[index];
	int type = ELF64_ST_TYPE(s->st_info);

	if (s->st_shndx == SHN_UNDEF || !s->st_value || type == STT_TLS ||
	    ELF64_ST_BIND(s->st_info) == STB_LOCAL || !same_name(m->strings + s->st_name, name))
		return 0;
	return m->versions && (m->versions[index] & 0x8000) ? 1 : 2;
}

/* Find the chain of symbols that a name with this hash can be in. 0: the module has none. */
static uint32_t gnu_chain(const uint32_t *table, uint32_t h, const uint32_t **chain)
{
	uint32_t buckets = table[0], words = table[2];
	const ElfW(Addr) *filter = (const void *)(table + 4);
	const uint32_t *bucket = (const void *)(filter + words);
	unsigned bits = 8 * sizeof(*filter);
	ElfW(Addr) both = (ElfW(Addr))1 << h % bits | (ElfW(Addr))1 << (h >> table[3]) % bits;

	*chain = bucket + buckets;
	if (!buckets || !words || (filter[h / bits % words] & both) != both)
		return 0;
	return bucket[h % buckets] >= table[1] ? bucket[h % buckets] : 0;
}

/* hash: symbols_hash(name) */
static const ElfW(Sym) *
    module_lookup(const struct module_tables *m, const char *name, uint32_t hash)
{
	const ElfW(Sym) *old = NULL;
	int fit;

	if (m->gnu_hash) {
		uint32_t first = m->gnu_hash[1];
		const uint32_t *chain;

		for (uint32_t i = gnu_chain(m->gnu_hash, hash, &chain); i; i++) {
			if ((chain[i - first] | 1) == (hash | 1) &&
			    (fit = symbol_fits(m, i, name))) {
				if (fit == 2)
					return &m->symbols[i];
				if (!old)
					old = &m->symbols[i];
			}
			if (chain[i - first] & 1)
				break;
		}
		return old;
	}
	for (uint32_t i = m->hash[2 + sysv_hash_of(name) % m->hash[0]]; i;
	     i = m->hash[2 + m->hash[0] + i]) {
		fit = symbol_fits(m, i, name);
		if (fit == 2)
			return &m->symbols[i];
		if (fit && !old)
			old = &m->symbols[i];
	}
	return old;
}

static void *symbol_value(const struct module_tables *m, const ElfW(Sym) * s)
{
	void *p = (void *)(m->bias + s->st_value);

	if (ELF64_ST_TYPE(s->st_info) == STT_GNU_IFUNC) {
#if defined(__aarch64__)
		p = ((void *(*)(uint64_t, const uint64_t *))p)(getauxval(AT_HWCAP) | 1ull << 62,
		    (const uint64_t[]){24, getauxval(AT_HWCAP), getauxval(AT_HWCAP2)});
#else
		p = ((void *(*)(void))p)();
#endif
	}
	return p;
}

static bool module_contains(const struct dl_phdr_info *info, const void *address)
{
	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *p = &info->dlpi_phdr[i];

		if (p->p_type == PT_LOAD &&
		    (uintptr_t)address - (info->dlpi_addr + p->p_vaddr) < p->p_memsz)
			return true;
	}
	return false;
}

struct search {
	const char *const *names;
	void **found;
	size_t count;
	bool after_us; /* begin after our own module */
	bool past_us;
	const void *address; /* of symbols_in() */
};

static void search_tables(const struct search *s, const struct module_tables *m)
{
	const ElfW(Sym) * symbol;

	for (size_t i = 0; i < s->count; i++)
		if (!s->found[i] &&
		    (symbol = module_lookup(m, s->names[i], symbols_hash(s->names[i]))))
			s->found[i] = symbol_value(m, symbol);
}

static int search_module(struct dl_phdr_info *info, size_t size, void *data)
{
	struct search *s = data;
	struct module_tables m;

	if (module_contains(info, &real))
		s->past_us = true;
	else if ((!s->after_us || s->past_us) && module_tables(info, &m))
		search_tables(s, &m);
	return 0;
}

void *symbols_find(const char *name)
{
	void *found = NULL;

	loader_each(search_module, &(struct search){.names = &name, .found = &found, .count = 1});
	return found;
}

bool symbols_defined(const struct dl_phdr_info *info, const char *const *names,
    const uint32_t *hashes, void **found, size_t count)
{
	const ElfW(Sym) * symbol;
	struct module_tables m;
	bool any = false;

	if (module_contains(info, &real) || !module_tables(info, &m))
		return false;
	for (size_t i = 0; i < count; i++)
		if (!found[i] && (symbol = module_lookup(&m, names[i], hashes[i]))) {
			found[i] = symbol_value(&m, symbol);
			any = true;
		}
	return any;
}

/* DT_GNU_HASH leaves out the imported symbols, which come first; DT_HASH has all. */
size_t symbols_of_names(const struct dl_phdr_info *info, const char *const *names,
    const uint32_t *hashes, size_t count, struct symbols_symbol *out, size_t room)
{
	struct module_tables m;
	const uint32_t *chain;
	size_t n = 0;

	if (!module_tables(info, &m))
		return 0;
	for (uint32_t s = 1, end = m.gnu_hash ? m.gnu_hash[1] : m.hash[1]; s < end; s++) {
		const char *name = m.strings + m.symbols[s].st_name;
		uint32_t hash = symbols_hash(name);

		for (uint32_t i = 0; i < count && n < room; i++)
			if (hash == hashes[i] && same_name(name, names[i]))
				out[n++] = (struct symbols_symbol){s, i};
	}
	for (uint32_t i = 0; m.gnu_hash && i < count; i++)
		for (uint32_t s = gnu_chain(m.gnu_hash, hashes[i], &chain); s; s++) {
			uint32_t hash = chain[s - m.gnu_hash[1]];

			if ((hash | 1) == (hashes[i] | 1) && n < room &&
			    same_name(m.strings + m.symbols[s].st_name, names[i]))
				out[n++] = (struct symbols_symbol){s, i};
			if (hash & 1)
				break;
		}
	return n;
}

void *symbols_next(const char *name)
{
	void *found = NULL;

	loader_each_needed(search_module,
	    &(struct search){.names = &name, .found = &found, .count = 1, .after_us = true});
	return found;
}

static int search_in_module(struct dl_phdr_info *info, size_t size, void *data)
{
	struct search *s = data;
	struct module_tables m;

	if (!module_contains(info, s->address))
		return 0;
	if (module_tables(info, &m))
		search_tables(s, &m);
	return 1;
}

void symbols_in(const void *address, const char *const *names, void **found, size_t count)
{
	loader_each_at(address, search_in_module,
	    &(struct search){.names = names, .found = found, .count = count, .address = address});
}

/* The name of the version that a module needs of a symbol; NULL: any version. */
static const char *version_needed(const struct module_tables *m, uint32_t index)
{
	unsigned wanted = m->versions ? m->versions[index] & 0x7fff : 0;
	const char *at = (const char *)m->needed;

	if (wanted < 2 || !at)
		return NULL;
	for (;;) {
		const ElfW(Verneed) *need = (const void *)at;
		const char *aux = at + need->vn_aux;

		for (unsigned i = 0; i < need->vn_cnt; i++) {
			const ElfW(Vernaux) *a = (const void *)aux;

			if ((a->vna_other & 0x7fff) == wanted)
				return m->strings + a->vna_name;
			aux += a->vna_next;
		}
		if (!need->vn_next)
			return NULL;
		at += need->vn_next;
	}
}

/* The name of the version with which a symbol is defined; NULL: no version. */
static const char *version_defined(const struct module_tables *m, uint32_t index)
{
	unsigned version = m->versions ? m->versions[index] & 0x7fff : 0;
	const char *at = (const char *)m->defined;

	if (version < 2 || !at)
		return NULL;
	for (;;) {
		const ElfW(Verdef) *def = (const void *)at;

		if ((def->vd_ndx & 0x7fff) == version) {
			const ElfW(Verdaux) *aux = (const void *)(at + def->vd_aux);

			return m->strings + aux->vda_name;
		}
		if (!def->vd_next)
			return NULL;
		at += def->vd_next;
	}
}

struct search_for {
	const void *address;
	const char *name, *version;
	void *found;
	unsigned count;
};

/* Undefined symbols come first in the table; the hash tables leave them out. */
static int read_undefined(struct dl_phdr_info *info, size_t size, void *data)
{
	struct search_for *s = data;
	struct module_tables m;

	if (!module_contains(info, s->address))
		return 0;
	if (!module_tables(info, &m))
		return 1;
	for (uint32_t i = 1, n = m.gnu_hash ? m.gnu_hash[1] : m.hash[1]; i < n; i++)
		if (m.symbols[i].st_shndx == SHN_UNDEF &&
		    !strcmp(m.strings + m.symbols[i].st_name, s->name)) {
			s->version = version_needed(&m, i);
			break;
		}
	return 1;
}

static int search_for_module(struct dl_phdr_info *info, size_t size, void *data)
{
	struct search_for *s = data;
	const ElfW(Sym) * symbol;
	struct module_tables m;
	const char *version;

	if (module_contains(info, &real) || !module_tables(info, &m) ||
	    !(symbol = module_lookup(&m, s->name, symbols_hash(s->name))))
		return 0;
	version = version_defined(&m, (uint32_t)(symbol - m.symbols));
	if (s->version && version && strcmp(s->version, version) != 0)
		return 0;
	s->found = symbol_value(&m, symbol);
	s->count++;
	return 0;
}

void *symbols_for(const void *address, const char *name)
{
	struct search_for s = {.address = address, .name = name};

	loader_each(read_undefined, &s);
	loader_each(search_for_module, &s);
	return s.count == 1 ? s.found : NULL;
}

struct search_needed {
	const void *address;
	const char *name;
	const char *strings; /* of the module */
	const ElfW(Dyn) * dyn;
	const char *library;
	void *found;
};

static int read_needed(struct dl_phdr_info *info, size_t size, void *data)
{
	struct search_needed *s = data;
	const ElfW(Sym) * symbol;
	struct module_tables m;

	if (!module_contains(info, s->address))
		return 0;
	if (!module_tables(info, &m))
		return 1;
	s->strings = m.strings;
	s->dyn = loader_dynamic(info);
	if ((symbol = module_lookup(&m, s->name, symbols_hash(s->name))))
		s->found = symbol_value(&m, symbol);
	return 1;
}

static int search_library(struct dl_phdr_info *info, size_t size, void *data)
{
	struct search_needed *s = data;
	const char *name = info->dlpi_name ? strrchr(info->dlpi_name, '/') : NULL;
	const ElfW(Sym) * symbol;
	struct module_tables m;

	if (!name || strcmp(name + 1, s->library) != 0 || module_contains(info, &real) ||
	    !module_tables(info, &m) ||
	    !(symbol = module_lookup(&m, s->name, symbols_hash(s->name))))
		return 0;
	s->found = symbol_value(&m, symbol);
	return 1;
}

void *symbols_needed(const void *address, const char *name)
{
	struct search_needed s = {.address = address, .name = name};

	loader_each_needed(read_needed, &s);
	for (; !s.found && s.dyn && s.dyn->d_tag != DT_NULL; s.dyn++)
		if (s.dyn->d_tag == DT_NEEDED) {
			s.library = s.strings + s.dyn->d_un.d_val;
			loader_each_needed(search_library, &s);
		}
	return s.found;
}

#pragma weak _r_debug
extern struct r_debug *_dl_debug_addr __attribute__((weak)); /* musl's instead of _r_debug */

static const struct link_map *first_module(void)
{
	if (&_r_debug)
		return _r_debug.r_map;
	return &_dl_debug_addr ? _dl_debug_addr->r_map : NULL;
}

bool symbols_foreign(void)
{
	return !&_r_debug;
}

static bool is_libc(const struct link_map *map)
{
	const char *strings = NULL, *name = NULL;
	ElfW(Addr) soname = 0;

	for (const ElfW(Dyn) *d = map->l_ld; d && d->d_tag != DT_NULL; d++) {
		if (d->d_tag == DT_STRTAB)
			strings = loader_pointer(map->l_addr, d->d_un.d_ptr);
		else if (d->d_tag == DT_SONAME)
			soname = d->d_un.d_val;
	}
	if (strings && soname)
		name = strings + soname;
	return name && same_name(name, "libc.so.6");
}

/* The loader searches the modules in the order of its list; a dlopen appends to it. */
bool symbols_in_front(void)
{
	for (const struct link_map *at = first_module(); at; at = at->l_next)
		if (at->l_ld == _DYNAMIC)
			return true;
		else if (is_libc(at))
			return false;
	return false;
}

/*
 * The same as search_module() for each module, directly from the loader's list and without calling
 * any function. A sanitizer's runtime wraps dl_iterate_phdr, strcmp and many more, and before it
 * can run any of them asks dlsym for the real ones, which is our wrapper. Only for `real`, which is
 * filled before threads load libraries. `modules`: how many to search; 0: all.
 */
static void search_list(struct search *s, unsigned modules)
{
	const struct link_map *at = first_module();
	struct module_tables m;

	for (unsigned n = 1; at; at = at->l_next, n++) {
		if (at->l_ld == _DYNAMIC)
			s->past_us = true;
		else if ((!s->after_us || s->past_us) && dynamic_tables(at->l_addr, at->l_ld, &m))
			search_tables(s, &m);
		if (n == modules)
			break;
	}
}

static void resolve_all(void)
{
#define RIGHTS_CALL(name, right, uid, when)
#define REAL_API(type, name, parameters) #name,
#define RIGHTS_API(name, parameters, arguments, right, uid, when) #name,
	/* malloc's family comes first: FAMILY below. */
	static const char *const names[] = {
#include "loaded/real.def"

#include "base/rights_api.def"
	};
#undef REAL_API
#undef RIGHTS_API
#define REAL_API(type, name, parameters) offsetof(struct symbols_real, name),
#define RIGHTS_API(name, parameters, arguments, right, uid, when) REAL_API(int, name, parameters)
	static const uint16_t places[] = {
#include "loaded/real.def"

#include "base/rights_api.def"
	};
#undef REAL_API
#undef RIGHTS_API
#undef RIGHTS_CALL
	static const char *const sanitizers[] = {
	    "__asan_init", "__hwasan_init", "__lsan_init", "__msan_init", "__tsan_init"};
	enum { COUNT = sizeof(names) / sizeof(names[0]), FAMILY = 10 }; /* malloc's comes first */
	void *found[COUNT] = {NULL}, *runtime[5] = {NULL}, *static_runtime = NULL;
	const char *const inside = "mcheck_pedantic";

	search_list(&(struct search){.names = sanitizers, .found = runtime, .count = 5}, 0);
	/* gcc's static runtime exports no __asan_init, but this */
	search_list(&(struct search){.names = &inside, .found = &static_runtime, .count = 1}, 1);
	symbols_sanitized =
	    static_runtime || runtime[0] || runtime[1] || runtime[2] || runtime[3] || runtime[4];
	search_list(&(struct search){.names = names, .found = found, .count = FAMILY}, 1);
	symbols_program_owns = found[0] && found[3];
	if (!symbols_program_owns)
		memset(found, 0, sizeof(found));
	search_list(
	    &(struct search){.names = names, .found = found, .count = COUNT, .after_us = true}, 0);
	/* a definition before ours was preloaded before us, or is the program's own */
	search_list(&(struct search){.names = names, .found = found, .count = COUNT}, 0);
	for (size_t i = 0; i < COUNT; i++)
		if (found[i])
			__atomic_store_n(
			    (void **)((char *)&real + places[i]), found[i], __ATOMIC_RELEASE);
}

void symbols_all(void)
{
	static int owner;
	int expected = SYMBOLS_NONE, tid;

	if (__atomic_load_n(&symbols_state, __ATOMIC_ACQUIRE) == SYMBOLS_READY)
		return;
	tid = sys_gettid();
	if (__atomic_compare_exchange_n(&symbols_state, &expected, SYMBOLS_RESOLVING, false,
		__ATOMIC_ACQUIRE, __ATOMIC_ACQUIRE)) {
		__atomic_store_n(&owner, tid, __ATOMIC_RELAXED);
		resolve_all();
		__atomic_store_n(&symbols_state, SYMBOLS_READY, __ATOMIC_RELEASE);
		return;
	}
	/* Another thread is resolving, which is short, unless it is this very thread. */
	while (__atomic_load_n(&symbols_state, __ATOMIC_ACQUIRE) == SYMBOLS_RESOLVING &&
	       __atomic_load_n(&owner, __ATOMIC_RELAXED) != tid)
		sys_yield();
}

struct module_query {
	const void *address;
	struct symbols_module *out;
};

static void module_soname(const struct dl_phdr_info *info, char *out, size_t room)
{
	const ElfW(Dyn) *dyn = loader_dynamic(info);
	struct module_tables m;

	out[0] = 0;
	if (!module_tables(info, &m))
		return;
	for (; dyn && dyn->d_tag != DT_NULL; dyn++)
		if (dyn->d_tag == DT_SONAME)
			strncat(out, m.strings + dyn->d_un.d_val, room - 1);
}

static int query_module(struct dl_phdr_info *info, size_t size, void *data)
{
	struct module_query *q = data;
	struct symbols_module *out = q->out;
	long n;

	if (!module_contains(info, q->address))
		return 0;
	loader_bounds(info, &out->low, &out->high);
	module_soname(info, out->soname, sizeof(out->soname));
	out->path[0] = 0;
	if (info->dlpi_name && info->dlpi_name[0]) {
		strncat(out->path, info->dlpi_name, sizeof(out->path) - 1);
	} else {
		n = sys_call(SYS_readlinkat, AT_FDCWD, (long)"/proc/self/exe", (long)out->path,
		    sizeof(out->path) - 1, 0, 0);
		out->path[n > 0 ? n : 0] = 0;
	}
	return 1;
}

bool symbols_module_of(const void *address, struct symbols_module *out)
{
	return loader_each_at(address, query_module, &(struct module_query){address, out}) == 1;
}

struct counts {
	uint64_t *loaded, *unloaded;
	bool known;
};

static int read_counts(struct dl_phdr_info *info, size_t size, void *data)
{
	struct counts *c = data;

	if (size >= offsetof(struct dl_phdr_info, dlpi_subs) + sizeof(info->dlpi_subs)) {
		*c->loaded = info->dlpi_adds;
		*c->unloaded = info->dlpi_subs;
		c->known = true;
	}
	return 1;
}

bool symbols_counts(uint64_t *loaded, uint64_t *unloaded)
{
	struct counts c = {loaded, unloaded, false};

	loader_each(read_counts, &c);
	return c.known;
}
