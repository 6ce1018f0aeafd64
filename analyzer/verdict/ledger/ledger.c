#include "verdict/ledger/ledger.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "util/num.h"
#include "verdict/failure/failure.h"
#include "verdict/failure/volume.h"
#include "verdict/framework/framework_roles.h"
#include "verdict/ledger/classes.h"
#include "verdict/ledger/malloc_held.h"

void ledger_row(struct ledger *l, const char *class, uint64_t bytes)
{
	if (!bytes)
		return;
	assert(l->row_count < LEDGER_ROWS);
	l->rows[l->row_count++] = (struct ledger_row){class, bytes};
}

uint64_t ledger_get(const struct ledger *l, const char *class)
{
	for (uint32_t i = 0; i < l->row_count; i++)
		if (strcmp(l->rows[i].class, class) == 0)
			return l->rows[i].bytes;
	return 0;
}

uint64_t ledger_sum(const struct ledger *l)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < l->row_count; i++)
		sum += l->rows[i].bytes;
	return sum;
}

/* The recorder's own memory in the process: address space, the resident part of the mapped trace,
 * and private memory. The rest is reserved for later. */
struct ours {
	uint64_t all, trace, anonymous;
};

static struct ours ours_of(const struct levels *v, uint64_t shared)
{
	struct ours o = {.all = levels_value(v, TRACE_LEVEL_WHYOOM)};

	if (levels_get(v, TRACE_LEVEL_WHYOOM_TRACE, &o.trace)) {
		o.anonymous = levels_value(v, TRACE_LEVEL_WHYOOM_ANON);
		o.anonymous = num_least(o.anonymous, o.all);
		o.trace = num_least(o.trace, o.all - o.anonymous);
	} else {
		/* In older recordings the trace is the shared memory that the program did not
		 * map. */
		o.trace = !o.all || shared < o.all ? shared : o.all;
		if (!o.all)
			o.all = o.trace;
		o.anonymous = o.all - o.trace;
	}
	return o;
}

/* Scale `bytes` by part / whole, but never up. */
static uint64_t scaled(uint64_t bytes, uint64_t part, uint64_t whole)
{
	return part < whole ? (uint64_t)((double)bytes * ((double)part / (double)whole)) : bytes;
}

static uint64_t shared_of(const struct classes *c)
{
	uint64_t sum = 0;

	for (unsigned i = 0; i < CLASS_COUNT; i++)
		sum += c->of[i].shared;
	return sum;
}

/* Add rows for live blocks and mappings by class. `part` of `whole` is charged: each row in
 * proportion, and the largest row takes the few bytes of rounding. `shared` is charged of all live
 * shared memory, each class in proportion. Returns the classes' shared memory. */
static uint64_t live_rows(struct ledger *l, const struct classes *c, bool with_maps, uint64_t part,
    uint64_t whole, uint64_t shared)
{
	uint64_t sum = 0, in_classes = 0, all_shared = shared_of(c) + c->shared_other;
	uint32_t first = l->row_count, largest = first;

	for (unsigned i = 0; i < CLASS_COUNT; i++) {
		uint64_t of_it = scaled(c->of[i].shared, shared, all_shared);

		ledger_row(
		    l, class_name(i), scaled(c->of[i].heap + c->of[i].maps, part, whole) + of_it);
		in_classes += of_it;
	}
	ledger_row(l, "other live blocks", scaled(c->heap_other, part, whole));
	ledger_row(l, LEDGER_ARENAS, scaled(c->arenas, part, whole));
	ledger_row(l, LEDGER_ARENAS_FREE, scaled(c->arenas_free, part, whole));
	if (with_maps)
		ledger_row(l, "anonymous mappings", scaled(c->maps_other, part, whole));
	if (part >= whole || l->row_count == first)
		return in_classes;
	for (uint32_t i = first; i < l->row_count; i++) {
		sum += l->rows[i].bytes;
		if (l->rows[i].bytes > l->rows[largest].bytes)
			largest = i;
	}
	sum -= in_classes;
	if (sum < part && part - sum <= LEDGER_ROWS)
		l->rows[largest].bytes += part - sum;
	return in_classes;
}

