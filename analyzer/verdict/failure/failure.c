#include "verdict/failure/failure.h"

#include <signal.h>

#include "util/num.h"
#include "util/tuned.h"

TUNED(uint64_t, SLACK_BYTES, 1ull << 20,
    "glibc asks for more than the block: pages, a pad of 128 KiB at its heap's top; an interpreter "
    "for an arena of up to 1 MiB");
TUNED(uint64_t, REQUEST_PART, 8, "an allocator rounds a block up to its next size class: by 1/8");
TUNED(uint64_t, SLACK_MAPPINGS, 4,
    "changing part of a mapping makes three of it, and the kernel's own list has one more");
TUNED(uint64_t, OVERCOMMIT_PART, 2,
    "the kernel's heuristic refuses what exceeds memory and swap; from half of the memory on, no "
    "other limit being near, that is the likeliest reason");
TUNED(uint64_t, NEAR_PEAK_PART, 8,
    "repeated peaks of one program differ by some percent; an eighth more is another phase");
TUNED(uint64_t, SOON_PART, 10,
    "the kernel reclaims and swaps before it kills: the peak is a little earlier, and in a long "
    "run no phase is much shorter than a tenth");
TUNED(uint64_t, SOON_STEPS, 2, "one step may be much shorter than the longest, the next is not");
TUNED(uint64_t, GROUP_NEAR_PART, 10,
    "a process may fill a tenth of its cgroup between the last sample and the kill");
TUNED(uint64_t, HIGH_NEAR_PART, 16,
    "the kernel reclaims a little below memory.high, and the process's sample is a little older");
TUNED(uint64_t, HELD_BACK_MIN, 100,
    "a burst exceeds memory.high a few times and goes on; each stall counts once, or more often");
TUNED(uint64_t, SYSTEM_NEAR_PART, 20,
    "the kernel kills below some percent of available memory; a machine in use has more");
TUNED(uint64_t, RECENT_NS, 5000000000u,
    "an unchanged process is sampled less and less often, but within seconds");
TUNED(uint64_t, RECENT_PART, 10, "and less often the longer it runs");
TUNED(uint64_t, NEXT_TO_PART, 16,
    "the loader or a thread's stack asks for some megabytes: 8 MiB are a sixteenth of 128 MiB");
TUNED(uint64_t, MACHINE_PART, 4,
    "at the last sample before its killer strikes, a machine has less than a quarter left");
TUNED(uint64_t, ALONE_BYTES, 3ull << 20,
    "the supervisor and its witness have a megabyte or two; an interpreter has five at least");

/* What the kernel leaves free of CommitLimit: vm.admin_reserve_kbytes, for processes without
 * CAP_SYS_ADMIN, and a 32nd of the process's own size (linux, mm/util.c, __vm_enough_memory). */
#define COMMIT_ADMIN_BYTES (8ull << 20)
#define COMMIT_OWN_PART 32

/* No machine today has address space for larger requests. */
#define ADDRESS_BYTES (1ull << 47)

const char *limit_kind_name(enum limit_kind kind)
{
	static const char *const names[] = {
	    [LIMIT_NONE] = "none",
	    [LIMIT_AS] = "RLIMIT_AS",
	    [LIMIT_DATA] = "RLIMIT_DATA",
	    [LIMIT_CGROUP] = "cgroup memory.max",
	    [LIMIT_CGROUP_HIGH] = "cgroup memory.high",
	    [LIMIT_SYSTEM] = "system memory",
	    [LIMIT_OVERCOMMIT] = "overcommit",
	    [LIMIT_COMMIT] = "CommitLimit (vm.overcommit_memory=2)",
	    [LIMIT_ADDRESS] = "address space",
	    [LIMIT_MAPPINGS] = "vm.max_map_count",
	    [LIMIT_DEVICE] = "device memory",
	    [LIMIT_TORCH] = "PyTorch memory fraction",
	    [LIMIT_SHM] = "tmpfs size",
	    [LIMIT_ARENA] = "ONNX Runtime arena",
	    [LIMIT_UNKNOWN] = "unknown",
	};

	return names[kind];
}

const char *failure_kind_name(enum failure_kind kind)
{
	static const char *const names[] = {
	    [FAILURE_NONE] = "none",
	    [FAILURE_HOST_ALLOC] = "host-alloc",
	    [FAILURE_PYTHON_MEMORYERROR] = "python-memoryerror",
	    [FAILURE_OOM_KILL] = "oom-kill",
	    [FAILURE_KILLED] = "none", /* nothing was refused, and nothing ran out */
	    [FAILURE_STALLED] = "stalled",
	    [FAILURE_BUS] = "bus-error",
	    [FAILURE_CUDA_OOM] = "cuda-oom",
	};

	return names[kind];
}

