/*
 * sample.c - decides who is looked at, when, and what of it is worth a record. What tells
 * whether anything has moved costs microseconds and is asked often; what is slow to read is read
 * where something has.
 */
#include "cmd/supervise/sample.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "cmd/run/untraced.h"
#include "cmd/supervise/cgroup.h"
#include "cmd/supervise/oom_watch.h"
#include "cmd/supervise/proc.h"
#include "cmd/supervise/process_family.h"
#include "util/clock_ns.h"
#include "util/num.h"

#define MS 1000000ull
#define TICK_NS (100 * MS)
#define TICK_FAST_NS (25 * MS) /* while a level races */
#define TICK_SLOW_NS (500 * MS) /* while nothing moves */
#define SECOND_NS (1000 * MS)
#define REST_NS (10000 * MS) /* an unchanged level is written again after this */
#define LONG_NS (60000 * MS) /* an unmoved process is read in full again after this */
#define CALM_TICKS 20u /* without a change: nothing moves */
#define FILE_STEP (8ull << 20) /* at each such step of the file half as much is written */
#define FILE_STEPS_MAX 10u
#define UNTRACED_NS SECOND_NS
#define LEVELS_MAX 32u
#define ROUND_NS (MS + MS / 2) /* what looking at processes may cost at a time; the rest wait */
#define ROUND_MIN 16u /* processes in a round, whatever they cost */
#define HELD_BACK_MIN 100u /* a burst exceeds memory.high a few times and goes on */
#define READING_NS (MS / 2) /* the guess at what a reading costs that was never made */

/* Something that is slow to read. */
struct reading {
	uint64_t at_ns; /* the last time; 0: never */
	uint64_t cost_ns; /* then */
	uint64_t level; /* what it was made for: a size, or a count */
};

struct look {
	struct run_proc_files files;
	uint64_t since_ns;
	bool traced, untraced; /* which it is, when that is known */
	bool withheld; /* a change that was not written yet */
	struct event_level last[LEVELS_MAX]; /* as written */
	size_t last_count;
	uint64_t written_ns;
	uint64_t rss, vsize, threads; /* when its status was read */
	struct reading rollup, maps, stacks;
	uint64_t stacks_rss, rollup_usage; /* what the process, the group had then */
};

struct run_sampler {
	struct run_trace *trace;
	struct run_budget budget;
	struct run_family family;
	bool off;
	pid_t target;
	uint64_t began_ns;
	size_t turn; /* whose turn it is, where not all are looked at each time */
	uint64_t round_ns, each_ns; /* what a tick costs, and of it a process */
	uint64_t find_due, find_soonest, find_every, find_cost;
	uint64_t find_all_due, find_all_cost;
	struct run_cgroup cgroup;
	struct run_watch watch;
	int usage_fd; /* the group's, kept open */
	unsigned kept; /* files of processes that are kept open */
	unsigned kept_max;
	uint64_t cgroup_find_due;
	uint64_t woken_due; /* not sooner, whatever it is that wakes us */
	uint64_t cgroup_last; /* usage as written */
	uint64_t cgroup_written_ns;
	/* the counts that say that a process of the group was killed or held back */
	uint64_t kills_first, kills, high_first, high;
	bool moved_group; /* these are of another group: they begin anew */
	uint64_t cgroup_max, cgroup_cache; /* as read last; max 0: no limit */
	uint64_t cgroup_seen, system_seen; /* their usage at the latest look */
	unsigned calm; /* ticks without a change */
	uint64_t others_peak; /* the most that any process but the target ever had resident */
	bool moved, raced, near; /* near: what is free of a limit may be gone soon */
	unsigned untraced;
};

static uint64_t now(void)
{
	return clock_ns(CLOCK_MONOTONIC);
}

/* What we cost: on a busy machine the time that passes says little of it. */
static uint64_t spent(void)
{
	return clock_ns(CLOCK_PROCESS_CPUTIME_ID);
}

static bool differs(uint64_t a, uint64_t b, unsigned part)
{
	uint64_t d = a > b ? a - b : b - a, most = a > b ? a : b;

	return d > most / part;
}

static uint64_t level(const struct event_level *levels, size_t n, uint32_t key)
{
	for (size_t i = 0; i < n; i++)
		if (levels[i].key == key)
			return levels[i].value;
	return 0;
}

