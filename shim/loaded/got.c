/*
 * got.c - reads the relocations of loaded modules and changes single slots. A slot is one aligned
 * pointer: a thread that calls through it meanwhile goes either way. Where the loader has made
 * slots read-only, the page becomes writable for a moment.
 */
#include "loaded/got.h"

#include <elf.h>
#include <errno.h>
#include <link.h>
#include <linux/futex.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include "base/shim_state.h"
#include "base/sys.h"
#include "loaded/loader.h"
#include "loaded/symbols.h"

#if defined(__x86_64__)
#define RELOC_JUMP_SLOT R_X86_64_JUMP_SLOT
#define RELOC_GLOB_DAT R_X86_64_GLOB_DAT
#define RELOC_POINTER R_X86_64_64
#elif defined(__aarch64__)
#define RELOC_JUMP_SLOT R_AARCH64_JUMP_SLOT
#define RELOC_GLOB_DAT R_AARCH64_GLOB_DAT
#define RELOC_POINTER R_AARCH64_ABS64
#endif

struct module {
	uintptr_t bias, low, high;
	uintptr_t relro, relro_end;
	const ElfW(Sym) * symbols;
	const char *strings;
	const ElfW(Rela) * rela[2];
	size_t rela_bytes[2];
	size_t relative; /* this many relocations of rela[1] come first and name no symbol */
};

static bool read_module(const struct dl_phdr_info *info, struct module *m)
{
	const ElfW(Dyn) *d = loader_dynamic(info);

	memset(m, 0, sizeof(*m));
	m->bias = info->dlpi_addr;
	loader_bounds(info, &m->low, &m->high);
	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *p = &info->dlpi_phdr[i];
		uintptr_t start = m->bias + p->p_vaddr;

		if (p->p_type == PT_GNU_RELRO) {
			m->relro = start & ~(uintptr_t)(shim.page_size - 1);
			m->relro_end = (start + p->p_memsz) & ~(uintptr_t)(shim.page_size - 1);
		}
	}
	for (; d && d->d_tag != DT_NULL; d++) {
		if (d->d_tag == DT_SYMTAB)
			m->symbols = loader_pointer(m->bias, d->d_un.d_ptr);
		else if (d->d_tag == DT_STRTAB)
			m->strings = loader_pointer(m->bias, d->d_un.d_ptr);
		else if (d->d_tag == DT_JMPREL)
			m->rela[0] = loader_pointer(m->bias, d->d_un.d_ptr);
		else if (d->d_tag == DT_PLTRELSZ)
			m->rela_bytes[0] = d->d_un.d_val;
		else if (d->d_tag == DT_RELA)
			m->rela[1] = loader_pointer(m->bias, d->d_un.d_ptr);
		else if (d->d_tag == DT_RELASZ)
			m->rela_bytes[1] = d->d_un.d_val;
		else if (d->d_tag == DT_RELACOUNT)
			m->relative = d->d_un.d_val;
	}
	return m->symbols && m->strings;
}

/* Tests without a change and without a fault: ORs the word with 0, and no thread waits at
 * `nobody`. */
static bool writable(uintptr_t address)
{
	static const uint32_t nobody;

	return sys_call(SYS_futex, (long)&nobody, FUTEX_WAKE_OP | FUTEX_PRIVATE_FLAG, 0, 0,
		   (long)address, FUTEX_OP(FUTEX_OP_OR, 0, FUTEX_OP_CMP_LT, 0)) != -EFAULT;
}

/*
 * A module is in the loader's list before it is relocated; the loader's own malloc calls, or other
 * threads, bring us here meanwhile. Its slots are useless then, and store() would make them
 * read-only, which kills the loader. The loader does that itself when it is done. A module without
 * read-only slots leaves only the question to the loader, which an older one cannot answer.
 */
enum relocated { NOT_YET, PERHAPS, RELOCATED };

static enum relocated relocated(const struct module *m)
{
	if (m->relro < m->relro_end)
		return writable(m->relro) ? NOT_YET : RELOCATED;
	if (!loader_finds())
		return PERHAPS;
	return loader_knows(m->low) ? RELOCATED : NOT_YET;
}

/* What slots held before we changed them: see got_keep_changes(). Under the loader's list lock. */
static struct {
	bool kept;
	struct change {
		void **slot;
		void *before;
	} * list;
	size_t count, room;
} changes;