struct ending failure_ending(const struct model *m, const struct supervised *s)
{
	const struct trace_facts *facts = m->feed.facts(m->feed.self);

	if (facts->end_how == TRACE_END_DETACHED)
		return (struct ending){END_DETACHED, 0};
	if (s && s->ended)
		return (struct ending){s->how == TRACE_END_EXIT ? END_EXIT : END_SIGNAL, s->code};
	if (facts->end_how == TRACE_END_SIGNAL)
		return (struct ending){END_SIGNAL, facts->end_code};
	if (facts->end_how == TRACE_END_EXIT || facts->end_how == TRACE_END_EXEC)
		return (struct ending){END_EXIT, facts->end_code};
	if (m->run.exited)
		return (struct ending){END_EXIT, m->run.exit_code};
	if (facts->running)
		return (struct ending){END_RUNNING, 0};
	if (m->run.signalled)
		return (struct ending){END_SIGNAL, m->run.signal};
	return (struct ending){END_UNKNOWN, 0};
}

static void overlay(struct levels *to, const struct levels *from, bool newer_only)
{
	for (uint32_t k = 0; k < MODEL_LEVELS; k++) {
		if (!from->known[k] ||
		    (to->known[k] && (!newer_only || from->time_ns[k] < to->time_ns[k])))
			continue;
		levels_set(to, k, from->value[k], from->time_ns[k]);
	}
}

bool failure_near_peak(const struct model *m, uint64_t bytes)
{
	return bytes >= m->peak.bytes - m->peak.bytes / NEAR_PEAK_PART;
}

/* Return the live bytes at that time, without shared memory. */
static uint64_t private_at(const struct model *m, uint64_t time_ns)
{
	return num_less(timeline_live(&m->timeline, time_ns),
	    timeline_came(&m->timeline, time_ns, CAME_SHARED));
}

/* Return the process's anonymous resident bytes at the time of a cgroup's sample: sampled beside
 * it, or carried there. */
static uint64_t anonymous_at(const struct model *m, const struct levels *v, uint64_t time_ns)
{
	uint64_t value = levels_value(v, TRACE_LEVEL_RSS_ANON), then, now;
	double part, moved;

	if (v->known[MODEL_LEVEL_BESIDE] && v->time_ns[MODEL_LEVEL_BESIDE] == time_ns)
		return v->value[MODEL_LEVEL_BESIDE];
	if (!v->known[TRACE_LEVEL_RSS_ANON])
		return 0;
	then = private_at(m, v->time_ns[TRACE_LEVEL_RSS_ANON]);
	now = private_at(m, time_ns);
	part = then && value < then ? (double)value / (double)then : 1;
	moved = ((double)now - (double)then) * part;
	return moved < 0 ? num_less(value, (uint64_t)-moved) : value + (uint64_t)moved;
}

struct cgroup_shares cgroup_shares_of(const struct model *m, const struct levels *v)
{
	struct cgroup_shares g = {0};
	uint64_t anonymous, own, at;

	if (levels_get(v, TRACE_LEVEL_CG_ANON, &anonymous)) {
		at = v->time_ns[TRACE_LEVEL_CG_ANON];
		own = anonymous_at(m, v, at);
		/* The group has much less than the process alone had: the process was gone at the
		 * group's sample, which is all the others'. */
		g.others = at >= m->run.last_ns && at > v->time_ns[TRACE_LEVEL_RSS_ANON] &&
				   anonymous < own - own / SUPERVISED_BELOW_OWN
			       ? anonymous
			       : num_less(anonymous, own);
	}
	g.shmem = levels_value(v, TRACE_LEVEL_CG_SHMEM);
	g.kernel = levels_value(v, TRACE_LEVEL_CG_KERNEL);
	g.swap = levels_value(v, TRACE_LEVEL_CG_SWAP);
	g.cache = num_less(levels_value(v, TRACE_LEVEL_CG_FILE), g.shmem);
	return g;
}

/* Carry *v, the last sample before a kill by the cgroup's killer, on to the kill. The killer
 * strikes when the group is full, so its usage rose by the rest of the limit. The process's own
 * growth is known; the others get the growth that was sampled, of each process since the sample or
 * of all after the kill. */