/* A server that runs for months must not fill the disk. */
static unsigned file_steps(const struct run_sampler *s)
{
	uint64_t steps = run_trace_bytes(s->trace) / FILE_STEP;

	return steps < FILE_STEPS_MAX ? (unsigned)steps : FILE_STEPS_MAX;
}

/* How long after a record of it the next may be written. The last sample before the end is the one
 * that counts: near a limit one is never older than that. */
static uint64_t write_every(const struct run_sampler *s)
{
	unsigned steps = file_steps(s);
	uint64_t every = steps ? TICK_NS << steps : 0;

	return s->near || s->raced ? num_least(every, SECOND_NS / 2) : every;
}

static uint64_t rest(const struct run_sampler *s)
{
	return REST_NS << file_steps(s);
}

static size_t group_levels(struct run_sampler *s, struct event_level levels[LEVELS_MAX])
{
	size_t n = run_cgroup_levels(&s->cgroup, levels, LEVELS_MAX);

	s->cgroup_max = level(levels, n, TRACE_LEVEL_CG_MAX);
	s->kills = level(levels, n, TRACE_LEVEL_CG_OOM_KILL);
	s->high = level(levels, n, TRACE_LEVEL_CG_HIGH_COUNT);
	if (s->moved_group) {
		s->kills_first = s->kills;
		s->high_first = s->high;
		s->moved_group = false;
	}
	s->cgroup_cache = level(levels, n, TRACE_LEVEL_CG_INACTIVE_FILE);
	return n + run_system_levels("", levels + n, LEVELS_MAX - n);
}

/* With the machine's count of kills. */
static void write_cgroup(struct run_sampler *s)
{
	struct event_level levels[LEVELS_MAX];
	size_t n = group_levels(s, levels);

	n += run_system_kills("", levels + n, LEVELS_MAX - n);
	if (n)
		run_trace_levels(s->trace, 0, 0, levels, n);
}

static void find_cgroup(struct run_sampler *s, uint64_t now_ns)
{
	char before[PATH_MAX];

	snprintf(before, sizeof(before), "%s", s->cgroup.dir);
	run_cgroup_find("", s->target, &s->cgroup);
	s->moved_group |= strcmp(before, s->cgroup.dir) != 0;
	run_watch_on(&s->watch, &s->cgroup);
	if (s->usage_fd >= 0)
		close(s->usage_fd);
	s->usage_fd = run_cgroup_open(&s->cgroup);
	s->cgroup_find_due = now_ns + REST_NS;
}

static void leave(struct run_member *member)
{
	struct look *p = member->look;

	if (p)
		run_proc_close(&p->files);
	free(p);
	member->look = NULL;
}

struct run_sampler *run_sampler_new(struct run_trace *trace, pid_t target, int dir, bool off)
{
	struct run_sampler *s = calloc(1, sizeof(*s));
	struct rlimit files;

	if (!s)
		return NULL;
	s->trace = trace;
	s->target = target;
	s->off = off;
	s->began_ns = now();
	s->usage_fd = -1;
	s->each_ns = READING_NS / 100;
	/* Two a process; the rest is for all else. */
	s->kept_max = getrlimit(RLIMIT_NOFILE, &files) || files.rlim_cur < 64
			  ? 0
			  : (unsigned)num_least(files.rlim_cur / 4, 512);
	run_family_init(&s->family, target, dir, leave);
	/* Who does not belong here, before that is counted: it is done once. */
	run_family_find(&s->family, true);
	s->find_all_due = s->began_ns + LONG_NS;
	run_budget_init(&s->budget, off, s->began_ns, spent());
	run_watch_init(&s->watch);
	find_cgroup(s, s->began_ns);
	if (s->cgroup.version) {
		run_trace_info(trace, "cgroup.version", s->cgroup.version == 2 ? "2" : "1");
		run_trace_info(trace, "cgroup.path", s->cgroup.path);
		run_trace_info(trace, "cgroup.dir", s->cgroup.dir);
	}
	/* The counters' state before anything happened: the end's is compared with it. */
	write_cgroup(s);
	return s;
}