static bool remember(void **slot)
{
	enum { FIRST = 512 };
	size_t room = changes.room ? 2 * changes.room : FIRST;
	struct change *larger;

	if (changes.count == changes.room) {
		larger = sys_pages(room * sizeof(*larger));
		if (!larger)
			return false;
		if (changes.room) {
			memcpy(larger, changes.list, changes.count * sizeof(*larger));
			sys_pages_free(changes.list, changes.room * sizeof(*larger));
		}
		changes.list = larger;
		changes.room = room;
	}
	changes.list[changes.count++] =
	    (struct change){slot, __atomic_load_n(slot, __ATOMIC_ACQUIRE)};
	return true;
}

void got_keep_changes(void)
{
	changes.kept = true;
}

static void store(const struct module *m, void **slot, void *value)
{
	uintptr_t page = (uintptr_t)slot & ~(uintptr_t)(shim.page_size - 1);
	bool locked = page >= m->relro && page < m->relro_end;

	if (changes.kept && !remember(slot))
		return;
	if (locked && sys_call(SYS_mprotect, (long)page, (long)shim.page_size,
			  PROT_READ | PROT_WRITE, 0, 0, 0) < 0)
		return;
	__atomic_store_n(slot, value, __ATOMIC_RELEASE);
	if (locked)
		sys_call(SYS_mprotect, (long)page, (long)shim.page_size, PROT_READ, 0, 0, 0);
}

static bool is_ours(const struct module *m)
{
	return (uintptr_t)&shim >= m->low && (uintptr_t)&shim < m->high;
}

/* The first relocation of a table that can name a symbol. */
static size_t first_named(const struct module *m, int table, size_t count)
{
	return table == 1 && m->relative < count ? m->relative : 0;
}

static size_t count_of(const struct module *m, int table)
{
	return m->rela[table] ? m->rela_bytes[table] / sizeof(ElfW(Rela)) : 0;
}

/* Does the slot still lead to this module's own stub that will bind it? */
static bool is_unbound(
    const struct module *m, unsigned type, const ElfW(Sym) * symbol, uintptr_t now)
{
	return type == RELOC_JUMP_SLOT && now >= m->low && now < m->high &&
	       (symbol->st_shndx == SHN_UNDEF || now != m->bias + symbol->st_value);
}

#define SYMBOLS_MAX (2 * GOT_HOOKS_MAX) /* a name may occur in several versions */

struct names {
	const char *names[GOT_HOOKS_MAX];
	uint32_t hashes[GOT_HOOKS_MAX];
	const struct got_hook *hooks[GOT_HOOKS_MAX];
	size_t count;
};

/* Does the slot lead, or will it lead, to the function that the hook's wrapper forwards to? */
static bool leads_there(const struct module *m, const struct got_hook *hook, unsigned type,
    const ElfW(Sym) * symbol, uintptr_t now, bool *later)
{
	const void *meant;

	if (now == (uintptr_t)*hook->real)
		return true;
	if (!is_unbound(m, type, symbol, now))
		return false;
	meant = hook->local ? symbols_for((const void *)m->low, hook->name) : *hook->real;
	*later |= !meant;
	return meant && meant == *hook->real;
}

/* False: some slot's function is not known yet. */
static bool point_table(const struct module *m, int table, const struct names *names,
    const struct symbols_symbol *symbols, size_t wanted)
{
	size_t count = count_of(m, table);
	bool later = false;

	for (size_t i = first_named(m, table, count); i < count; i++) {
		const ElfW(Rela) *r = &m->rela[table][i];
		unsigned type = (unsigned)ELF64_R_TYPE(r->r_info);
		uint32_t symbol = (uint32_t)ELF64_R_SYM(r->r_info);
		const struct got_hook *hook;
		uintptr_t now;
		void **slot;
		size_t s = 0;

		if (type != RELOC_JUMP_SLOT && type != RELOC_GLOB_DAT &&
		    (type != RELOC_POINTER || r->r_addend))
			continue;
		while (s < wanted && symbols[s].symbol != symbol)
			s++;
		if (s == wanted)
			continue;
		hook = names->hooks[symbols[s].name];
		if (type == RELOC_POINTER && !hook->pointers)
			continue;
		slot = (void **)(m->bias + r->r_offset);
		now = (uintptr_t)__atomic_load_n(slot, __ATOMIC_ACQUIRE);
		if (leads_there(m, hook, type, &m->symbols[symbol], now, &later))
			store(m, slot, hook->wrapper);
	}
	return !later;
}