static void carry_to_kill(const struct model *m, const struct supervised *s, struct levels *v)
{
	struct cgroup_shares g = cgroup_shares_of(m, v);
	uint64_t limit, usage, kills, first, then, room, after, more;
	struct resident now;

	if (!levels_get(&s->first, TRACE_LEVEL_CG_OOM_KILL, &first) ||
	    !levels_get(&s->last, TRACE_LEVEL_CG_OOM_KILL, &kills) || kills == first ||
	    !levels_get(v, TRACE_LEVEL_CG_MAX, &limit) ||
	    /* The latest sample with the parts; the process's own may be newer. */
	    !levels_get(&s->last, TRACE_LEVEL_CG_CURRENT, &usage))
		return;
	if (!failure_resident(m, v, failure_lived(m, failure_moment(m)), &now))
		return;
	then = anonymous_at(m, v, s->last.time_ns[TRACE_LEVEL_CG_CURRENT]);
	room = num_less(limit, usage + num_less(now.anonymous, then));
	if (v->known[TRACE_LEVEL_CG_SHMEM] && levels_get(&s->after, TRACE_LEVEL_CG_SHMEM, &after)) {
		more = num_least(num_less(after, g.shmem), room);
		room -= more;
		v->value[TRACE_LEVEL_CG_SHMEM] += more;
	}
	if (!v->known[TRACE_LEVEL_CG_ANON])
		return;
	more = s->others_grown;
	if (levels_get(&s->after, TRACE_LEVEL_CG_ANON, &after) && num_less(after, g.others) > more)
		more = num_less(after, g.others);
	v->value[TRACE_LEVEL_CG_ANON] += num_least(more, room);
}

void failure_levels(const struct model *m, const struct supervised *s, enum levels_at at,
    uint64_t moment_ns, struct levels *out, uint64_t *age_ns)
{
	uint64_t sampled_ns;

	if (at == LEVELS_AT_REFUSAL) {
		*out = m->measured.at_failure;
		if (s) {
			struct levels last = s->last;
			uint64_t threads;

			if (levels_get(out, TRACE_LEVEL_THREADS, &threads))
				levels_carry_stacks(&last, threads, s->stack_each);
			overlay(out, &last, false);
		}
	} else if (at == LEVELS_AT_END) {
		*out = m->measured.levels;
		if (s) {
			overlay(out, &s->last, true);
			carry_to_kill(m, s, out);
		}
	} else {
		uint64_t ours = 0, theirs = 0;

		/* Use one sample as a whole, since keys of different moments do not add up. The
		 * sample with most resident bytes may be of a time when much less lived and the
		 * allocator held much free: that does not describe the peak. */
		*out = m->measured.at_peak_live ? m->measured.at_peak : m->measured.levels;
		levels_get(out, TRACE_LEVEL_RSS, &ours);
		if (s && levels_get(&s->highest, TRACE_LEVEL_RSS, &theirs) && theirs > ours &&
		    (!ours || failure_near_peak(m, timeline_live(&m->timeline,
						       s->highest.time_ns[TRACE_LEVEL_RSS])))) {
			struct levels own = *out;

			*out = s->highest;
			overlay(out, &own, false);
		}
		overlay(out, &m->measured.levels, false);
		if (s) {
			overlay(out, &s->last, false);
			if (levels_get(&s->last, TRACE_LEVEL_RSS_PEAK, &theirs))
				levels_set(out, TRACE_LEVEL_RSS_PEAK, theirs,
				    s->last.time_ns[TRACE_LEVEL_RSS_PEAK]);
		}
	}
	sampled_ns = out->known[TRACE_LEVEL_RSS] ? out->time_ns[TRACE_LEVEL_RSS] : moment_ns;
	*age_ns = num_less(moment_ns, sampled_ns);
}

/* The limits that are measured, and where: the limit in the levels or else in a note at the start,
 * its use in the levels. */
enum { MEASURE_SYSTEM, MEASURE_CGROUP, MEASURE_AS, MEASURE_DATA, MEASURES };
static const struct measure {
	enum limit_kind limit;
	uint32_t limit_key, use_key; /* of the machine: what is available, not its use */
	const char *info; /* NULL: not noted */
} measures[MEASURES] = {
    {LIMIT_SYSTEM, TRACE_LEVEL_SYS_TOTAL, TRACE_LEVEL_SYS_AVAILABLE, NULL},
    {LIMIT_CGROUP, TRACE_LEVEL_CG_MAX, TRACE_LEVEL_CG_CURRENT, "cgroup.max"},
    {LIMIT_AS, TRACE_LEVEL_LIMIT_AS, TRACE_LEVEL_VSIZE, "limit.as"},
    {LIMIT_DATA, TRACE_LEVEL_LIMIT_DATA, TRACE_LEVEL_DATA, "limit.data"},
};

