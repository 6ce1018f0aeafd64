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
	if (strcmp(cause, "state-retention") == 0)
		return "retained state";
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

/* What is ours of the process: all address space; of it the mapped trace, which is resident, and
 * private memory. The rest is address space that is kept for later. */
struct ours {
	uint64_t all, trace, anonymous;
};

static struct ours ours_of(const struct levels *v, uint64_t shared)
{
	struct ours o = {.all = get(v, TRACE_LEVEL_WHYOOM)};

	if (levels_get(v, TRACE_LEVEL_WHYOOM_TRACE, &o.trace)) {
		o.anonymous = get(v, TRACE_LEVEL_WHYOOM_ANON);
		if (o.anonymous > o.all)
			o.anonymous = o.all;
		if (o.trace > o.all - o.anonymous)
			o.trace = o.all - o.anonymous;
	} else {
		/* An older recording: the trace is what is mapped shared and not the program's. */
		o.trace = !o.all || shared < o.all ? shared : o.all;
		if (!o.all)
			o.all = o.trace;
		o.anonymous = o.all - o.trace;
	}
	return o;
}

/* `bytes` is the part of `whole` that is charged; all of it when that is not less. */
static uint64_t scaled(uint64_t bytes, uint64_t part, uint64_t whole)
{
	return part < whole ? (uint64_t)((double)bytes * ((double)part / (double)whole)) : bytes;
}

/*
 * Live blocks and mappings by class. `part` of `whole` is charged: each row in proportion, and what
 * rounding leaves, a few bytes, with the largest.
 */
static void live_rows(
    struct ledger *l, const struct classes *c, bool with_maps, uint64_t part, uint64_t whole)
{
	uint32_t first = l->row_count, largest = first;
	uint64_t sum = 0;

	for (size_t i = 0; i < c->count; i++)
		row(l, c->of[i].class, scaled(c->of[i].heap + c->of[i].maps, part, whole));
	row(l, "other live blocks", scaled(c->heap_other, part, whole));
	row(l, "interpreter arenas", scaled(c->interpreter, part, whole));
	if (with_maps)
		row(l, "anonymous mappings", scaled(c->maps_other, part, whole));
	if (part >= whole || l->row_count == first)
		return;
	for (uint32_t i = first; i < l->row_count; i++) {
		sum += l->rows[i].bytes;
		if (l->rows[i].bytes > l->rows[largest].bytes)
			largest = i;
	}
	if (sum < part && part - sum <= LEDGER_ROWS)
		l->rows[largest].bytes += part - sum;
}

/* What malloc says that it holds, when it said so at this very moment. */
struct held {
	bool known;
	uint64_t bytes, free;
};

static struct held held_by_malloc(const struct levels *v)
{
	/* Levels of one failure are written within milliseconds. */
	const uint64_t near_ns = 200000000;
	struct held h = {0};
	uint64_t at, arena;

	if (!levels_get(v, TRACE_LEVEL_MALLOC_ARENA, &arena) || !v->known[TRACE_LEVEL_VSIZE])
		return h;
	at = v->time_ns[TRACE_LEVEL_VSIZE];
	h.known = v->time_ns[TRACE_LEVEL_MALLOC_ARENA] + near_ns >= at;
	h.bytes = arena + get(v, TRACE_LEVEL_MALLOC_MMAP);
	h.free = get(v, TRACE_LEVEL_MALLOC_FREE);
	return h;
}

/*
 * `room` is what memory of malloc's blocks, anonymous mappings and thread stacks is in, `taken` of
 * it is known to be something else than malloc's. With malloc's own account its overhead (headers,
 * rounding, threads' caches) and its free lists have rows, and what is left is not explained, but
 * for address space up to `without_memory`: that is what it keeps to grow into. Without it, all
 * that nothing else explains is taken for malloc's.
 */
static void allocator_rows(struct ledger *l, const struct held *h, uint64_t heap, uint64_t taken,
    uint64_t room, uint64_t without_memory)
{
	uint64_t free_lists, left;

	if (!h->known || h->bytes < heap || h->bytes > less(room, taken)) {
		row(l, "allocator overhead and free", less(room, heap + taken));
		return;
	}
	free_lists = h->free < h->bytes - heap ? h->free : h->bytes - heap;
	row(l, "allocator overhead", h->bytes - heap - free_lists);
	row(l, "allocator free lists", free_lists);
	left = room - taken - h->bytes;
	row(l, "kept to grow into", left < without_memory ? left : without_memory);
}