bool run_sampler_short(const struct run_sampler *s)
{
	return s->kills > s->kills_first || s->high > s->high_first + HELD_BACK_MIN;
}

void run_sampler_free(struct run_sampler *s)
{
	if (!s)
		return;
	run_family_fini(&s->family);
	run_watch_off(&s->watch);
	if (s->usage_fd >= 0)
		close(s->usage_fd);
	free(s);
}

struct run_budget *run_sampler_budget(struct run_sampler *s)
{
	return &s->budget;
}

/* A program that has just begun may have none yet. */
static void miss_traces(struct run_sampler *s, uint64_t now_ns)
{
	for (size_t i = 0; i < s->family.members.count; i++) {
		const struct run_member *m = &s->family.members.items[i];
		struct look *p = m->look;
		uint64_t start = spent();

		if (!p || p->traced || p->untraced || now_ns < p->since_ns + UNTRACED_NS)
			continue;
		if (!run_budget_affords(&s->budget, RUN_BUDGET_READINGS, READING_NS))
			return;
		p->traced = run_untraced_has(m->pid, s->family.dir);
		p->untraced = !p->traced;
		if (p->untraced)
			run_untraced_note(s->trace, m->pid, ++s->untraced);
		run_budget_charge(&s->budget, RUN_BUDGET_READINGS, spent() - start);
	}
}

static void find_processes(struct run_sampler *s, uint64_t now_ns)
{
	/* To look at all again that do not belong here is slow on a large machine. */
	bool all = now_ns >= s->find_all_due &&
		   run_budget_affords(&s->budget, RUN_BUDGET_READINGS, s->find_all_cost);
	uint64_t start = spent(), cost;

	if (now_ns < (s->raced ? s->find_soonest : s->find_due) ||
	    !run_budget_affords(&s->budget, RUN_BUDGET_FINDING, s->find_cost) ||
	    (!all && !run_family_news(&s->family)))
		return;
	run_family_find(&s->family, all);
	/* At the start processes come quickly; later a look each second will do. */
	s->find_every = s->find_every ? 2 * s->find_every : TICK_FAST_NS;
	s->find_every = num_least(s->find_every, SECOND_NS);
	s->find_due = now_ns + s->find_every;
	s->find_soonest = now_ns + TICK_FAST_NS;
	cost = spent() - start;
	run_budget_charge(&s->budget, all ? RUN_BUDGET_READINGS : RUN_BUDGET_FINDING, cost);
	if (all) {
		s->find_all_due = now_ns + LONG_NS;
		s->find_all_cost = cost;
	} else {
		s->find_cost = cost;
	}
}

static bool changed(const struct look *p, const struct event_level *levels, size_t n)
{
	if (n > p->last_count)
		return true;
	for (size_t i = 0; i < n; i++)
		if (differs(levels[i].value, level(p->last, p->last_count, levels[i].key), 256))
			return true;
	return false;
}

/* Of `n` levels the first `quick` were told at once, at `seen_ns`. */
static void write_look(struct run_sampler *s, const struct run_member *m, uint64_t now_ns,
    uint64_t seen_ns, const struct event_level *levels, size_t quick, size_t n)
{
	struct look *p = m->look;

	/* The kernel takes long to walk the pages of a large process, and the process grows
	 * meanwhile. */
	run_trace_levels(s->trace, seen_ns, m->pid, levels, quick);
	if (n > quick)
		run_trace_levels(s->trace, 0, m->pid, levels + quick, n - quick);
	for (size_t i = 0; i < n; i++) {
		size_t j = 0;

		while (j < p->last_count && p->last[j].key != levels[i].key)
			j++;
		if (j < LEVELS_MAX)
			p->last[j] = levels[i];
		if (j == p->last_count && j < LEVELS_MAX)
			p->last_count++;
	}
	p->written_ns = now_ns;
	p->withheld = false;
}

/* Reads /proc/PID/status: resident bytes by kind and the number of threads. */
static size_t read_status(
    struct run_sampler *s, const struct run_member *m, struct event_level levels[LEVELS_MAX])
{
	struct look *p = m->look;
	size_t n = run_proc_status_of(&p->files, levels, LEVELS_MAX);
	uint64_t rss = level(levels, n, TRACE_LEVEL_RSS),
		 vsize = level(levels, n, TRACE_LEVEL_VSIZE);
	uint64_t peak = level(levels, n, TRACE_LEVEL_RSS_PEAK);