/* Return the bytes of swap that a cgroup can use, by its own limit and by what the machine has. */
static uint64_t swap_limit(const struct levels *l)
{
	uint64_t used = levels_value(l, TRACE_LEVEL_CG_SWAP), own;
	uint64_t most = used + levels_value(l, TRACE_LEVEL_SYS_SWAP_FREE);

	return levels_get(l, TRACE_LEVEL_CG_SWAP_MAX, &own) ? num_least(own, most) : most;
}

/* A cgroup's swap counts for its limit: the killer strikes when both are full. */
static bool limit_of(const struct model *m, const struct levels *l, unsigned measure, uint64_t *out)
{
	const struct measure *of = &measures[measure];

	if (!levels_get(l, of->limit_key, out) &&
	    !(of->info && feed_number(&m->feed, of->info, out) && *out > 0))
		return false;
	if (measure == MEASURE_CGROUP)
		*out += swap_limit(l);
	return true;
}

static bool measured(
    const struct model *m, const struct levels *l, unsigned measure, uint64_t *limit, uint64_t *use)
{
	if (!limit_of(m, l, measure, limit) || !levels_get(l, measures[measure].use_key, use))
		return false;
	if (measure == MEASURE_CGROUP)
		*use += levels_value(l, TRACE_LEVEL_CG_SWAP);
	return true;
}

/* Find the limit that refused the request: the one that it crossed, or else the nearest. */
static void refusing_limit(const struct model *m, const struct levels *l, struct failure_view *out)
{
	uint64_t limit, use, near = UINT64_MAX, request = out->requested_bytes;

	out->limit = LIMIT_UNKNOWN;
	for (unsigned i = MEASURE_AS; i <= MEASURE_DATA; i++) {
		if (!measured(m, l, i, &limit, &use) || num_less(limit, use) >= near)
			continue;
		near = num_less(limit, use);
		out->limit = measures[i].limit;
		out->limit_bytes = limit;
		out->usage_bytes = use;
	}
	if (out->limit != LIMIT_UNKNOWN && near <= request + request / REQUEST_PART + SLACK_BYTES)
		return;
	if (levels_get(l, TRACE_LEVEL_LIMIT_MAPPINGS, &limit) &&
	    levels_get(l, TRACE_LEVEL_MAPPINGS, &use) && use + SLACK_MAPPINGS >= limit) {
		out->limit = LIMIT_MAPPINGS;
		out->mappings = use;
		out->usage_bytes = out->limit_bytes = levels_value(l, TRACE_LEVEL_VSIZE);
		return;
	}
	if (request >= ADDRESS_BYTES) {
		out->limit = LIMIT_ADDRESS;
		out->limit_bytes = ADDRESS_BYTES;
		return;
	}
	if (levels_get(l, TRACE_LEVEL_SYS_COMMIT_LIMIT, &limit) &&
	    levels_get(l, TRACE_LEVEL_SYS_COMMITTED, &use) &&
	    use + request + request / REQUEST_PART + SLACK_BYTES + COMMIT_ADMIN_BYTES +
		    levels_value(l, TRACE_LEVEL_VSIZE) / COMMIT_OWN_PART >=
		limit) {
		out->limit = LIMIT_COMMIT;
		out->limit_bytes = limit;
		out->usage_bytes = num_least(use, limit);
		return;
	}
	if (levels_get(l, TRACE_LEVEL_SYS_TOTAL, &limit) && request > limit / OVERCOMMIT_PART) {
		out->limit = LIMIT_OVERCOMMIT;
		out->limit_bytes = limit;
		levels_get(l, TRACE_LEVEL_RSS, &out->usage_bytes);
		return;
	}
	if (out->limit == LIMIT_UNKNOWN) {
		levels_get(l, TRACE_LEVEL_VSIZE, &out->usage_bytes);
		out->limit_bytes = out->usage_bytes;
	}
}

/* Return how far `resident` bytes grow when live bytes grow from `then` to `now`. */
static uint64_t grown_from(uint64_t then, uint64_t now, uint64_t resident)
{
	double part = then ? (double)resident / (double)then : 1;

	return (uint64_t)((double)num_less(now, then) * (part < 1 ? part : 1));
}