/* Under RLIMIT_AS and RLIMIT_DATA virtual bytes are charged. */
static void virtual_rows(const struct ledger_input *in, const struct classes *c, struct ledger *l)
{
	const struct levels *v = in->levels;
	bool data_only = in->failure->limit == LIMIT_DATA, data_known;
	const struct failure *refused = model_failure(in->model);
	bool failed = refused && in->failure->kind != FAILURE_NONE;
	uint64_t heap = in->places->live_bytes, maps = in->places->map_bytes, usage;
	uint64_t threads = failed ? refused->stack_bytes : in->model->stack_bytes;
	uint64_t own_shared = failed ? refused->shared_bytes : in->model->shared_bytes;
	uint64_t main_stack = get(v, TRACE_LEVEL_VIRT_STACKS), all_shared = 0;
	uint64_t file = 0, shared = 0, room, data = 0, whyoom, without_memory = 0;
	struct held held = held_by_malloc(v);
	struct ours ours;

	usage = in->failure->usage_bytes;
	levels_get(v, TRACE_LEVEL_VIRT_SHARED, &all_shared);
	ours = ours_of(v, less(all_shared, own_shared));
	if (!main_stack)
		main_stack = get(v, TRACE_LEVEL_STACKS);
	data_known = levels_get(v, TRACE_LEVEL_DATA, &data) && data <= usage;
	if (data_only) {
		/* Private and writable: of ours that is the memory, and no address space. */
		main_stack = 0;
		whyoom = ours.anonymous;
		room = less(usage, whyoom);
	} else if (levels_get(v, TRACE_LEVEL_VIRT_FILE, &file)) {
		/* Libraries come and go seldom, so an older sample of them will do; anonymous
		 * memory is what is left of the moment's own sum. */
		whyoom = ours.all;
		shared = less(all_shared, ours.trace);
		room = less(usage, file + shared + whyoom + main_stack);
		/* What nobody can write to has no memory. */
		if (data_known)
			without_memory =
			    less(less(room, less(data, ours.anonymous)), in->model->reserved_bytes);
	} else {
		/* Nobody looked from outside: the kernel counts what is private and writable, ours
		 * among it. */
		whyoom = ours.all;
		shared = own_shared;
		room = data_known ? less(data, ours.anonymous)
				  : less(usage, main_stack + shared + whyoom);
		file = less(usage, room + main_stack + shared + whyoom);
	}
	live_rows(l, c, false, 1, 1);
	allocator_rows(l, &held, heap, maps + threads, room, without_memory);
	row(l, "anonymous mappings", c->maps_other);
	row(l, "stacks", threads + main_stack);
	row(l, "file mappings", file);
	row(l, "shared memory", shared);
	row(l, "whyoom", whyoom);
	row(l, "free", less(in->failure->limit_bytes, usage));
}