/* What is left to explain, in bytes: all; up to `before` of it were there before an attach, beside
 * malloc's; up to `without_memory` of it are address space that malloc may keep. */
struct remainder {
	uint64_t bytes, before, without_memory;
};

/* Divide the remainder: memory that blocks, anonymous mappings and stacks do not explain. After an
 * attach the blocks of before, and up to `before` bytes of other memory, have their row. If malloc
 * has statistics, its overhead (headers, rounding, threads' caches) and its free lists get rows. Up
 * to `without_memory` of the remainder is address space that malloc reserves to grow into. The
 * remainder then is in free lists, too, up to the bytes acquired since the statistics; more is not
 * explained. Without statistics all of it is malloc's. */
static void allocator_rows(struct ledger *l, const struct malloc_held *h, struct remainder of)
{
	uint64_t overhead, free_lists, kept, since, blocks, other, rest = of.bytes;

	if (!h->known) {
		other = num_least(of.before, rest);
		ledger_row(l, LEDGER_BEFORE, other);
		ledger_row(l, LEDGER_UNSPLIT, rest - other);
		return;
	}
	blocks = num_least(h->before, rest);
	rest -= blocks;
	overhead = num_least(h->overhead, rest);
	rest -= overhead;
	free_lists = num_least(h->free, rest);
	rest -= free_lists;
	other = num_least(of.before, rest);
	rest -= other;
	ledger_row(l, LEDGER_BEFORE, blocks + other);
	kept = num_least(rest, of.without_memory);
	since = num_least(rest - kept, h->since);
	if (h->split) {
		ledger_row(l, "allocator overhead", overhead);
		ledger_row(l, LEDGER_FREE_LISTS, free_lists + since);
	} else {
		ledger_row(l, LEDGER_UNSPLIT, overhead + since);
	}
	ledger_row(l, LEDGER_KEPT, kept);
}

/* If the recording ended when rights were given up, further bytes came later. */
static void unrecorded_rows(struct ledger *l, const struct malloc_held *h, uint64_t rest)
{
	uint64_t overhead = h->known && h->split ? num_least(h->overhead, rest) : 0;
	uint64_t free_lists = h->known && h->split ? num_least(h->free, rest - overhead) : 0;

	ledger_row(l, "allocator overhead", overhead);
	ledger_row(l, LEDGER_FREE_LISTS, free_lists);
	ledger_row(l, LEDGER_UNRECORDED, rest - overhead - free_lists);
}

static bool stopped(const struct ledger_input *in)
{
	const struct feed *feed = &in->r->model->feed;

	return feed->facts(feed->self)->rights.stopped_ns != 0;
}

/* Set the bytes of running threads' stacks: the supervisor's sample; or else one for each thread,
 * of the size that another thread was refused, or of the default size. Set *unjoined to those of
 * ended threads that nobody joined: more is mapped than glibc keeps for new threads, by the sample,
 * or, where a thread was refused, by what nothing else in `room` tells. All are at most `room`;
 * `told` bytes of it are malloc's. */
static void thread_stacks(const struct ledger_input *in, uint64_t room, uint64_t told,
    uint64_t *running, uint64_t *unjoined)
{
	const struct failure *refused = model_failure(in->r->model);
	uint64_t stacks = 0, threads, ended, own, size, left,
		 each = supervised_stack_each(&in->r->model->feed);
	bool wanted = refused && refused->api == TRACE_API_THREAD;

	/* A sample from before the first thread does not include later ones. */
	levels_get(in->levels, TRACE_LEVEL_VIRT_THREADS, &stacks);
	size = wanted ? refused->size : each;
	threads = num_less(levels_value(in->levels, TRACE_LEVEL_THREADS), 1);
	ended = num_less(levels_value(in->levels, TRACE_LEVEL_THREADS_STARTED), threads);
	own = threads && size < UINT64_MAX / threads ? threads * size : 0;
	left = num_less(stacks, own);
	if (wanted)
		left = num_most(left, num_less(room, told + own));
	*unjoined = 0;
	if (own && left > STACKS_KEPT && left / size <= ended) {
		*running = num_least(own, room);
		*unjoined = num_least(left, room - *running);
		return;
	}
	*running = num_least(!wanted && (stacks || !each) ? stacks : own, room);
}

