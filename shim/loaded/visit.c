/*
 * visit.c - a table of the loaded modules in the order of the loader's list, to whose end the
 * loader appends. The lock of that list guards the table; a thread may take it again. So all work
 * is done in a callback of the loader, and so are the passes over the list.
 */
#include "loaded/visit.h"

#include <string.h>

#include "base/sys.h"
#include "loaded/loader.h"

#define FIRST_ROOM 256u
#define PASSES 8 /* a visitor that finds what it looks for asks for one more */

struct entry {
	uintptr_t bias; /* the first three members identify it */
	const void *headers;
	const char *name;
	uintptr_t low, high;
	uint32_t done; /* one bit for each visitor */
	bool rpath, from_start;
};

static struct {
	struct entry *modules;
	uint32_t count, room;
	uint64_t loaded, unloaded; /* the loader's counts at the last visit */
	uint32_t left; /* visitors that were not done with all modules then */
	bool seen; /* there was a visit */
	/* some module has a DT_RPATH; some module from the start has one */
	bool any_rpath, start_rpath;
	const struct entry *looked_at; /* the module that a visitor is looking at */
} table;

static const struct visit_watcher *watcher;
static uint32_t revisit; /* visitors that want to see all modules again */
static const char *owner; /* `me` of the thread that uses the table */
static __thread char me __attribute__((tls_model("initial-exec")));

struct visit {
	const struct visitor *visitors;
	size_t count;
	uint32_t by; /* one bit for each visitor */
	void (*then)(void *); /* called with the table after the visit; may be NULL */
	void *data;
	bool done;
};

struct pass {
	const struct visit *visit;
	uint32_t at; /* modules met so far */
	uint32_t fresh; /* new ones among them */
	uint32_t left; /* as table.left */
	bool no_memory, any_rpath, start_rpath;
};

static void read_headers(const struct dl_phdr_info *info, struct entry *e)
{
	const ElfW(Dyn) *d = loader_dynamic(info);

	loader_bounds(info, &e->low, &e->high);
	/* the program's own path is always searched */
	if (!info->dlpi_name || !info->dlpi_name[0])
		return;
	for (; d && d->d_tag != DT_NULL; d++)
		e->rpath |= d->d_tag == DT_RPATH;
}

static bool append(const struct dl_phdr_info *info)
{
	struct entry *e;

	if (table.count == table.room) {
		uint32_t room = table.room ? table.room * 2 : FIRST_ROOM;
		struct entry *larger = sys_pages(room * sizeof(*larger));

		if (!larger)
			return false;
		if (table.room) {
			memcpy(larger, table.modules, table.count * sizeof(*larger));
			sys_pages_free(table.modules, table.room * sizeof(*larger));
		}
		table.modules = larger;
		table.room = room;
	}
	e = &table.modules[table.count++];
	memset(e, 0, sizeof(*e));
	e->bias = info->dlpi_addr;
	e->headers = info->dlpi_phdr;
	e->name = info->dlpi_name;
	read_headers(info, e);
	return true;
}

static void remove_from(uint32_t from, uint32_t to)
{
	if (from == to)
		return;
	for (uint32_t i = from; i < to; i++)
		watcher->gone(table.modules[i].bias);
	memmove(
	    &table.modules[from], &table.modules[to], (table.count - to) * sizeof(*table.modules));
	table.count -= to - from;
}

/* Return the entry of the module that the loader names next; NULL: no memory. */
static struct entry *next_entry(struct pass *p, const struct dl_phdr_info *info)
{
	uint32_t i = p->at;

	for (; i < table.count; i++) {
		const struct entry *e = &table.modules[i];

		if (e->bias == info->dlpi_addr && e->headers == info->dlpi_phdr &&
		    e->name == info->dlpi_name)
			break;
	}
	/* Modules passed over are gone. A new module is the last one, so all remaining ones are. */
	remove_from(p->at, i);
	if (p->at == table.count) {
		if (!append(info))
			return NULL;
		p->fresh++;
	}
	return &table.modules[p->at++];
}

static int meet(struct dl_phdr_info *info, size_t size, void *data)
{
	struct pass *p = data;
	struct entry *e = next_entry(p, info);

	if (!e) {
		p->no_memory = true;
		return 1;
	}
	p->any_rpath |= e->rpath;
	p->start_rpath |= e->rpath && e->from_start;
	table.looked_at = e;
	for (size_t i = 0; i < p->visit->count; i++) {
		uint32_t bit = 1u << p->visit->visitors[i].by;

		if (!(e->done & bit) && p->visit->visitors[i].look(info))
			e->done |= bit;
	}
	p->left |= ~e->done;
	return 0;
}