static uint64_t least(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/* The anonymous resident bytes of the process at the time of another sample. */
static uint64_t anonymous_at(const struct model *m, const struct levels *v, uint64_t time_ns)
{
	uint64_t value = get(v, TRACE_LEVEL_RSS_ANON), then, now;
	double part, moved;

	if (!v->known[TRACE_LEVEL_RSS_ANON])
		return 0;
	then = timeline_live(&m->timeline, v->time_ns[TRACE_LEVEL_RSS_ANON]);
	now = timeline_live(&m->timeline, time_ns);
	part = then && value < then ? (double)value / (double)then : 1;
	moved = ((double)now - (double)then) * part;
	return moved < 0 ? less(value, (uint64_t)-moved) : value + (uint64_t)moved;
}

/* What a cgroup is charged beside the process: samples of one moment, carried on. */
struct group {
	uint64_t others, shmem, kernel, cache;
};

static struct group group_of(const struct ledger_input *in)
{
	const struct levels *v = in->levels;
	struct group g = {0};
	uint64_t anonymous, own, at;

	if (levels_get(v, TRACE_LEVEL_CG_ANON, &anonymous)) {
		at = v->time_ns[TRACE_LEVEL_CG_ANON];
		own = anonymous_at(in->model, v, at);
		/* Much less than the process alone had: looked at when that was gone already. */
		g.others = at >= in->model->last_ns && anonymous < own - own / 8
			       ? anonymous
			       : less(anonymous, own);
	}
	g.shmem = get(v, TRACE_LEVEL_CG_SHMEM);
	g.kernel = get(v, TRACE_LEVEL_CG_KERNEL);
	g.cache = less(get(v, TRACE_LEVEL_CG_FILE), g.shmem);
	return g;
}

/* The anonymous resident bytes at the moment, from the sample and what was acquired since; no more
 * than a cgroup's limit can have let in. */
static uint64_t anonymous_now(
    const struct ledger_input *in, const struct group *g, uint64_t live, uint64_t unsampled)
{
	uint64_t anonymous, grown, room;

	if (!failure_resident(in->model, in->levels, live, &anonymous))
		return unsampled;
	if (in->failure->limit != LIMIT_CGROUP)
		return anonymous;
	grown = least(failure_grown(in->model, in->levels, live), anonymous);
	room = less(in->failure->limit_bytes, anonymous - grown + g->others + g->shmem + g->kernel);
	return anonymous - grown + least(grown, room);
}

/* Everywhere else resident ones, from the last sample and what was acquired since. */
static void resident_rows(const struct ledger_input *in, const struct classes *c, struct ledger *l)
{
	const struct levels *v = in->levels;
	bool cgroup = in->failure->limit == LIMIT_CGROUP;
	uint64_t live = in->places->live_bytes + in->places->map_bytes;
	uint64_t file = get(v, TRACE_LEVEL_RSS_FILE), shmem = get(v, TRACE_LEVEL_RSS_SHMEM);
	struct ours ours = ours_of(v, get(v, TRACE_LEVEL_WHYOOM));
	struct held held = held_by_malloc(v);
	struct group g = group_of(in);
	uint64_t anonymous, stacks, room, trace, used = 0;

	anonymous = anonymous_now(in, &g, live, live + ours.anonymous);
	/* The kernel's figure is of the main stack; of the others' it is part of `anonymous`. */
	ours.anonymous = least(ours.anonymous, anonymous);
	stacks = least(get(v, TRACE_LEVEL_STACKS), anonymous - ours.anonymous);
	room = anonymous - ours.anonymous - stacks;
	/* A block that was never touched is not resident; which ones is not known, so all are
	 * charged in proportion. */
	live_rows(l, c, true, room, live);
	/* malloc's account is of address space: it parts what is resident beyond live blocks. */
	if (room < live || held.bytes < in->places->live_bytes)
		held.known = false;
	held.bytes = least(held.bytes, less(room, in->places->map_bytes));
	allocator_rows(l, &held, in->places->live_bytes, in->places->map_bytes, room, 0);
	row(l, "stacks", stacks);
	if (cgroup) {
		/* Cache is let go before anybody is refused: what was sampled may be gone. */
		g.cache = least(g.cache,
		    less(in->failure->limit_bytes, anonymous + g.others + g.shmem + g.kernel));
		trace = least(ours.trace, g.cache);
		row(l, "other processes", g.others);
		row(l, "shared memory", g.shmem);
		row(l, "whyoom", trace + ours.anonymous);
		row(l, "file cache", g.cache - trace);
		row(l, "kernel", g.kernel);
	} else {
		trace = least(ours.trace, file);
		row(l, "file mappings", file - trace);
		row(l, "shared memory", shmem);
		row(l, "whyoom", trace + ours.anonymous);
		if (in->failure->limit == LIMIT_SYSTEM)
			row(l, "other processes",
			    less(in->failure->usage_bytes, anonymous + file + shmem));
	}
	for (uint32_t i = 0; i < l->row_count; i++)
		used += l->rows[i].bytes;
	/* The high-water mark lies between two samples: the rows are of it, the usage is a
	 * sample's. */
	if (!cgroup || used < in->failure->usage_bytes)
		used = in->failure->usage_bytes;
	row(l, "free", less(in->failure->limit_bytes, used));
}

/* Of the samples that the rows come from, how old is the oldest? */
static uint64_t age(const struct ledger_input *in)
{
	uint64_t moment = in->places->moment_ns, at;

	if (in->failure->limit != LIMIT_CGROUP || !in->levels->known[TRACE_LEVEL_CG_ANON])
		return in->age_ns;
	at = in->levels->time_ns[TRACE_LEVEL_CG_ANON];
	return moment > at && moment - at > in->age_ns ? moment - at : in->age_ns;
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
	    .age_ns = age(in)};
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
	case LIMIT_DEVICE: /* device_ledger.c */
		resident_rows(in, &classes, out);
		break;
	}
	for (uint32_t i = 0; i < out->row_count; i++)
		sum += out->rows[i].bytes;
	out->unaccounted = (int64_t)(out->limit_bytes - sum);
	assert(ledger_adds_up(out));
}