	if (!n)
		return 0;
	if (m->pid != s->target && peak > s->others_peak)
		s->others_peak = peak;
	if (differs(rss, p->rss, 256) || differs(vsize, p->vsize, 256))
		s->moved = true;
	if ((differs(rss, p->rss, 32) && rss > p->rss + (4u << 20)) ||
	    (differs(vsize, p->vsize, 32) && vsize > p->vsize + (4u << 20)))
		s->raced = true;
	p->rss = rss;
	p->vsize = vsize;
	p->threads = level(levels, n, TRACE_LEVEL_THREADS);
	return n;
}

static void look_at_status(
    struct run_sampler *s, const struct run_member *m, uint64_t now_ns, bool at_once)
{
	struct look *p = m->look;
	struct event_level levels[LEVELS_MAX];
	size_t n = read_status(s, m, levels);
	uint64_t seen = now();

	if (!n)
		return;
	p->withheld = changed(p, levels, n);
	if ((p->withheld && (at_once || now_ns >= p->written_ns + write_every(s))) ||
	    now_ns >= p->written_ns + rest(s))
		write_look(s, m, now_ns, seen, levels, n, n);
}

static bool join(struct run_sampler *s, struct run_member *m, uint64_t now_ns)
{
	struct look *p = calloc(1, sizeof(*p));

	if (!p)
		return false;
	m->look = p;
	p->since_ns = now_ns;
	run_proc_open(m->pid, s->kept + 2 <= s->kept_max, &p->files);
	return true;
}

/* Whether it has moved; and where it has, how it stands. False: it has ended. */
static bool look(struct run_sampler *s, struct run_member *m, uint64_t now_ns)
{
	struct look *p = m->look;
	uint64_t rss, vsize;

	if (!p && !join(s, m, now_ns))
		return true;
	p = m->look;
	if (!run_proc_sizes(&p->files, &rss, &vsize))
		return false;
	if (!p->written_ns || vsize != p->vsize || differs(rss, p->rss, 256) ||
	    now_ns >= p->written_ns + rest(s) ||
	    (p->withheld && now_ns >= p->written_ns + write_every(s)))
		look_at_status(s, m, now_ns, false);
	return true;
}

/* Those whose turn it is. */
static void look_round(struct run_sampler *s, uint64_t now_ns)
{
	uint64_t start = spent();
	size_t n = num_most(ROUND_NS / (s->each_ns + 1), ROUND_MIN), done = 0;

	s->kept = 0;
	for (size_t i = 0; i < s->family.members.count; i++) {
		const struct look *p = s->family.members.items[i].look;

		s->kept += p && p->files.statm >= 0 ? 2 : 0;
	}
	n = num_least(n, s->family.members.count);
	for (; done < n && s->family.members.count; done++) {
		if (s->turn >= s->family.members.count)
			s->turn = 0;
		if (look(s, &s->family.members.items[s->turn], now_ns))
			s->turn++;
		else
			run_family_drop(&s->family, s->turn);
	}
	if (done)
		s->each_ns = (3 * s->each_ns + (spent() - start) / done) / 4;
}

static bool is_old(const struct reading *r, uint64_t now_ns, uint64_t age_ns)
{
	return !r->at_ns || now_ns >= r->at_ns + age_ns;
}

static bool wants_rollup(const struct run_sampler *s, const struct look *p, uint64_t now_ns)
{
	/* What was shared with a parent may become its own without being more: the group tells. */
	return is_old(&p->rollup, now_ns, LONG_NS) ||
	       (is_old(&p->rollup, now_ns, SECOND_NS) && differs(p->rss, p->rollup.level, 64)) ||
	       (is_old(&p->rollup, now_ns, REST_NS) &&
		   differs(s->cgroup_seen, p->rollup_usage, 64));
}

static bool wants_maps(const struct look *p, uint64_t now_ns)
{
	return is_old(&p->maps, now_ns, TICK_NS) && differs(p->vsize, p->maps.level, 128);
}