/* Read resident bytes at the newest sample of their sum, *time_ns. If that sample has only the sum,
 * subtract the slow parts: files, and shared memory with its growth until then. */
static bool sampled(
    const struct model *m, const struct levels *l, struct resident *out, uint64_t *time_ns)
{
	uint64_t rss, then = 0;

	if (!levels_get(l, TRACE_LEVEL_RSS, &rss))
		return false;
	*time_ns = l->time_ns[TRACE_LEVEL_RSS];
	out->shared = 0;
	if (levels_get(l, TRACE_LEVEL_RSS_SHMEM, &out->shared))
		then = timeline_came(&m->timeline, l->time_ns[TRACE_LEVEL_RSS_SHMEM], CAME_SHARED);
	out->shared +=
	    grown_from(then, timeline_came(&m->timeline, *time_ns, CAME_SHARED), out->shared);
	if (levels_get(l, TRACE_LEVEL_RSS_ANON, &out->anonymous) &&
	    l->time_ns[TRACE_LEVEL_RSS_ANON] == *time_ns)
		return true;
	out->shared = num_least(out->shared, rss);
	out->anonymous = num_less(rss, levels_value(l, TRACE_LEVEL_RSS_FILE) + out->shared);
	return true;
}

/* True if the kernel counted more resident bytes after that sample. */
static bool grew_to_peak(const struct model *m, const struct levels *l, struct lived moment)
{
	return l->known[TRACE_LEVEL_RSS] && l->known[TRACE_LEVEL_RSS_PEAK] &&
	       l->time_ns[TRACE_LEVEL_RSS_PEAK] > l->time_ns[TRACE_LEVEL_RSS] &&
	       failure_near_peak(m, moment.all);
}

static struct lived lived_at(const struct model *m, uint64_t time_ns)
{
	struct lived lived;

	if (time_ns == m->measured.at_rss.time_ns)
		return (struct lived){
		    m->measured.at_rss.live_bytes, m->measured.at_rss.shared_bytes};
	lived.all = timeline_live(&m->timeline, time_ns);
	lived.shared = num_least(timeline_came(&m->timeline, time_ns, CAME_SHARED), lived.all);
	return lived;
}

struct resident failure_grown(const struct model *m, const struct levels *l, struct lived moment)
{
	uint64_t time_ns, peak, most;
	struct resident then, grown = {0};
	struct lived lived;

	if (!sampled(m, l, &then, &time_ns))
		return grown;
	lived = lived_at(m, time_ns);
	grown.shared = grown_from(lived.shared, moment.shared, then.shared);
	if (grew_to_peak(m, l, moment)) {
		most = num_less(
		    levels_value(l, TRACE_LEVEL_RSS_PEAK), levels_value(l, TRACE_LEVEL_RSS));
		grown.shared = num_least(grown.shared, most);
		grown.anonymous = most - grown.shared;
		return grown;
	}
	grown.anonymous = grown_from(
	    lived.all - lived.shared, num_less(moment.all, moment.shared), then.anonymous);
	/* A sample from after the peak may include memory that an allocator kept: the kernel
	 * counted no more resident bytes. */
	if (moment.all >= m->peak.bytes && time_ns > m->peak.time_ns &&
	    levels_get(l, TRACE_LEVEL_RSS_PEAK, &peak)) {
		most = num_less(peak, levels_value(l, TRACE_LEVEL_RSS));
		grown.anonymous = num_least(grown.anonymous, most);
		grown.shared = num_least(grown.shared, most - grown.anonymous);
	}
	return grown;
}

uint64_t failure_measured_ns(const struct model *m, const struct levels *l, struct lived moment)
{
	if (grew_to_peak(m, l, moment))
		return l->time_ns[TRACE_LEVEL_RSS_PEAK];
	return l->known[TRACE_LEVEL_RSS] ? l->time_ns[TRACE_LEVEL_RSS] : 0;
}

bool failure_resident(
    const struct model *m, const struct levels *l, struct lived moment, struct resident *out)
{
	struct resident grown;
	uint64_t time_ns;

	if (!sampled(m, l, out, &time_ns))
		return false;
	grown = failure_grown(m, l, moment);
	out->anonymous += grown.anonymous;
	out->shared += grown.shared;
	return true;
}

/* Return the longest time between two new peaks in the second half of the rise to the highest: the
 * step of a program that needs more in each step. */