/* Return the part of `rest` beside malloc's memory that is data of the program and its libraries:
 * at most the size in their files, less the parts that the loader made read-only after writing
 * them. */
static uint64_t module_data(
    const struct ledger_input *in, const struct malloc_held *held, uint64_t rest)
{
	const struct feed *feed = &in->r->model->feed;

	return num_least(feed->facts(feed->self)->module_data,
	    held->known ? num_less(rest, held->overhead + held->free) : rest);
}

static bool never_had_threads(const struct levels *v)
{
	uint64_t started;

	return levels_get(v, TRACE_LEVEL_THREADS_STARTED, &started) && !started;
}

/* RLIMIT_AS and RLIMIT_DATA charge virtual bytes. */
static void virtual_rows(const struct ledger_input *in, const struct classes *c, struct ledger *l)
{
	const struct levels *v = in->levels;
	bool data_only = in->r->failure.limit == LIMIT_DATA, data_known;
	const struct failure *refused = model_failure(in->r->model);
	bool failed = refused && in->r->failure.kind != FAILURE_NONE;
	uint64_t heap = in->r->callsites->live_bytes, usage;
	uint64_t maps =
	    in->r->callsites->map_bytes - (data_only ? in->r->callsites->shared_bytes : 0);
	uint64_t threads = failed ? refused->stack_bytes : in->r->model->maps.stack_bytes;
	uint64_t own_shared = failed ? refused->shared_bytes : in->r->model->maps.shared_bytes;
	uint64_t known_shared = data_only ? 0 : in->r->callsites->shared_bytes;
	uint64_t known_files = in->r->callsites->file_bytes; /* 0 if not charged */
	uint64_t sampled_ns = v->time_ns[TRACE_LEVEL_VIRT_FILE], sampled_files = 0;
	uint64_t sampled_shared = own_shared;
	uint64_t main_stack = levels_value(v, TRACE_LEVEL_VIRT_STACKS), all_shared = 0;
	uint64_t file = 0, shared = 0, room, data = 0, whyoom, without_memory = 0, own_data = 0;
	uint64_t running, unjoined;
	struct malloc_held held;
	struct ours ours;

	malloc_held(in->r->model, in->r->callsites, 0, &held);
	usage = in->r->failure.usage_bytes;
	levels_get(v, TRACE_LEVEL_VIRT_SHARED, &all_shared);
	if (known_files && !data_only) {
		sampled_files = timeline_came(&in->r->model->timeline, sampled_ns, CAME_FILE);
		sampled_shared =
		    timeline_came(&in->r->model->timeline, sampled_ns, CAME_SHARED_FILE);
		own_shared = 0; /* part of known_files */
	}
	ours = ours_of(v, num_less(all_shared, sampled_shared + known_shared));
	if (!main_stack)
		main_stack = levels_value(v, TRACE_LEVEL_STACKS);
	data_known = levels_get(v, TRACE_LEVEL_DATA, &data) && data <= usage;
	if (data_only) {
		/* The limit charges only private writable memory, including the recorder's. */
		main_stack = 0;
		whyoom = ours.anonymous;
		room = num_less(usage, whyoom);
	} else if (levels_get(v, TRACE_LEVEL_VIRT_FILE, &file)) {
		/* Libraries seldom come and go, so an older sample of them will do; the rest of the
		 * moment's own sum is anonymous memory. */
		whyoom = ours.all;
		shared = num_less(all_shared, ours.trace + known_shared);
		if (known_files) {
			file = num_less(file, sampled_files);
			shared = num_less(shared, sampled_shared);
		}
		room = num_less(usage, file + shared + whyoom + main_stack);
		/* Pages that nobody can write to have no memory. glibc reserves some for threads
		 * only. */
		if (data_known && !(held.split && never_had_threads(v)))
			without_memory = num_less(num_less(room, num_less(data, ours.anonymous) +
								     known_shared + known_files),
			    in->r->model->maps.reserved_bytes);
	} else {
		/* Without a supervisor, the kernel's private writable memory includes ours. */
		whyoom = ours.all;
		shared = own_shared;
		room = num_less(usage, main_stack + shared + whyoom);
		/* Bytes acquired since the sample are missing in it. */
		if (data_known)
			room =
			    num_least(room, num_most(heap + maps, num_less(data, ours.anonymous) +
								      known_shared + known_files));
		file = num_less(usage, room + main_stack + shared + whyoom);
	}
	room = num_less(room, heap + maps);
	/* Stacks that the C library made by itself have no event. */
	thread_stacks(in, room,
	    held.known ? held.overhead + held.free + held.since + without_memory : room, &running,
	    &unjoined);
	threads = num_most(threads, running);
	room = num_less(room, threads + unjoined);
	if (data_only || !v->known[TRACE_LEVEL_VIRT_FILE])
		own_data = module_data(in, &held, room);
	shared += known_shared - live_rows(l, c, false, 1, 1, known_shared);
	if (stopped(in))
		unrecorded_rows(l, &held, room - own_data);
	else
		allocator_rows(l, &held,
		    (struct remainder){
			room - own_data, in->r->model->base.writable, without_memory});
	ledger_row(l, "anonymous mappings", c->maps_other);
	ledger_row(l, LEDGER_STACKS, threads + main_stack);
	ledger_row(l, LEDGER_UNJOINED, unjoined);
	ledger_row(l, "file mappings", file + own_data + c->files_other);
	ledger_row(l, "shared memory", shared);
	ledger_row(l, "whyoom", whyoom);
	ledger_row(l, LEDGER_FREE, num_less(in->r->failure.limit_bytes, usage));
}