/* Of a single thread there is nothing to see, but that the others are gone. */
static bool wants_stacks(const struct look *p, uint64_t now_ns)
{
	if (p->threads <= 1 && p->stacks.level <= 1)
		return false;
	return is_old(&p->stacks, now_ns, LONG_NS) ||
	       (is_old(&p->stacks, now_ns, TICK_NS) && p->threads != p->stacks.level) ||
	       (is_old(&p->stacks, now_ns, SECOND_NS) && differs(p->rss, p->stacks_rss, 64));
}

static uint64_t cost_of(const struct reading *r)
{
	return r->at_ns ? r->cost_ns : READING_NS;
}

static uint64_t reading_cost(const struct run_sampler *s, const struct look *p, uint64_t now_ns)
{
	return (wants_rollup(s, p, now_ns) ? cost_of(&p->rollup) : 0) +
	       (wants_maps(p, now_ns) ? cost_of(&p->maps) : 0) +
	       (wants_stacks(p, now_ns) ? cost_of(&p->stacks) : 0);
}

static uint64_t distance(uint64_t a, uint64_t b)
{
	return a > b ? a - b : b - a;
}

/* Who has moved most since it was read; NULL: nobody is to be read. */
static const struct run_member *next_to_read(const struct run_sampler *s, uint64_t now_ns)
{
	const struct run_member *best = NULL;
	uint64_t most = 0;

	for (size_t i = 0; i < s->family.members.count; i++) {
		const struct run_member *m = &s->family.members.items[i];
		const struct look *p = m->look;
		uint64_t weight;

		if (!p || !p->rss || !reading_cost(s, p, now_ns))
			continue;
		weight = distance(p->rss, p->rollup.level) + distance(p->vsize, p->maps.level) +
			 p->threads;
		if (!best || weight > most) {
			best = m;
			most = weight;
		}
	}
	return best;
}

static void note_reading(struct reading *r, uint64_t now_ns, uint64_t start, uint64_t level)
{
	*r = (struct reading){.at_ns = now_ns, .cost_ns = spent() - start, .level = level};
}

static void read_in_full(struct run_sampler *s, const struct run_member *m, uint64_t now_ns)
{
	struct look *p = m->look;
	struct event_level levels[LEVELS_MAX];
	uint64_t begun = spent(), start, seen;
	size_t n = read_status(s, m, levels), quick = n;

	seen = now();
	if (wants_rollup(s, p, now_ns)) {
		start = spent();
		n += run_proc_rollup(m->pid, levels + n, LEVELS_MAX - n);
		n += run_proc_limits(m->pid, levels + n, LEVELS_MAX - n);
		note_reading(&p->rollup, now_ns, start, p->rss);
		p->rollup_usage = s->cgroup_seen;
	}
	if (wants_maps(p, now_ns)) {
		start = spent();
		n += run_proc_maps(m->pid, levels + n, LEVELS_MAX - n);
		note_reading(&p->maps, now_ns, start, p->vsize);
	}
	if (wants_stacks(p, now_ns)) {
		start = spent();
		n += run_proc_threads(m->pid, levels + n, LEVELS_MAX - n);
		note_reading(&p->stacks, now_ns, start, p->threads);
		p->stacks_rss = p->rss;
	}
	if (quick && changed(p, levels, n))
		write_look(s, m, now_ns, seen, levels, quick, n);
	run_budget_charge(&s->budget, RUN_BUDGET_READINGS, spent() - begun);
}

static void read_some(struct run_sampler *s, uint64_t now_ns)
{
	const struct run_member *m;

	while ((m = next_to_read(s, now_ns)) && run_budget_affords(&s->budget, RUN_BUDGET_READINGS,
						    reading_cost(s, m->look, now_ns)))
		read_in_full(s, m, now_ns);
}

/* Within an eighth of the limit; or where a few more looks are all that it takes, as it went since
 * the last one. */
static bool is_near(uint64_t usage, uint64_t before, uint64_t max)
{
	return max && (usage > max - max / 8 ||
			  (before && num_less(usage, before) > num_less(max, usage) / 4));
}