static uint64_t longest_step(const struct model *m)
{
	const struct timeline *t = &m->timeline;
	uint64_t top = 0, before = 0, longest = 0,
		 half = m->run.first_ns + (m->peak.time_ns - m->run.first_ns) / 2;

	for (uint32_t i = 0; i < t->used && (uint64_t)i << t->shift <= m->peak.time_ns; i++) {
		uint64_t at = (uint64_t)i << t->shift;

		if (t->periods[i].most <= top)
			continue;
		top = t->periods[i].most;
		if (at >= half && before && at - before > longest)
			longest = at - before;
		before = at;
	}
	return longest;
}

enum moment failure_moment(const struct model *m)
{
	uint64_t since = m->run.last_ns - m->peak.time_ns, run = m->run.last_ns - m->run.first_ns;

	if (model_failure(m))
		return AT_FAILURE;
	/* A kill between two steps finds no temporary blocks; the peak shortly before has them. */
	return since <= run / SOON_PART || since <= SOON_STEPS * longest_step(m) ? AT_PEAK : AT_END;
}

struct lived failure_lived(const struct model *m, enum moment moment)
{
	return moment == AT_PEAK
		   ? (struct lived){m->peak.bytes, m->peak.shared_bytes}
		   : (struct lived){m->blocks.bytes + m->maps.bytes, m->maps.charged_shared_bytes};
}

static uint64_t all_grown(const struct model *m, const struct levels *l, enum moment moment)
{
	struct resident grown = failure_grown(m, l, failure_lived(m, moment));

	return grown.anonymous + grown.shared;
}

void failure_kill_limit(const struct model *m, const struct supervised *s, struct failure_view *out)
{
	uint64_t limit, use, grown;
	struct levels l;

	failure_levels(m, s, LEVELS_AT_END, m->run.last_ns, &l, &out->usage_age_ns);
	grown = all_grown(m, &l, failure_moment(m));
	if (measured(m, &l, MEASURE_CGROUP, &limit, &use) &&
	    use + grown >= limit - limit / GROUP_NEAR_PART) {
		out->limit = LIMIT_CGROUP;
		out->swap_bytes = swap_limit(&l);
		out->limit_bytes = limit;
		out->usage_bytes = num_least(use + grown, limit);
		return;
	}
	if (measured(m, &l, MEASURE_SYSTEM, &limit, &use) && use < limit / SYSTEM_NEAR_PART) {
		out->limit = LIMIT_SYSTEM;
		out->limit_bytes = limit;
		out->usage_bytes = limit - use;
		return;
	}
	out->limit = LIMIT_NONE;
	out->usage_bytes = levels_value(&l, TRACE_LEVEL_RSS) + grown;
	if (!out->usage_bytes)
		out->usage_bytes = m->peak.bytes;
	out->limit_bytes = out->usage_bytes;
}

/* Return a cgroup's usage without the clean pages of files that the kernel drops before it
 * refuses. */
static uint64_t in_use(const struct levels *l, uint64_t usage)
{
	return num_less(usage, levels_value(l, TRACE_LEVEL_CG_INACTIVE_FILE));
}

size_t failure_rooms(
    const struct model *m, const struct supervised *s, struct room rooms[FAILURE_ROOMS])
{
	uint64_t recent = num_less(m->run.last_ns, m->run.first_ns) / RECENT_PART, age, grown;
	struct levels l;
	size_t count = 0;

	recent = num_most(recent, RECENT_NS);
	failure_levels(m, s, LEVELS_AT_END, m->run.last_ns, &l, &age);
	grown = all_grown(m, &l, failure_moment(m));
	for (unsigned i = 0; i < MEASURES; i++) {
		uint64_t limit, use;

		if (!measured(m, &l, i, &limit, &use) ||
		    l.time_ns[measures[i].use_key] + recent < m->run.last_ns)
			continue;
		if (i == MEASURE_SYSTEM)
			use = num_less(limit, use);
		if (i == MEASURE_CGROUP)
			use = in_use(&l, use);
		if (i == MEASURE_SYSTEM || i == MEASURE_CGROUP)
			use += grown;
		rooms[count++] = (struct room){
		    measures[i].limit, limit, num_less(limit, use), l.time_ns[measures[i].use_key]};
	}
	return count;
}

/* True if the group's own limit made the killer strike. A group of version 2 also counts the kills
 * of the machine's killer, but an OOM event only at the group whose limit was met. */
static bool struck_in_group(
    const struct model *m, const struct supervised *s, const struct levels *l)
{
	uint64_t limit, first, last;

	if (!limit_of(m, l, MEASURE_CGROUP, &limit))
		return false;
	return !s || !levels_get(&s->first, TRACE_LEVEL_CG_OOM, &first) ||
	       !levels_get(&s->last, TRACE_LEVEL_CG_OOM, &last) || last > first;
}