/* Show all modules to the visitors that asked for them again. */
static void start_again(void)
{
	uint32_t asked = __atomic_exchange_n(&revisit, 0, __ATOMIC_ACQ_REL);

	for (uint32_t i = 0; asked && i < table.count; i++)
		table.modules[i].done &= ~asked;
	table.left |= asked;
}

/*
 * Make one pass over the list. As many modules must be new as the loader has loaded since the last
 * pass. If fewer are, some were unloaded again, or lie where others were and look like them.
 */
static void pass_over(const struct visit *v, uint64_t loaded, uint64_t unloaded)
{
	struct pass p = {.visit = v};

	loader_each(meet, &p);
	if (!p.no_memory)
		remove_from(p.at, table.count);
	if (table.seen && unloaded != table.unloaded && p.fresh != loaded - table.loaded) {
		watcher->rescan();
		__atomic_store_n(&revisit, UINT32_MAX, __ATOMIC_RELEASE);
	}
	table.seen = true;
	table.loaded = loaded;
	table.unloaded = unloaded;
	table.left = p.no_memory ? UINT32_MAX : p.left;
	table.any_rpath = p.any_rpath;
	table.start_rpath = p.start_rpath;
	watcher->told(unloaded);
}

/* Called for the loader's first module, whichever it is: the lock is ours until this returns. */
static int visit_locked(struct dl_phdr_info *info, size_t size, void *data)
{
	struct visit *v = data;
	uint64_t loaded = info->dlpi_adds, unloaded = info->dlpi_subs;

	__atomic_store_n(&owner, &me, __ATOMIC_RELAXED);
	for (int i = 0; i < PASSES; i++) {
		start_again();
		if (table.seen && loaded == table.loaded && unloaded == table.unloaded &&
		    !(table.left & v->by))
			break;
		pass_over(v, loaded, unloaded);
		if (!(__atomic_load_n(&revisit, __ATOMIC_ACQUIRE) & v->by))
			break;
	}
	v->done = !((table.left | __atomic_load_n(&revisit, __ATOMIC_ACQUIRE)) & v->by);
	if (v->then)
		v->then(v->data);
	__atomic_store_n(&owner, NULL, __ATOMIC_RELAXED);
	return 1;
}

/* False: this thread is already in a visit, as in a signal handler, or the list may not be
 * walked. */
static bool visit(struct visit *v)
{
	if (__atomic_load_n(&owner, __ATOMIC_RELAXED) == &me)
		return false;
	return loader_each(visit_locked, v) != 0;
}

void visit_init(const struct visit_watcher *w)
{
	watcher = w;
}

bool visit_modules(const struct visitor *visitors, size_t count)
{
	struct visit v = {.visitors = visitors, .count = count};

	for (size_t i = 0; i < count; i++)
		v.by |= 1u << visitors[i].by;
	return visit(&v) && v.done;
}

void visit_again(enum visit_by by)
{
	__atomic_fetch_or(&revisit, 1u << by, __ATOMIC_ACQ_REL);
}

static void started(void *unused)
{
	for (uint32_t i = 0; i < table.count; i++) {
		table.modules[i].from_start = true;
		table.start_rpath |= table.modules[i].rpath;
	}
}

void visit_started(void)
{
	visit(&(struct visit){.then = started});
}

bool visit_is_from_start(void)
{
	return table.looked_at->from_start;
}

struct caller {
	uintptr_t at;
	bool matters;
};

static void judge_caller(void *data)
{
	struct caller *c = data;

	c->matters = table.any_rpath;
	for (uint32_t i = 0; c->matters && !table.start_rpath && i < table.count; i++) {
		const struct entry *e = &table.modules[i];

		if (!e->from_start)
			break;
		c->matters = c->at < e->low || c->at >= e->high;
	}
}

bool visit_caller_matters(const void *caller)
{
	struct caller c = {(uintptr_t)caller, true}; /* assume so */

	visit(&(struct visit){.then = judge_caller, .data = &c});
	return c.matters;
}

void visit_forked(void)
{
	__atomic_store_n(&owner, NULL, __ATOMIC_RELAXED);
}