static void look_at_cgroup(struct run_sampler *s, uint64_t now_ns, bool at_once)
{
	struct event_level levels[LEVELS_MAX];
	uint64_t usage = 0, total, used, before = s->cgroup_seen;
	size_t n;

	if (now_ns >= s->cgroup_find_due)
		find_cgroup(s, now_ns);
	n = run_system_levels("", levels, LEVELS_MAX);
	total = level(levels, n, TRACE_LEVEL_SYS_TOTAL);
	used = num_less(total, level(levels, n, TRACE_LEVEL_SYS_AVAILABLE));
	run_cgroup_usage(s->usage_fd, &usage);
	s->near = is_near(num_less(usage, s->cgroup_cache), num_less(before, s->cgroup_cache),
		      s->cgroup_max) ||
		  is_near(used, s->system_seen, total);
	/* The last sample before the killer comes is the one that counts. */
	s->raced |= s->near && (differs(usage, before, 256) || differs(used, s->system_seen, 256));
	s->cgroup_seen = usage;
	s->system_seen = used;
	if (s->usage_fd < 0)
		usage = used;
	if (at_once ||
	    (differs(usage, s->cgroup_last, 256) &&
		now_ns >= s->cgroup_written_ns + write_every(s)) ||
	    now_ns >= s->cgroup_written_ns + (s->near ? num_least(rest(s), SECOND_NS) : rest(s))) {
		n = group_levels(s, levels);
		run_trace_levels(s->trace, 0, 0, levels, n);
		s->cgroup_last = usage;
		s->cgroup_written_ns = now_ns;
	}
}

uint64_t run_sampler_tick(struct run_sampler *s, uint64_t now_ns)
{
	uint64_t before, every, wait;

	run_budget_settle(&s->budget, now_ns, spent());
	before = spent();
	s->moved = s->raced = false;
	/* Before those that are charged to it, which take longer: it may be full in a moment. */
	look_at_cgroup(s, now_ns, false);
	find_processes(s, now_ns);
	look_round(s, now_ns);
	if (!s->off)
		miss_traces(s, now_ns);
	read_some(s, now_ns);
	s->calm = s->moved ? 0 : s->calm + 1;
	every = s->raced || now_ns < s->began_ns + SECOND_NS ? TICK_FAST_NS
		: s->calm > CALM_TICKS && !s->near	     ? TICK_SLOW_NS
							     : TICK_NS;
	s->round_ns = num_less(spent() - before, s->budget.apart_ns);
	run_budget_settle(&s->budget, now_ns, spent());
	wait = run_budget_wait(&s->budget, RUN_BUDGET_LOOKS, s->round_ns);
	return now_ns + num_most(every, wait);
}

int run_sampler_fd(const struct run_sampler *s)
{
	return s->watch.fd;
}

void run_sampler_woken(struct run_sampler *s, uint64_t now_ns)
{
	enum run_watch_news news = run_watch_take(&s->watch);
	bool oom = news == RUN_WATCH_OOM;

	if (now_ns < s->woken_due || news == RUN_WATCH_NOTHING)
		return;
	/* The group first: of a process that is killed the kernel says at the end what it had. */
	look_at_cgroup(s, now_ns, oom);
	for (size_t i = 0; oom && i < s->family.members.count; i++)
		if (s->family.members.items[i].look)
			look_at_status(s, &s->family.members.items[i], now_ns, true);
	/* A group may be at its limit for hours, as the cache of its files fills it. */
	run_budget_settle(&s->budget, now_ns, spent());
	s->woken_due = now_ns + (oom ? 0 : TICK_FAST_NS);
	if (!oom)
		s->woken_due += run_budget_wait(&s->budget, RUN_BUDGET_LOOKS, s->round_ns);
}

/* How much the target had resident at most, to its very end. The kernel's account is of the largest
 * of all that were waited for, so it is only taken where no other process came near it. */
static void write_peak(struct run_sampler *s)
{
	struct event_level peak = {.key = TRACE_LEVEL_RSS_PEAK};
	struct rusage usage;

	if (getrusage(RUSAGE_CHILDREN, &usage) || usage.ru_maxrss <= 0)
		return;
	peak.value = (uint64_t)usage.ru_maxrss * 1024;
	if (peak.value > s->others_peak)
		run_trace_levels(s->trace, 0, s->target, &peak, 1);
}

void run_sampler_last(struct run_sampler *s)
{
	write_peak(s);
	write_cgroup(s);
	run_untraced_total(s->trace, s->untraced);
}