/* Limit growth since the sample to what the cgroup's limit allows, and give the group at least the
 * process's shared memory. */
static void keep_within(
    const struct ledger_input *in, struct lived live, struct cgroup_shares *g, struct resident *now)
{
	struct resident grown = failure_grown(in->r->model, in->levels, live);
	uint64_t limit = num_less(in->r->failure.limit_bytes, in->r->failure.swap_bytes), room,
		 more;

	grown.anonymous = num_least(grown.anonymous, now->anonymous);
	now->anonymous -= grown.anonymous;
	more = num_less(now->shared, num_least(grown.shared, now->shared));
	if (g->shmem < more)
		g->shmem = num_least(more, num_less(limit, g->kernel));
	room = num_less(limit, now->anonymous + g->others + g->shmem + g->kernel);
	more = num_least(num_less(now->shared, g->shmem), room);
	g->shmem += more;
	now->anonymous += num_least(grown.anonymous, room - more);
}

/* Return the other processes' memory at the moment. A cgroup's killer strikes when nothing of the
 * limit is left: recorded siblings grew since the sample to their live bytes, as far as that
 * fits. */
static uint64_t others_now(
    const struct ledger_input *in, const struct cgroup_shares *g, uint64_t anonymous)
{
	uint64_t room = num_less(in->r->failure.limit_bytes,
	    in->r->failure.swap_bytes + anonymous + g->others + g->shmem + g->kernel);

	if (in->r->failure.kind != FAILURE_OOM_KILL)
		return g->others;
	return g->others + num_least(room, num_less(in->r->tree.siblings_live, g->others));
}

