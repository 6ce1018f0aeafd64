/*
 * got.c - reads the relocations of loaded modules and changes single slots. A slot is one aligned
 * pointer, so that a thread that calls through it meanwhile takes either way. Where the loader has
 * made the slots read-only, the page is writable for a moment.
 */
#include "got.h"

#include <elf.h>
#include <errno.h>
#include <link.h>
#include <linux/futex.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include "lifecycle.h"
#include "loader.h"
#include "resolve.h"
#include "sys.h"

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
	size_t relative; /* as many of rela[1] come first, and name no symbol */
};

struct work {
	const struct got_hook *hooks;
	size_t count;
	const struct got_walk *walk;
	bool left; /* a module is still being loaded */
};

static const void *at(uintptr_t bias, ElfW(Addr) value)
{
	return (const void *)(value < bias ? value + bias : value);
}

static bool read_module(const struct dl_phdr_info *info, struct module *m)
{
	const ElfW(Dyn) *d = NULL;

	memset(m, 0, sizeof(*m));
	m->bias = info->dlpi_addr;
	m->low = UINTPTR_MAX;
	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *p = &info->dlpi_phdr[i];
		uintptr_t start = m->bias + p->p_vaddr;

		if (p->p_type == PT_DYNAMIC)
			d = (const void *)start;
		if (p->p_type == PT_GNU_RELRO) {
			m->relro = start & ~(uintptr_t)(shim.page_size - 1);
			m->relro_end = (start + p->p_memsz) & ~(uintptr_t)(shim.page_size - 1);
		}
		if (p->p_type == PT_LOAD && start < m->low)
			m->low = start;
		if (p->p_type == PT_LOAD && start + p->p_memsz > m->high)
			m->high = start + p->p_memsz;
	}
	for (; d && d->d_tag != DT_NULL; d++) {
		if (d->d_tag == DT_SYMTAB)
			m->symbols = at(m->bias, d->d_un.d_ptr);
		else if (d->d_tag == DT_STRTAB)
			m->strings = at(m->bias, d->d_un.d_ptr);
		else if (d->d_tag == DT_JMPREL)
			m->rela[0] = at(m->bias, d->d_un.d_ptr);
		else if (d->d_tag == DT_PLTRELSZ)
			m->rela_bytes[0] = d->d_un.d_val;
		else if (d->d_tag == DT_RELA)
			m->rela[1] = at(m->bias, d->d_un.d_ptr);
		else if (d->d_tag == DT_RELASZ)
			m->rela_bytes[1] = d->d_un.d_val;
		else if (d->d_tag == DT_RELACOUNT)
			m->relative = d->d_un.d_val;
	}
	return m->symbols && m->strings;
}

/* Without a change, nor a fault: the word is or'ed with 0, and nobody waits at ours. */
static bool writable(uintptr_t address)
{
	static const uint32_t nobody;

	return sys_call(SYS_futex, (long)&nobody, FUTEX_WAKE_OP | FUTEX_PRIVATE_FLAG, 0, 0,
		   (long)address, FUTEX_OP(FUTEX_OP_OR, 0, FUTEX_OP_CMP_LT, 0)) != -EFAULT;
}

/*
 * A module is in the loader's list before it is relocated, and calls of malloc by the loader, or
 * other threads, bring us here meanwhile. Its slots hold nothing of use then; and to make them
 * read-only, as store() does, would be the loader's death. It does that itself when it has done
 * with them.
 */
static bool is_relocated(const struct module *m)
{
	return m->relro >= m->relro_end || !writable(m->relro);
}

static void store(const struct module *m, void **slot, void *value)
{
	uintptr_t page = (uintptr_t)slot & ~(uintptr_t)(shim.page_size - 1);
	bool locked = page >= m->relro && page < m->relro_end;

	if (locked && sys_call(SYS_mprotect, (long)page, (long)shim.page_size,
			  PROT_READ | PROT_WRITE, 0, 0, 0) < 0)
		return;
	__atomic_store_n(slot, value, __ATOMIC_RELEASE);
	if (locked)
		sys_call(SYS_mprotect, (long)page, (long)shim.page_size, PROT_READ, 0, 0, 0);
}

