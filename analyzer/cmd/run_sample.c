/*
 * run_sample.c - decides who is looked at, when, and what of it is worth a record.
 */
#include "cmd/run_sample.h"

#include <ctype.h>
#include <dirent.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "cmd/run_cgroup.h"
#include "cmd/run_proc.h"
#include "cmd/run_untraced.h"
#include "cmd/run_watch.h"
#include "util/num.h"

#define MS 1000000ull
#define TICK_NS (100 * MS)
#define TICK_FAST_NS (25 * MS) /* while a level races */
#define TICK_SLOW_NS (1000 * MS) /* while nothing moves */
#define SHARE 50 /* a reading of cost c is not repeated within SHARE * c */
#define REST_NS (10000 * MS) /* an unchanged level is written again after this */
#define FILE_STEP (8ull << 20) /* at each such step of the file all is done half as often */
#define UNTRACED_NS (1000 * MS)
#define PROCESSES_MAX 1024u
#define LEVELS_MAX 32u

struct process {
	pid_t pid;
	uint64_t start; /* tells a pid's next owner apart */
	bool seen; /* in this round of discovery */
	bool limits_known;
	bool traced, untraced; /* which it is, when that is known */
	uint64_t since_ns;
	struct event_level last[LEVELS_MAX]; /* as written */
	size_t last_count;
	uint64_t written_ns;
	uint64_t rollup_due, maps_due, threads_due;
	uint64_t threads_soonest; /* where there are more or fewer by now */
	uint64_t threads; /* when their stacks were looked at */
	uint64_t rss, vsize; /* at the last look */
	uint64_t maps_vsize; /* when the mappings were read */
};

struct run_sampler {
	struct run_trace *trace;
	pid_t target;
	int dir;
	uint64_t target_start, began_ns;
	struct process *processes;
	size_t count, room;
	uint64_t discover_due, discover_every;
	uint64_t discover_soonest; /* where the cgroup is near its limit */
	struct run_cgroup cgroup;
	struct run_watch watch;
	uint64_t cgroup_due, cgroup_find_due;
	uint64_t woken_due; /* not sooner, whatever it is that wakes us */
	uint64_t cgroup_last; /* usage as written */
	uint64_t cgroup_written_ns;
	unsigned calm; /* ticks without a change */
	uint64_t others_peak; /* the most that any process but the target ever had resident */
	uint64_t apart; /* cost, in this tick, of readings that have an interval of their own */
	uint64_t cgroup_seen; /* its usage at the latest look */
	bool moved, raced;
	unsigned untraced;
};