/* All other limits charge resident bytes: the last sample and later acquisitions. */
static void resident_rows(const struct ledger_input *in, const struct classes *c, struct ledger *l)
{
	const struct levels *v = in->levels;
	bool cgroup = limit_is_cgroup(in->r->failure.limit);
	struct lived lived = {in->r->callsites->live_bytes + in->r->callsites->map_bytes,
	    in->r->callsites->shared_bytes};
	uint64_t live = num_less(lived.all, lived.shared);
	uint64_t file = levels_value(v, TRACE_LEVEL_RSS_FILE);
	struct ours ours = ours_of(v, levels_value(v, TRACE_LEVEL_WHYOOM));
	struct malloc_held held;
	struct cgroup_shares g = cgroup_shares_of(in->r->model, v);
	struct resident now;
	uint64_t anonymous, stacks, room, trace, in_classes, inherited, used;

	malloc_held(
	    in->r->model, in->r->callsites, failure_measured_ns(in->r->model, v, lived), &held);
	/* Without a sample, all live bytes count as resident. */
	if (!failure_resident(in->r->model, v, lived, &now))
		now = (struct resident){live + ours.anonymous, lived.shared};
	if (cgroup)
		keep_within(in, lived, &g, &now);
	anonymous = now.anonymous;
	ours.anonymous = num_least(ours.anonymous, anonymous);
	/* The kernel reports the main stack alone. */
	stacks = num_least(
	    levels_value(v, TRACE_LEVEL_STACKS) + levels_value(v, TRACE_LEVEL_RSS_THREADS),
	    anonymous - ours.anonymous);
	room = anonymous - ours.anonymous - stacks;
	/* A block that was never touched is not resident. Which blocks is unknown, so all are
	 * charged in proportion. Shared memory counts in full, whichever process wrote to it. */
	in_classes = live_rows(
	    l, c, true, room, live, num_least(cgroup ? g.shmem : now.shared, lived.shared));
	inherited = num_least(in->r->model->measured.inherited_bytes, num_less(room, live));
	ledger_row(l, "inherited from the parent", inherited);
	if (stopped(in))
		unrecorded_rows(l, &held, num_less(room, live + inherited));
	else
		allocator_rows(l, &held,
		    (struct remainder){
			num_less(room, live + inherited), in->r->model->base.resident, 0});
	ledger_row(l, LEDGER_STACKS, stacks);
	if (cgroup) {
		g.others = others_now(in, &g, anonymous);
		/* The kernel drops its cache before it refuses: sampled cache may be gone. */
		g.cache = num_least(g.cache,
		    num_less(in->r->failure.limit_bytes,
			in->r->failure.swap_bytes + anonymous + g.others + g.shmem + g.kernel));
		trace = num_least(ours.trace, g.cache);
		ledger_row(l, "other processes", g.others);
		ledger_row(l, "shared memory", num_less(g.shmem, in_classes));
		ledger_row(l, "whyoom", trace + ours.anonymous);
		ledger_row(l, "file cache", g.cache - trace);
		ledger_row(l, "kernel", g.kernel);
		/* The killer strikes when the swap is full, too. */
		if (in->r->failure.limit == LIMIT_CGROUP)
			ledger_row(l, "swap",
			    in->r->failure.kind == FAILURE_OOM_KILL ? in->r->failure.swap_bytes
								    : g.swap);
	} else {
		trace = num_least(ours.trace, file);
		ledger_row(l, "file mappings", file - trace);
		ledger_row(l, "shared memory", now.shared - in_classes);
		ledger_row(l, "whyoom", trace + ours.anonymous);
		if (in->r->failure.limit == LIMIT_COMMIT)
			ledger_row(l, "other processes",
			    num_less(
				in->r->failure.usage_bytes, levels_value(v, TRACE_LEVEL_DATA)));
		if (in->r->failure.limit == LIMIT_SYSTEM)
			ledger_row(l, "other processes",
			    num_less(in->r->failure.usage_bytes, anonymous + file + now.shared));
	}
	/* The rows are of the peak, between two samples; the usage is a sample's. */
	used = in->r->failure.usage_bytes;
	if (cgroup)
		used = num_most(ledger_sum(l), used);
	ledger_row(l, LEDGER_FREE, num_less(in->r->failure.limit_bytes, used));
}