void failure_kill_at_limit(
    const struct model *m, const struct supervised *s, struct failure_view *out)
{
	struct levels levels;
	uint64_t age, total, left;
	bool ours;

	failure_levels(m, s, LEVELS_AT_END, m->run.last_ns, &levels, &age);
	ours = struck_in_group(m, s, &levels);
	/* Or a group above what this namespace shows. */
	if (!ours && measured(m, &levels, MEASURE_SYSTEM, &total, &left) &&
	    left < total / MACHINE_PART) {
		out->limit = LIMIT_SYSTEM;
		out->limit_bytes = out->usage_bytes = total;
		out->swap_bytes = 0;
		return;
	}
	if (ours && out->limit == LIMIT_NONE &&
	    limit_of(m, &levels, MEASURE_CGROUP, &out->limit_bytes)) {
		out->limit = LIMIT_CGROUP;
		out->swap_bytes = swap_limit(&levels);
	}
	/* The killer strikes when one more page does not fit; the sample is older. */
	if (out->limit == LIMIT_CGROUP)
		out->usage_bytes = out->limit_bytes;
}

void failure_settle(struct model *m)
{
	const struct failure *f = model_failure(m);
	struct failure_view view = {.kind = FAILURE_NONE};
	uint64_t left;

	if (!f || !f->recovered)
		return;
	view.requested_bytes = f->size;
	refusing_limit(m, &m->measured.at_failure, &view);
	left = num_less(view.limit_bytes, view.usage_bytes);
	if (((view.limit == LIMIT_AS || view.limit == LIMIT_DATA) &&
		left <= f->size + f->size / REQUEST_PART + SLACK_BYTES) ||
	    view.limit == LIMIT_MAPPINGS ||
	    ((view.limit == LIMIT_OVERCOMMIT || view.limit == LIMIT_COMMIT) &&
		feed_python_frame(&m->feed, f->stack)))
		return;
	model_did_without(m);
}

void failure_read(const struct model *m, const struct supervised *s, struct failure_view *out)
{
	const struct failure *refused = model_failure(m);
	struct levels levels;

	*out = (struct failure_view){.kind = FAILURE_NONE, .pid = m->feed.facts(m->feed.self)->pid};
	if (!refused)
		return;
	out->time_ns = refused->time_ns;
	out->requested_bytes = refused->size;
	out->stack = stack_view_of(&m->feed, refused->stack);
	out->kind = feed_python_frame(&m->feed, refused->stack) ? FAILURE_PYTHON_MEMORYERROR
								: FAILURE_HOST_ALLOC;
	failure_levels(m, s, LEVELS_AT_REFUSAL, refused->time_ns, &levels, &out->usage_age_ns);
	refusing_limit(m, &levels, out);
}

/* Return how much more lived at the peak than at a sample's time. */
static uint64_t acquired_since(const struct model *m, uint64_t sample_ns)
{
	return num_less(m->peak.bytes, timeline_live(&m->timeline, sample_ns));
}

void failure_limits(const struct model *m, const struct supervised *s, struct failure_view *out)
{
	struct levels levels;
	uint64_t limit, use;

	failure_levels(m, s, LEVELS_AT_PEAK, m->peak.time_ns, &levels, &out->usage_age_ns);
	if (measured(m, &levels, MEASURE_AS, &limit, &use)) {
		use += acquired_since(m, levels.time_ns[TRACE_LEVEL_VSIZE]);
		out->limit = LIMIT_AS;
	} else if (measured(m, &levels, MEASURE_DATA, &limit, &use)) {
		use += acquired_since(m, levels.time_ns[TRACE_LEVEL_DATA]);
		out->limit = LIMIT_DATA;
	} else if (measured(m, &levels, MEASURE_CGROUP, &limit, &use)) {
		out->limit = LIMIT_CGROUP;
		out->swap_bytes = swap_limit(&levels);
		use = in_use(&levels, use);
	} else {
		out->limit = LIMIT_NONE;
		use = levels_value(&levels, TRACE_LEVEL_RSS);
		use = use ? use + all_grown(m, &levels, AT_PEAK) : m->peak.bytes;
		limit = use;
	}
	out->limit_bytes = limit;
	out->usage_bytes = num_least(use, limit);
}