bool got_point(const struct dl_phdr_info *info, const struct got_hook *hooks, size_t count)
{
	struct symbols_symbol symbols[SYMBOLS_MAX];
	struct names names = {.count = 0};
	enum relocated how;
	struct module m;
	size_t wanted;
	bool first, second;

	for (size_t i = 0; i < count && names.count < GOT_HOOKS_MAX; i++) {
		if (!*hooks[i].real)
			continue;
		names.names[names.count] = hooks[i].name;
		names.hashes[names.count] = symbols_hash(hooks[i].name);
		names.hooks[names.count++] = &hooks[i];
	}
	if (!names.count || !read_module(info, &m) || is_ours(&m))
		return true;
	wanted =
	    symbols_of_names(info, names.names, names.hashes, names.count, symbols, SYMBOLS_MAX);
	if (!wanted)
		return true;
	how = relocated(&m);
	if (how == NOT_YET)
		return false;
	first = point_table(&m, 0, &names, symbols, wanted);
	second = point_table(&m, 1, &names, symbols, wanted);
	return how == RELOCATED && first && second;
}

static bool walk_table(const struct got_walk *w, const struct module *m, int table)
{
	size_t count = count_of(m, table);
	bool later = false;

	for (size_t i = first_named(m, table, count); i < count; i++) {
		const ElfW(Rela) *r = &m->rela[table][i];
		unsigned type = (unsigned)ELF64_R_TYPE(r->r_info);
		const ElfW(Sym) * symbol;
		struct got_slot slot;
		void **place, *wrapper;

		if (type != RELOC_JUMP_SLOT && type != RELOC_GLOB_DAT &&
		    (type != RELOC_POINTER || r->r_addend || !ELF64_R_SYM(r->r_info)))
			continue;
		symbol = &m->symbols[ELF64_R_SYM(r->r_info)];
		slot.name = m->strings + symbol->st_name;
		if (!w->wanted(slot.name))
			continue;
		place = (void **)(m->bias + r->r_offset);
		slot.now = (uintptr_t)__atomic_load_n(place, __ATOMIC_ACQUIRE);
		slot.low = m->low;
		slot.high = m->high;
		slot.unbound = is_unbound(m, type, symbol, slot.now);
		wrapper = slot.now ? w->wrapper(&slot, &later) : NULL;
		if (wrapper && (uintptr_t)wrapper != slot.now)
			store(m, place, wrapper);
	}
	return !later;
}

bool got_walk(const struct dl_phdr_info *info, const struct got_walk *walk)
{
	enum relocated how;
	struct module m;
	bool first, second;

	if (!read_module(info, &m) || is_ours(&m))
		return true;
	how = relocated(&m);
	if (how == NOT_YET)
		return false;
	first = walk_table(walk, &m, 0);
	second = walk_table(walk, &m, 1);
	return how == RELOCATED && first && second;
}

void *got_function(const struct got_slot *slot)
{
	return slot->unbound ? symbols_for((const void *)slot->low, slot->name) : (void *)slot->now;
}

/* Puts the slots of one table back that lead to us. */
static void restore_table(const struct module *m, int table)
{
	size_t count = count_of(m, table);

	for (size_t i = first_named(m, table, count); i < count; i++) {
		const ElfW(Rela) *r = &m->rela[table][i];
		unsigned type = (unsigned)ELF64_R_TYPE(r->r_info);
		void **slot = (void **)(m->bias + r->r_offset);
		size_t c = changes.count;

		if ((type != RELOC_JUMP_SLOT && type != RELOC_GLOB_DAT && type != RELOC_POINTER) ||
		    (uintptr_t)__atomic_load_n(slot, __ATOMIC_ACQUIRE) - shim.own_low >=
			shim.own_high - shim.own_low)
			continue;
		/* the latest change: an earlier one may be of a module that lay here before */
		while (c && changes.list[c - 1].slot != slot)
			c--;
		if (c)
			store(m, slot, changes.list[c - 1].before);
	}
}

static int restore_module(struct dl_phdr_info *info, size_t size, void *data)
{
	struct module m;

	if (!read_module(info, &m) || is_ours(&m) || relocated(&m) == NOT_YET)
		return 0;
	restore_table(&m, 0);
	restore_table(&m, 1);
	return 0;
}

void got_restore(void)
{
	changes.kept = false;
	loader_each_needed(restore_module, NULL);
	changes.count = 0;
}