/* Divide a file system in memory among its users. */
static void volume_rows(const struct ledger_input *in, const struct classes *c, struct ledger *l)
{
	const struct volume_shares of = volume_shares(in->r);
	uint64_t in_classes = live_rows(l, c, false, 1, 1, of.own);

	ledger_row(l, "shared memory", num_less(of.own, in_classes));
	ledger_row(l, "other processes", of.siblings);
	ledger_row(l, "files left behind", of.left);
	ledger_row(l, "other files", of.files - of.left);
	ledger_row(
	    l, LEDGER_FREE, num_less(in->r->failure.limit_bytes, in->r->failure.usage_bytes));
}

/* Return the age in ns of the rows' oldest sample. */
static uint64_t age(const struct ledger_input *in)
{
	uint64_t moment = in->r->callsites->moment_ns, at;

	/* Mappings are recorded, not sampled. */
	if (in->r->failure.limit == LIMIT_SHM)
		return 0;
	if (!limit_is_cgroup(in->r->failure.limit) || !in->levels->known[TRACE_LEVEL_CG_ANON])
		return in->age_ns;
	at = in->levels->time_ns[TRACE_LEVEL_CG_ANON];
	return moment > at && moment - at > in->age_ns ? moment - at : in->age_ns;
}

bool ledger_adds_up(const struct ledger *ledger)
{
	/* modulo 2^64, exact */
	return ledger_sum(ledger) + (uint64_t)ledger->unaccounted == ledger->limit_bytes;
}

void ledger_close(struct ledger *l)
{
	l->unaccounted = (int64_t)(l->limit_bytes - ledger_sum(l));
}

int ledger_make(const struct ledger_input *in, struct ledger *out)
{
	const struct verdict_result *r = in->r;
	enum role *roles = framework_roles(r, r->model, r->callsites);
	const struct classes_input lives = {.callsites = r->callsites,
	    .roles = roles,
	    .candidates = r->ranking.list,
	    .candidate_count = in->with_claims ? r->ranking.count : 0,
	    .undecided = in->with_claims && r->verdict.cause == CAUSE_UNKNOWN,
	    .attached = r->model->base.attached,
	    .heap_bytes = r->callsites->live_bytes,
	    .map_bytes = r->callsites->map_bytes,
	    .shared_bytes = r->callsites->shared_bytes,
	    .file_bytes = r->callsites->file_bytes};
	struct classes classes;
	int rc = roles ? classes_make(&lives, &classes) : -ENOMEM;

	free(roles);
	if (rc)
		return rc;
	*out = (struct ledger){.pid = r->model->feed.facts(r->model->feed.self)->pid,
	    .limit = r->failure.limit,
	    .limit_bytes = r->failure.limit_bytes,
	    .at = in->at,
	    .age_ns = age(in)};
	switch (r->failure.limit) {
	case LIMIT_AS:
	case LIMIT_DATA:
	case LIMIT_MAPPINGS: /* it counts no bytes, but bytes show where memory went */
	case LIMIT_UNKNOWN:
		virtual_rows(in, &classes, out);
		break;
	case LIMIT_SHM:
		volume_rows(in, &classes, out);
		break;
	case LIMIT_NONE:
	case LIMIT_CGROUP:
	case LIMIT_CGROUP_HIGH:
	case LIMIT_SYSTEM:
	case LIMIT_OVERCOMMIT:
	case LIMIT_COMMIT:
	case LIMIT_ADDRESS:
	case LIMIT_DEVICE: /* device.c */
	case LIMIT_TORCH:
	case LIMIT_ARENA: /* explain/join/join.c */
		resident_rows(in, &classes, out);
		break;
	}
	ledger_close(out);
	return 0;
}