static uint64_t read_clock(clockid_t clock)
{
	struct timespec ts;

	clock_gettime(clock, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

static uint64_t now(void)
{
	return read_clock(CLOCK_MONOTONIC);
}

/* What we cost: on a busy machine the time that passes says little of it. */
static uint64_t spent(void)
{
	return read_clock(CLOCK_PROCESS_CPUTIME_ID);
}

static uint64_t later(uint64_t at_least, uint64_t cost)
{
	return now() + (at_least > SHARE * cost ? at_least : SHARE * cost);
}

static bool differs(uint64_t a, uint64_t b, unsigned part)
{
	uint64_t d = a > b ? a - b : b - a, most = a > b ? a : b;

	return d > most / part;
}

static struct process *add_process(struct run_sampler *s, pid_t pid, uint64_t start)
{
	if (s->count == s->room) {
		size_t room = s->room ? 2 * s->room : 16;
		struct process *more;

		if (s->room >= PROCESSES_MAX)
			return NULL;
		more = realloc(s->processes, room * sizeof(*more));
		if (!more)
			return NULL;
		s->processes = more;
		s->room = room;
	}
	s->processes[s->count] = (struct process){.pid = pid, .start = start, .since_ns = now()};
	return &s->processes[s->count++];
}

static struct process *find_process(struct run_sampler *s, pid_t pid)
{
	for (size_t i = 0; i < s->count; i++)
		if (s->processes[i].pid == pid)
			return &s->processes[i];
	return NULL;
}

static void write_cgroup(struct run_sampler *s)
{
	struct event_level levels[LEVELS_MAX];
	size_t n = run_cgroup_levels(&s->cgroup, levels, LEVELS_MAX);

	n += run_system_levels("", levels + n, LEVELS_MAX - n);
	n += run_system_kills("", levels + n, LEVELS_MAX - n);
	if (n)
		run_trace_levels(s->trace, 0, 0, levels, n);
}

static void find_cgroup(struct run_sampler *s, uint64_t now_ns)
{
	run_cgroup_find("", s->target, &s->cgroup);
	run_watch_on(&s->watch, &s->cgroup);
	s->cgroup_find_due = now_ns + REST_NS;
}

struct run_sampler *run_sampler_new(struct run_trace *trace, pid_t target, int dir)
{
	struct run_sampler *s = calloc(1, sizeof(*s));
	struct run_proc_stat stat = {0};

	if (!s)
		return NULL;
	s->trace = trace;
	s->target = target;
	s->began_ns = now();
	s->dir = dir;
	run_proc_stat(target, &stat);
	s->target_start = stat.start;
	add_process(s, target, stat.start);
	run_watch_init(&s->watch);
	find_cgroup(s, now());
	if (s->cgroup.version) {
		run_trace_info(trace, "cgroup.version", s->cgroup.version == 2 ? "2" : "1");
		run_trace_info(trace, "cgroup.path", s->cgroup.path);
		run_trace_info(trace, "cgroup.dir", s->cgroup.dir);
	}
	/* The counters' state before anything happened: the end's is compared with it. */
	write_cgroup(s);
	return s;
}

void run_sampler_free(struct run_sampler *s)
{
	if (!s)
		return;
	run_watch_off(&s->watch);
	free(s->processes);
	free(s);
}

/* Processes whose parent is known are found by /proc; those that were handed to init are known
 * from before, or by the trace that they write. */
static void discover(struct run_sampler *s)
{
	struct dirent *e;
	bool more = true;
	size_t pairs = 0, room = 0;
	struct pair {
		pid_t pid;
		struct run_proc_stat stat;
	} *all = NULL;
	DIR *d = opendir("/proc");

	if (!d)
		return;
	while ((e = readdir(d))) {
		struct pair p;

		if (!isdigit((unsigned char)e->d_name[0]))
			continue;
		p.pid = atoi(e->d_name);
		if (!run_proc_stat(p.pid, &p.stat) || p.stat.start < s->target_start)
			continue; /* older than the target: none of its children */
		if (pairs == room) {
			struct pair *grown =
			    realloc(all, (room = room ? 2 * room : 64) * sizeof(*all));

			if (!grown)
				break;
			all = grown;
		}
		all[pairs++] = p;
	}
	closedir(d);
	for (size_t i = 0; i < s->count; i++)
		s->processes[i].seen = false;
	for (size_t i = 0; i < pairs; i++) {
		struct process *known = find_process(s, all[i].pid);
		char name[64];

		if (known && known->start == all[i].stat.start) {
			known->seen = true;
		} else if (!known) {
			snprintf(name, sizeof(name), "%d.0.whyoom", (int)all[i].pid);
			if (!faccessat(s->dir, name, F_OK, AT_SYMLINK_NOFOLLOW) &&
			    all[i].pid != getpid() &&
			    (known = add_process(s, all[i].pid, all[i].stat.start)))
				known->seen = true;
		}
	}
	while (more) {
		more = false;
		for (size_t i = 0; i < pairs; i++) {
			struct process *parent, *p;

			if (find_process(s, all[i].pid))
				continue;
			parent = find_process(s, all[i].stat.ppid);
			if (parent && parent->seen &&
			    (p = add_process(s, all[i].pid, all[i].stat.start)))
				p->seen = more = true;
		}
	}
	for (size_t i = 0; i < s->count;)
		if (s->processes[i].seen)
			i++;
		else
			s->processes[i] = s->processes[--s->count];
	free(all);
}

/* A program that has just begun may have none yet. */
static void miss_traces(struct run_sampler *s)
{
	uint64_t t = now();

	for (size_t i = 0; i < s->count; i++) {
		struct process *p = &s->processes[i];

		if (p->traced || p->untraced || t - p->since_ns < UNTRACED_NS)
			continue;
		p->traced = run_untraced_has(p->pid, s->dir);
		p->untraced = !p->traced;
		if (p->untraced)
			run_untraced_note(s->trace, p->pid, ++s->untraced);
	}
}

static uint64_t level(const struct event_level *levels, size_t n, uint32_t key)
{
	for (size_t i = 0; i < n; i++)
		if (levels[i].key == key)
			return levels[i].value;
	return 0;
}

static bool changed(const struct process *p, const struct event_level *levels, size_t n)
{
	if (n > p->last_count)
		return true;
	for (size_t i = 0; i < n; i++)
		if (differs(levels[i].value, level(p->last, p->last_count, levels[i].key), 256))
			return true;
	return false;
}

static void look(struct run_sampler *s, struct process *p, uint64_t now_ns)
{
	struct event_level levels[LEVELS_MAX];
	size_t n = run_proc_status(p->pid, levels, LEVELS_MAX), quick = n;
	uint64_t rss = level(levels, n, TRACE_LEVEL_RSS),
		 vsize = level(levels, n, TRACE_LEVEL_VSIZE);
	uint64_t peak = level(levels, n, TRACE_LEVEL_RSS_PEAK), seen = now(), start, threads;

	if (!n)
		return;
	if (p->pid != s->target && peak > s->others_peak)
		s->others_peak = peak;
	if (differs(rss, p->rss, 256) || differs(vsize, p->vsize, 256))
		s->moved = true;
	if ((differs(rss, p->rss, 32) && rss > p->rss + (4u << 20)) ||
	    (differs(vsize, p->vsize, 32) && vsize > p->vsize + (4u << 20)))
		s->raced = true;
	p->rss = rss;
	p->vsize = vsize;
	if (now_ns >= p->rollup_due) {
		start = spent();
		n += run_proc_rollup(p->pid, levels + n, LEVELS_MAX - n);
		p->rollup_due = later(1000 * MS, spent() - start);
		s->apart += spent() - start;
		n += run_proc_limits(p->pid, levels + n, LEVELS_MAX - n);
	}
	if (now_ns >= p->maps_due && differs(vsize, p->maps_vsize, 128)) {
		start = spent();
		n += run_proc_maps(p->pid, levels + n, LEVELS_MAX - n);
		p->maps_due = later(TICK_NS, spent() - start);
		s->apart += spent() - start;
		p->maps_vsize = vsize;
	}
	/* Of a single thread there is nothing to see, but that the others are gone. */
	threads = level(levels, n, TRACE_LEVEL_THREADS);
	if (now_ns >= (threads == p->threads ? p->threads_due : p->threads_soonest) &&
	    (threads > 1 || p->threads > 1)) {
		start = spent();
		n += run_proc_threads(p->pid, levels + n, LEVELS_MAX - n);
		p->threads_soonest = later(TICK_NS, spent() - start);
		p->threads_due = later(1000 * MS, spent() - start);
		s->apart += spent() - start;
		p->threads = threads;
	}
	if (!changed(p, levels, n) && now_ns - p->written_ns < REST_NS)
		return;
	/* Of a large process the kernel looks for long at each page: until then it has grown. */
	run_trace_levels(s->trace, seen, p->pid, levels, quick);
	if (n > quick)
		run_trace_levels(s->trace, 0, p->pid, levels + quick, n - quick);
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
}

static void look_at_cgroup(struct run_sampler *s, uint64_t now_ns)
{
	struct event_level levels[LEVELS_MAX];
	uint64_t start = spent(), usage, max, cache;
	size_t n;
	bool near;

	if (now_ns >= s->cgroup_find_due)
		find_cgroup(s, now_ns);
	n = run_cgroup_levels(&s->cgroup, levels, LEVELS_MAX);
	usage = level(levels, n, TRACE_LEVEL_CG_CURRENT);
	max = level(levels, n, TRACE_LEVEL_CG_MAX);
	cache = level(levels, n, TRACE_LEVEL_CG_INACTIVE_FILE);
	/* The last sample before the killer comes is the one that counts: he is near at an eighth,
	 * or where a few more looks are all that it takes, as it went since the last one. */
	near = max && usage > cache && usage - cache > max - max / 8;
	near |= max && s->cgroup_seen && num_less(usage, s->cgroup_seen) > num_less(max, usage) / 4;
	s->cgroup_seen = usage;
	s->raced |= near;
	n += run_system_levels("", levels + n, LEVELS_MAX - n);
	if (n && (differs(usage, s->cgroup_last, 256) || now_ns - s->cgroup_written_ns > REST_NS)) {
		run_trace_levels(s->trace, 0, 0, levels, n);
		s->cgroup_last = usage;
		s->cgroup_written_ns = now_ns;
	}
	s->cgroup_due = later(near ? TICK_FAST_NS : TICK_NS, spent() - start);
	s->apart += spent() - start;
}

uint64_t run_sampler_tick(struct run_sampler *s, uint64_t now_ns)
{
	uint64_t start = spent(), every, cost;

	s->moved = s->raced = false;
	s->apart = 0;
	/* Before those that are charged to it, which take longer: it may be full in a moment. */
	if (now_ns >= s->cgroup_due)
		look_at_cgroup(s, now_ns);
	if (now_ns >= (s->raced ? s->discover_soonest : s->discover_due)) {
		uint64_t found = spent();

		discover(s);
		miss_traces(s);
		/* At the start processes come quickly; later a look each second will do. */
		s->discover_every = s->discover_every ? 2 * s->discover_every : TICK_FAST_NS;
		if (s->discover_every > TICK_SLOW_NS)
			s->discover_every = TICK_SLOW_NS;
		s->discover_due = later(s->discover_every, spent() - found);
		s->discover_soonest = later(TICK_FAST_NS, spent() - found);
		s->apart += spent() - found;
	}
	for (size_t i = 0; i < s->count; i++)
		look(s, &s->processes[i], now_ns);
	s->calm = s->moved ? 0 : s->calm + 1;
	every = s->raced || now_ns < s->began_ns + TICK_SLOW_NS ? TICK_FAST_NS
		: s->calm > 50					? TICK_SLOW_NS
								: TICK_NS;
	/* A server that runs for months must not fill the disk. */
	for (uint64_t bytes = run_trace_bytes(s->trace); bytes > FILE_STEP; bytes -= FILE_STEP)
		every *= 2;
	cost = spent() - start - s->apart;
	return now_ns + (every > SHARE * cost ? every : SHARE * cost);
}

int run_sampler_fd(const struct run_sampler *s)
{
	return s->watch.fd;
}

void run_sampler_woken(struct run_sampler *s, uint64_t now_ns)
{
	enum run_watch_news news = run_watch_take(&s->watch);
	uint64_t start = spent();

	if (now_ns < s->woken_due || news == RUN_WATCH_NOTHING)
		return;
	/* The group first: of a process that is killed the kernel says at the end what it had. */
	look_at_cgroup(s, now_ns);
	for (size_t i = 0; news == RUN_WATCH_OOM && i < s->count; i++)
		look(s, &s->processes[i], now_ns);
	/* A group may be at its limit for hours, as the cache of its files fills it. */
	s->woken_due = later(news == RUN_WATCH_OOM ? 0 : TICK_FAST_NS, spent() - start);
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
