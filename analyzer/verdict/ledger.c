/* ledger.c - see ledger.h. */
#include "verdict/ledger.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "verdict/failure.h"

/* What lives, by class; heap blocks and mappings apart, because they lie in different rows' room.
 */
struct classes {
	struct {
		const char *class;
		uint64_t heap, maps;
	} of[8];
	size_t count;
	uint64_t heap_other, maps_other, interpreter;
};

const char *ledger_class_of(const char *cause)
{
	if (strcmp(cause, "prompt-growth") == 0)
		return "grows with the prompt";
	if (strcmp(cause, "leak") == 0)
		return "leaked";
	if (strcmp(cause, "oversized-intermediate") == 0)
		return "one-off intermediates";
	return NULL;
}

static size_t class_index(struct classes *c, const char *class)
{
	for (size_t i = 0; i < c->count; i++)
		if (strcmp(c->of[i].class, class) == 0)
			return i;
	if (c->count == sizeof(c->of) / sizeof(*c->of))
		return c->count - 1;
	c->of[c->count].class = class;
	return c->count++;
}

/* Did the interpreter itself make this mapping, for its own allocator? */
static bool is_interpreter_arena(const struct ledger_input *in, const struct place *p)
{
	const struct symbol *symbols;
	size_t count;

	if (!in->interpreter || !p->map_bytes || !p->stack)
		return false;
	count = in->model->feed.symbols(in->model->feed.self, p->stack, &symbols);
	for (size_t i = count; i-- > 0;) {
		if (symbols[i].python)
			return true;
		if (symbols[i].module && strcmp(symbols[i].module, in->interpreter) != 0 &&
		    !strstr(symbols[i].module, "libpython") && !strstr(symbols[i].module, "libc."))
			return false;
	}
	return false;
}

static void classify(const struct ledger_input *in, struct classes *c)
{
	const struct places *p = in->places;
	uint64_t *left = calloc(p->count + 1u, sizeof(*left));

	memset(c, 0, sizeof(*c));
	c->heap_other = p->live_bytes;
	c->maps_other = p->map_bytes;
	if (!left)
		return;
	for (uint32_t i = 0; i < p->count; i++)
		left[i] = p->list[i].live_bytes;
	for (size_t n = 0; n < in->candidate_count; n++) {
		const struct finding *f = &in->candidates[n].finding;
		const char *class = ledger_class_of(f->cause);

		if (!class || (n > 0 && !in->candidates[n].admissible))
			continue;
		for (uint32_t i = 0; i < f->claim_count; i++) {
			const struct claim *claim = &f->claims[i];
			const struct place *place = &p->list[claim->place];
			uint64_t bytes =
			    claim->bytes < left[claim->place] ? claim->bytes : left[claim->place];
			/* A place's mappings come last: most places have either. */
			uint64_t heap_left = left[claim->place] > place->map_bytes
						 ? left[claim->place] - place->map_bytes
						 : 0;
			uint64_t heap = bytes < heap_left ? bytes : heap_left, maps = bytes - heap;
			size_t at = class_index(c, class);

			if (heap > c->heap_other)
				heap = c->heap_other;
			if (maps > c->maps_other)
				maps = c->maps_other;
			c->of[at].heap += heap;
			c->of[at].maps += maps;
			c->heap_other -= heap;
			c->maps_other -= maps;
			left[claim->place] -= bytes;
		}
	}
	for (uint32_t i = 0; i < p->count; i++) {
		uint64_t maps = left[i] < p->list[i].map_bytes ? left[i] : p->list[i].map_bytes;

		if (maps && maps <= c->maps_other && is_interpreter_arena(in, &p->list[i])) {
			c->interpreter += maps;
			c->maps_other -= maps;
		}
	}
	free(left);
}

static uint64_t get(const struct levels *l, uint32_t key)
{
	uint64_t value = 0;

	levels_get(l, key, &value);
	return value;
}

static uint64_t less(uint64_t from, uint64_t by)
{
	return from > by ? from - by : 0;
}

static void row(struct ledger *l, const char *class, uint64_t bytes)
{
	if (!bytes)
		return;
	assert(l->row_count < LEDGER_ROWS);
	l->rows[l->row_count++] = (struct ledger_row){class, bytes};
}

/* Live blocks and mappings by class; `part` of `whole` of them is charged (1 of 1: all). */
static void live_rows(struct ledger *l, const struct classes *c, uint64_t part, uint64_t whole)
{
	double share = whole && part < whole ? (double)part / (double)whole : 1;

	for (size_t i = 0; i < c->count; i++)
		row(l, c->of[i].class, (uint64_t)((double)(c->of[i].heap + c->of[i].maps) * share));
	row(l, "other live blocks", (uint64_t)((double)c->heap_other * share));
	row(l, "interpreter arenas", (uint64_t)((double)c->interpreter * share));
}