static const struct got_hook *wanted(const struct work *w, const char *name)
{
	for (size_t i = 0; i < w->count; i++)
		if (*w->hooks[i].real && !strcmp(w->hooks[i].name, name))
			return &w->hooks[i];
	return NULL;
}

/* Cheap, as every relocation of every module comes here. */
static bool may_be_wanted(const char *name)
{
	return (name[0] == '_' && name[1] == 'Z') || (name[0] == 't' && name[1] == 'c') ||
	       (name[0] == 'm' && (name[1] == 'i' || name[1] == 'a')) || strstr(name, "alloc") ||
	       strstr(name, "memalign") || !strcmp(name, "cfree") || !strcmp(name, "free");
}

static bool is_ours(const struct module *m)
{
	return (uintptr_t)&shim >= m->low && (uintptr_t)&shim < m->high;
}

static int point_module(struct dl_phdr_info *info, size_t size, void *data)
{
	struct work *w = data;
	struct module m;

	if (!read_module(info, &m) || is_ours(&m))
		return 0;
	if (!is_relocated(&m)) {
		w->left = true;
		return 0;
	}
	for (int table = 0; table < 2; table++)
		for (size_t i = 0; m.rela[table] && i < m.rela_bytes[table] / sizeof(ElfW(Rela));
		     i++) {
			const ElfW(Rela) *r = &m.rela[table][i];
			unsigned type = (unsigned)ELF64_R_TYPE(r->r_info);
			const ElfW(Sym) * symbol;
			const struct got_hook *hook;
			uintptr_t now;
			void **slot;

			if (type != RELOC_JUMP_SLOT && type != RELOC_GLOB_DAT)
				continue;
			symbol = &m.symbols[ELF64_R_SYM(r->r_info)];
			if (!may_be_wanted(m.strings + symbol->st_name) ||
			    !(hook = wanted(w, m.strings + symbol->st_name)))
				continue;
			slot = (void **)(m.bias + r->r_offset);
			now = (uintptr_t)__atomic_load_n(slot, __ATOMIC_ACQUIRE);
			/* bound to it, or still to this module's own stub that will bind it */
			if (now == (uintptr_t)*hook->real ||
			    (type == RELOC_JUMP_SLOT && now >= m.low && now < m.high &&
				(symbol->st_shndx == SHN_UNDEF ||
				    now != m.bias + symbol->st_value)))
				store(&m, slot, hook->wrapper);
		}
	return 0;
}

bool got_point(const struct got_hook *hooks, size_t count)
{
	struct work w = {.hooks = hooks, .count = count};
	bool any = false;

	for (size_t i = 0; i < count; i++)
		any |= *hooks[i].real != NULL;
	if (any)
		loader_each(point_module, &w);
	return !w.left;
}

static void walk_table(const struct got_walk *w, const struct module *m, int table)
{
	size_t count = m->rela[table] ? m->rela_bytes[table] / sizeof(ElfW(Rela)) : 0;

	for (size_t i = table == 1 && m->relative < count ? m->relative : 0; i < count; i++) {
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
		slot.unbound =
		    type == RELOC_JUMP_SLOT && slot.now >= m->low && slot.now < m->high &&
		    (symbol->st_shndx == SHN_UNDEF || slot.now != m->bias + symbol->st_value);
		wrapper = slot.now ? w->wrapper(&slot) : NULL;
		if (wrapper && (uintptr_t)wrapper != slot.now)
			store(m, place, wrapper);
	}
}

static int walk_module(struct dl_phdr_info *info, size_t size, void *data)
{
	struct work *w = data;
	struct module m;

	if (!read_module(info, &m) || is_ours(&m) ||
	    (w->walk->module &&
		!w->walk->module(info->dlpi_name ? info->dlpi_name : "", m.bias, m.low, m.high)))
		return 0;
	if (is_relocated(&m)) {
		walk_table(w->walk, &m, 0);
		walk_table(w->walk, &m, 1);
	} else {
		w->left = true;
		if (w->walk->not_yet)
			w->walk->not_yet();
	}
	return 0;
}

bool got_each(const struct got_walk *walk)
{
	struct work w = {.walk = walk};

	loader_each(walk_module, &w);
	return !w.left;
}

void *got_function(const struct got_slot *slot)
{
	return slot->unbound ? resolve_for((const void *)slot->low, slot->name) : (void *)slot->now;
}