bool failure_stalled(const struct model *m, const struct supervised *s, struct failure_view *out)
{
	struct levels l;
	struct ending end = failure_ending(m, s);
	uint64_t high, use, first, age;

	failure_levels(m, s, LEVELS_AT_END, m->run.last_ns, &l, &age);
	if (!levels_get(&l, TRACE_LEVEL_CG_HIGH, &high) ||
	    !levels_get(&l, TRACE_LEVEL_CG_HIGH_COUNT, &out->held_back) || !s ||
	    !levels_get(&s->first, TRACE_LEVEL_CG_HIGH_COUNT, &first))
		return false;
	out->held_back -= num_least(first, out->held_back);
	/* Pages of files can be dropped: only what cannot makes the kernel wait. */
	use = levels_value(&l, TRACE_LEVEL_CG_ANON) + levels_value(&l, TRACE_LEVEL_CG_SHMEM) +
	      levels_value(&l, TRACE_LEVEL_CG_KERNEL);
	if (out->held_back < HELD_BACK_MIN || use < high - high / HIGH_NEAR_PART ||
	    (end.how == END_EXIT && !end.code))
		return false;
	out->kind = FAILURE_STALLED;
	out->kill_evidence = NULL;
	out->limit = LIMIT_CGROUP_HIGH;
	out->limit_bytes = high;
	out->usage_bytes = num_least(use, high);
	out->usage_age_ns = age;
	out->time_ns = m->run.last_ns;
	return true;
}

static bool ended_badly(struct ending end)
{
	return (end.how == END_EXIT && end.code != 0) ||
	       (end.how == END_SIGNAL && (end.code == SIGABRT || end.code == SIGSEGV ||
					     end.code == SIGBUS || end.code == SIGINT));
}

bool failure_at_limit(const struct model *m, const struct supervised *s, struct failure_view *out)
{
	struct failure_view view = *out;
	uint64_t data;

	if (!ended_badly(failure_ending(m, s)))
		return false;
	failure_limits(m, s, &view);
	if (view.limit == LIMIT_AS && m->measured.peak_vsize > view.usage_bytes)
		view.usage_bytes = m->measured.peak_vsize;
	if (view.limit == LIMIT_DATA && levels_get(&m->measured.levels, TRACE_LEVEL_DATA, &data) &&
	    data > view.usage_bytes)
		view.usage_bytes = data;
	view.usage_bytes = num_least(view.usage_bytes, view.limit_bytes);
	if ((view.limit != LIMIT_AS && view.limit != LIMIT_DATA) ||
	    view.limit_bytes - view.usage_bytes > view.limit_bytes / NEXT_TO_PART)
		return false;
	view.time_ns = m->peak.time_ns;
	*out = view;
	return true;
}

/* Return the bytes of files in memory that were written since the start, and that no recorded
 * process has mapped. 0: others in the cgroup may have written them. */
static uint64_t files_written(
    const struct supervised *s, const struct cgroup_shares *g, uint64_t unmapped)
{
	uint64_t first;

	if (!s || !levels_get(&s->first, TRACE_LEVEL_CG_SHMEM, &first) ||
	    !s->last.known[TRACE_LEVEL_CG_ANON] || g->others + g->swap > ALONE_BYTES)
		return 0;
	return num_less(unmapped, first);
}

struct scene_others cgroup_shares_strangers(const struct model *m, const struct supervised *s,
    const struct levels *v, const struct failure_view *failure, uint64_t known)
{
	struct scene_others others = {0};
	struct cgroup_shares g = cgroup_shares_of(m, v);
	/* Shared memory that the process maps counts as its own, whichever process wrote to it. */
	uint64_t shared = failure_lived(m, failure_moment(m)).shared;

	shared = num_most(shared, levels_value(v, TRACE_LEVEL_RSS_SHMEM));
	if (limit_is_cgroup(failure->limit)) {
		others.known = v->known[TRACE_LEVEL_CG_ANON];
		others.bytes = num_less(g.others + num_less(g.shmem, shared), known);
		others.left =
		    num_least(files_written(s, &g, num_less(g.shmem, shared)), others.bytes);
	} else if (failure->limit == LIMIT_COMMIT) {
		others.known = true;
		others.bytes =
		    num_less(failure->usage_bytes, levels_value(v, TRACE_LEVEL_DATA) + known);
	} else if (failure->limit == LIMIT_SYSTEM) {
		others.known = true;
		others.bytes =
		    num_less(failure->usage_bytes, levels_value(v, TRACE_LEVEL_RSS) + known);
	}
	return others;
}