/* Under RLIMIT_AS and RLIMIT_DATA virtual bytes are charged. */
static void virtual_rows(const struct ledger_input *in, const struct classes *c, struct ledger *l)
{
	const struct levels *v = in->levels;
	bool data_only = in->failure->limit == LIMIT_DATA;
	const struct failure *refused = model_failure(in->model);
	bool failed = refused && in->failure->kind != FAILURE_NONE;
	uint64_t heap = in->places->live_bytes, maps = in->places->map_bytes, usage;
	uint64_t threads = failed ? refused->stack_bytes : in->model->stack_bytes;
	uint64_t own_shared = failed ? refused->shared_bytes : in->model->shared_bytes;
	uint64_t main_stack = get(v, TRACE_LEVEL_VIRT_STACKS), whyoom = get(v, TRACE_LEVEL_WHYOOM);
	uint64_t file, shared, writable, data, held, overhead;

	usage = in->failure->usage_bytes;
	if (!main_stack)
		main_stack = get(v, TRACE_LEVEL_STACKS);
	if (data_only) {
		file = shared = whyoom = main_stack = 0;
		writable = usage;
	} else if (levels_get(v, TRACE_LEVEL_VIRT_FILE, &file)) {
		/* Libraries come and go seldom, so an older sample of them will do; anonymous
		 * memory is what is left of the moment's own sum. */
		shared = get(v, TRACE_LEVEL_VIRT_SHARED);
		if (!whyoom && shared > own_shared)
			whyoom = shared - own_shared; /* the trace */
		shared = less(shared, whyoom);
		writable = less(usage, file + shared + whyoom + main_stack);
	} else {
		/* Nobody looked from outside: the kernel counts what is private and writable. */
		shared = own_shared;
		writable = levels_get(v, TRACE_LEVEL_DATA, &data) && data <= usage
			       ? data
			       : less(usage, main_stack + shared + whyoom);
		file = less(usage, writable + main_stack + shared + whyoom);
	}
	/* What malloc holds: by its own account, else all that nothing else explains. */
	held = get(v, TRACE_LEVEL_MALLOC_ARENA) + get(v, TRACE_LEVEL_MALLOC_MMAP);
	if (held >= heap && held + maps + threads <= writable)
		overhead = held - heap;
	else
		overhead = less(writable, heap + maps + threads);
	live_rows(l, c, 1, 1);
	row(l, "allocator overhead and free", overhead);
	row(l, "anonymous mappings", c->maps_other);
	row(l, "stacks", threads + main_stack);
	row(l, "file mappings", file);
	row(l, "shared memory", shared);
	row(l, "whyoom", whyoom);
	row(l, "free", less(in->failure->limit_bytes, usage));
}

/* Everywhere else resident ones, from the last sample and what was acquired since. */
static void resident_rows(const struct ledger_input *in, const struct classes *c, struct ledger *l)
{
	const struct levels *v = in->levels;
	uint64_t live = in->places->live_bytes + in->places->map_bytes, anonymous;
	uint64_t whyoom = get(v, TRACE_LEVEL_WHYOOM), file = get(v, TRACE_LEVEL_RSS_FILE);
	uint64_t shmem = get(v, TRACE_LEVEL_RSS_SHMEM), stacks, room;
	bool cgroup = in->failure->limit == LIMIT_CGROUP;
	double share;

	if (!failure_resident(in->model, v, live, &anonymous))
		anonymous = live;
	/* The kernel's figure is of the main stack; of the others' it is part of `anonymous`. */
	stacks = get(v, TRACE_LEVEL_STACKS);
	if (stacks > anonymous)
		stacks = anonymous;
	room = anonymous - stacks;
	/* A block that was never touched is not resident; which ones is not known, so all are
	 * charged in proportion. */
	share = live && room < live ? (double)room / (double)live : 1;
	live_rows(l, c, room, live);
	row(l, "anonymous mappings", (uint64_t)((double)c->maps_other * share));
	row(l, "allocator overhead and free", less(room, live));
	row(l, "stacks", stacks);
	if (cgroup) {
		uint64_t cg_file = get(v, TRACE_LEVEL_CG_FILE),
			 cg_shmem = get(v, TRACE_LEVEL_CG_SHMEM);
		uint64_t cg_anon = get(v, TRACE_LEVEL_CG_ANON),
			 sampled = get(v, TRACE_LEVEL_RSS_ANON);

		row(l, "other processes", less(cg_anon, sampled));
		row(l, "shared memory", cg_shmem);
		row(l, "whyoom",
		    whyoom < less(cg_file, cg_shmem) ? whyoom : less(cg_file, cg_shmem));
		row(l, "file cache", less(cg_file, cg_shmem + whyoom));
		row(l, "kernel", get(v, TRACE_LEVEL_CG_KERNEL));
	} else {
		row(l, "file mappings", less(file, whyoom));
		row(l, "shared memory", shmem);
		row(l, "whyoom", whyoom < file ? whyoom : file);
		if (in->failure->limit == LIMIT_SYSTEM)
			row(l, "other processes",
			    less(in->failure->usage_bytes, anonymous + file + shmem));
	}
	row(l, "free", less(in->failure->limit_bytes, in->failure->usage_bytes));
}

bool ledger_adds_up(const struct ledger *ledger)
{
	uint64_t sum = (uint64_t)ledger->unaccounted; /* modulo 2^64, exact */

	for (uint32_t i = 0; i < ledger->row_count; i++)
		sum += ledger->rows[i].bytes;
	return sum == ledger->limit_bytes;
}

void ledger_make(const struct ledger_input *in, struct ledger *out)
{
	struct classes classes;
	uint64_t sum = 0;

	*out = (struct ledger){.pid = in->failure->pid,
	    .limit = in->failure->limit,
	    .limit_bytes = in->failure->limit_bytes,
	    .at = in->at,
	    .age_ns = in->age_ns};
	classify(in, &classes);
	switch (in->failure->limit) {
	case LIMIT_AS:
	case LIMIT_DATA:
	case LIMIT_UNKNOWN:
		virtual_rows(in, &classes, out);
		break;
	case LIMIT_NONE:
	case LIMIT_CGROUP:
	case LIMIT_SYSTEM:
	case LIMIT_OVERCOMMIT:
	case LIMIT_ADDRESS:
		resident_rows(in, &classes, out);
		break;
	}
	for (uint32_t i = 0; i < out->row_count; i++)
		sum += out->rows[i].bytes;
	out->unaccounted = (int64_t)(out->limit_bytes - sum);
	assert(ledger_adds_up(out));
}
