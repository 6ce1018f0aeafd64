#include "watch/metrics.h"

#include <ctype.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

struct page {
	const struct watched *const *processes;
	size_t count;
	const struct metrics_label *labels;
	size_t label_count;
	struct str *out;
};

/* The names of the labels that the page has itself. */
static const char *const own_labels[] = {"pid", "trace", "command", "mode", "model", "space",
    "limit", "bound", "function", "file", "line", "version", "allocator", "role", "cause", "tasks",
    "engine", "kind"};

bool metrics_label_valid(const char *key)
{
	if (!isalpha((unsigned char)*key) && *key != '_')
		return false;
	for (const char *p = key; *p; p++)
		if (!isalnum((unsigned char)*p) && *p != '_')
			return false;
	for (size_t i = 0; i < sizeof(own_labels) / sizeof(*own_labels); i++)
		if (!strcmp(key, own_labels[i]))
			return false;
	return strncmp(key, "__", 2) != 0;
}

/* Backslash, quote and line feed are escaped, and all else must be valid UTF-8. */
static void label(struct str *out, const char *key, const char *value)
{
	struct str valid = {0};

	str_valid(&valid, value);
	str_puts(out, out->length && out->text[out->length - 1] == '{' ? "" : ",");
	str_printf(out, "%s=\"", key);
	for (const char *p = valid.text ? valid.text : ""; *p; p++) {
		if (*p == '"' || *p == '\\')
			str_putc(out, '\\');
		if (*p == '\n')
			str_puts(out, "\\n");
		else
			str_putc(out, *p);
	}
	str_putc(out, '"');
	str_free(&valid);
}

static void family(const struct page *p, const char *name, const char *type, const char *help)
{
	str_printf(p->out, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

/* True if a process of another pid namespace has the same pid, or one that has ended. */
static bool is_ambiguous(const struct page *p, const struct watched *w)
{
	for (size_t i = 0; i < p->count; i++)
		if (p->processes[i] != w && p->processes[i]->pid == w->pid)
			return true;
	return false;
}

/* Begin a sample: its name and the process. Two processes of one pid would be one series, which
 * Prometheus refuses, so they have their traces' names, too. */
static void sample(const struct page *p, const char *name, const struct watched *w)
{
	char pid[16];

	snprintf(pid, sizeof(pid), "%" PRIu32, w->pid);
	str_printf(p->out, "%s{", name);
	label(p->out, "pid", pid);
	if (is_ambiguous(p, w))
		label(p->out, "trace", w->trace);
	for (size_t i = 0; i < p->label_count; i++)
		label(p->out, p->labels[i].key, p->labels[i].value);
}

static void value(const struct page *p, double value)
{
	if (isnan(value))
		str_puts(p->out, "} NaN\n");
	else if (isinf(value))
		str_puts(p->out, "} +Inf\n");
	else
		str_printf(p->out, "} %.17g\n", value);
}

/* `get` returns a negative number where there is nothing to say. */
static void of_process(const struct page *p, const char *name, const char *type, const char *help,
    double (*get)(const struct watched *w))
{
	family(p, name, type, help);
	for (size_t i = 0; i < p->count; i++) {
		double got = get(p->processes[i]);

		if (got < 0)
			continue;
		sample(p, name, p->processes[i]);
		value(p, got);
	}
}

/* `get` returns a negative number where there is nothing to say. */
static void of_space(const struct page *p, const char *name, const char *help,
    double (*get)(const struct watched_space *s))
{
	family(p, name, "gauge", help);
	for (size_t i = 0; i < p->count; i++)
		for (size_t k = 0; k < p->processes[i]->space_count; k++) {
			const struct watched_space *s = &p->processes[i]->spaces[k];
			double got = get(s);

			if (got < 0)
				continue;
			sample(p, name, p->processes[i]);
			label(p->out, "space", s->name);
			value(p, got);
		}
}

static double seconds_of(const struct watched_space *s, double grows)
{
	switch (s->forecast.state) {
	case FORECAST_STEADY:
		return INFINITY;
	case FORECAST_GROWS:
		return grows;
	case FORECAST_UNKNOWN:
		break;
	}
	return NAN;
}

static void times(const struct page *p)
{
	static const char name[] = "whyoom_time_to_failure_seconds";

	family(p, name, "gauge",
	    "Seconds until the space is full at its present growth; +Inf: no growth, NaN: not "
	    "known yet.");
	for (size_t i = 0; i < p->count; i++)
		for (size_t k = 0; k < p->processes[i]->space_count; k++) {
			const struct watched_space *s = &p->processes[i]->spaces[k];
			const struct {
				const char *bound;
				double seconds;
			} of[] = {{"expected", s->forecast.seconds},
			    {"soonest", s->forecast.soonest}, {"latest", s->forecast.latest}};

			for (size_t n = 0; n < sizeof(of) / sizeof(*of); n++) {
				sample(p, name, p->processes[i]);
				label(p->out, "space", s->name);
				label(p->out, "bound", of[n].bound);
				value(p, seconds_of(s, of[n].seconds));
			}
		}
}

/* What memory is for, of the roles that any of it has. */
static void roles(const struct page *p)
{
	static const char name[] = "whyoom_memory_role_bytes";

	family(p, name, "gauge", "Live bytes by what a framework's functions need them for.");
	for (size_t i = 0; i < p->count; i++)
		for (size_t k = 0; k < p->processes[i]->space_count; k++) {
			const struct watched_space *s = &p->processes[i]->spaces[k];

			for (int role = ROLE_NONE + 1; role < ROLE_COUNT; role++) {
				if (!s->role_bytes[role])
					continue;
				sample(p, name, p->processes[i]);
				label(p->out, "space", s->name);
				label(p->out, "role", role_name((enum role)role));
				value(p, (double)s->role_bytes[role]);
			}
		}
}

/* The likely cause, and how sure that is. */
static void causes(const struct page *p)
{
	family(p, "whyoom_verdict_info", "gauge",
	    "The likely cause by the latest verdict, and what is blamed.");
	for (size_t i = 0; i < p->count; i++) {
		const struct watched_cause *c = &p->processes[i]->likely;
		char line[16];

		if (!c->known)
			continue;
		snprintf(line, sizeof(line), "%" PRIu32, c->line);
		sample(p, "whyoom_verdict_info", p->processes[i]);
		label(p->out, "cause", cause_name(c->cause));
		label(p->out, "function", c->function);
		label(p->out, "file", c->file);
		label(p->out, "line", line);
		value(p, 1);
	}
	family(p, "whyoom_verdict_confidence_ratio", "gauge", "How sure that verdict is, 0 to 1.");
	for (size_t i = 0; i < p->count; i++) {
		if (!p->processes[i]->likely.known)
			continue;
		sample(p, "whyoom_verdict_confidence_ratio", p->processes[i]);
		value(p, p->processes[i]->likely.confidence);
	}
}

/* A family with a sample for some tasks of the group, and one for all. */
static void stalls(const struct page *p, const char *name, const char *type, const char *help,
    double (*get)(const struct pressure *of, bool full))
{
	family(p, name, type, help);
	for (size_t i = 0; i < p->count; i++)
		for (int full = 0; p->processes[i]->pressure.stalls_known && full < 2; full++) {
			sample(p, name, p->processes[i]);
			label(p->out, "tasks", full ? "full" : "some");
			value(p, get(&p->processes[i]->pressure, full));
		}
}

static void limits(const struct page *p)
{
	family(p, "whyoom_memory_limit_bytes", "gauge",
	    "The limit that is reached first, and which one it is.");
	for (size_t i = 0; i < p->count; i++)
		for (size_t k = 0; k < p->processes[i]->space_count; k++) {
			const struct watched_space *s = &p->processes[i]->spaces[k];

			if (!s->limit)
				continue;
			sample(p, "whyoom_memory_limit_bytes", p->processes[i]);
			label(p->out, "space", s->name);
			label(p->out, "limit", s->limit);
			value(p, (double)s->limit_bytes);
		}
}

static void sites(const struct page *p, const char *name, const char *help, bool rate)
{
	family(p, name, "gauge", help);
	for (size_t i = 0; i < p->count; i++)
		for (size_t k = 0; k < p->processes[i]->listed; k++) {
			const struct watched_site *s = &p->processes[i]->sites[k];
			char line[16];

			snprintf(line, sizeof(line), "%" PRIu32, s->line);
			sample(p, name, p->processes[i]);
			label(p->out, "function", s->function);
			label(p->out, "file", s->file);
			label(p->out, "line", line);
			value(p, rate ? s->rate : (double)s->live_bytes);
		}
}

static double one(const struct watched *w)
{
	(void)w;
	return 1;
}

static double resident(const struct watched *w)
{
	return w->resident_bytes ? (double)w->resident_bytes : NAN;
}

static double refused(const struct watched *w)
{
	return (double)w->refused;
}

static double events(const struct watched *w)
{
	return (double)w->events;
}

static double dropped(const struct watched *w)
{
	return (double)w->dropped;
}

static double trace(const struct watched *w)
{
	return (double)w->trace_bytes;
}

static double used(const struct watched_space *s)
{
	return s->limit ? (double)(s->limit_bytes - s->left) : -1;
}

static double left(const struct watched_space *s)
{
	return s->limit ? (double)s->left : -1;
}

static double live(const struct watched_space *s)
{
	return (double)s->live_bytes;
}

static double reserved(const struct watched_space *s)
{
	return s->reserved_bytes ? (double)s->reserved_bytes : -1;
}

static double growth(const struct watched_space *s)
{
	return s->forecast.state == FORECAST_UNKNOWN ? NAN : s->forecast.rate;
}

static double largest(const struct watched_space *s)
{
	return (double)s->largest_request;
}

static double hole_bytes(const struct watched_space *s)
{
	return s->holes_known ? (double)s->hole_bytes : -1;
}

static double largest_hole(const struct watched_space *s)
{
	return s->holes_known ? (double)s->largest_hole : -1;
}

static double unusable(const struct watched_space *s)
{
	return s->holes_known ? s->unusable : -1;
}

static double requests(const struct watched *w)
{
	return w->marks ? (double)w->requests : -1;
}

static double in_flight(const struct watched *w)
{
	return w->marks ? (double)w->in_flight : -1;
}

static double tasks(const struct watched *w)
{
	return w->has_tasks ? (double)w->tasks : -1;
}

static double kv_cache(const struct watched_space *s)
{
	return (double)s->role_bytes[ROLE_KV_CACHE];
}

static double kv_cache_share(const struct watched_space *s)
{
	return s->live_bytes ? (double)s->role_bytes[ROLE_KV_CACHE] / (double)s->live_bytes : 0;
}

static double retained(const struct watched_space *s)
{
	return (double)s->retained_bytes;
}

static double stalled_ratio(const struct pressure *of, bool full)
{
	return full ? of->full : of->some;
}

static double stalled_seconds(const struct pressure *of, bool full)
{
	return full ? of->full_seconds : of->some_seconds;
}

static double throttled(const struct watched *w)
{
	return w->pressure.throttled_known ? (double)w->pressure.throttled : -1;
}

static double scanned(const struct watched *w)
{
	return w->pressure.reclaim_known ? (double)w->pressure.scanned_bytes : -1;
}

static double reclaimed(const struct watched *w)
{
	return w->pressure.reclaim_known ? (double)w->pressure.reclaimed_bytes : -1;
}

static double refaults(const struct watched *w)
{
	return w->pressure.reclaim_known ? (double)w->pressure.refault_bytes : -1;
}

/* Early signs that the process's cgroup runs short, where it has any. */
static void pressures(const struct page *p)
{
	stalls(p, "whyoom_pressure_ratio", "gauge",
	    "Part of the last 10 seconds in which some, or all, tasks of the cgroup waited for "
	    "memory.",
	    stalled_ratio);
	stalls(p, "whyoom_pressure_seconds_total", "counter",
	    "Time in which some, or all, tasks of the cgroup waited for memory.", stalled_seconds);
	of_process(p, "whyoom_throttled_total", "counter",
	    "Times that the cgroup was held back at memory.high.", throttled);
	of_process(p, "whyoom_reclaim_scanned_bytes_total", "counter",
	    "What the kernel looked at, to take it back from the cgroup.", scanned);
	of_process(p, "whyoom_reclaimed_bytes_total", "counter",
	    "What it took back: files' pages, and memory that went to swap.", reclaimed);
	of_process(p, "whyoom_refault_bytes_total", "counter",
	    "What it took back and was needed again soon.", refaults);
}

/* Memory that is free inside an allocator, and not the process's to give away. */
static void allocators(const struct page *p)
{
	static const char name[] = "whyoom_allocator_free_bytes";

	family(p, name, "gauge", "Free inside the allocator, as it last said.");
	for (size_t i = 0; i < p->count; i++) {
		const struct watched *w = p->processes[i];
		const struct {
			const char *name;
			double bytes;
		} of[] = {{"malloc", w->malloc_free}, {"python", w->python_free}};

		for (size_t n = 0; n < sizeof(of) / sizeof(*of); n++) {
			if (isnan(of[n].bytes))
				continue;
			sample(p, name, w);
			label(p->out, "allocator", of[n].name);
			value(p, of[n].bytes);
		}
	}
}

static double alarm(const struct watched_space *s)
{
	return s->forecast.state == FORECAST_UNKNOWN ? NAN : s->forecast.alarm;
}

void metrics_write(const struct watched *const *processes, size_t count,
    const struct metrics_label *labels, size_t label_count, struct str *out)
{
	const struct page p = {processes, count, labels, label_count, out};

	family(&p, "whyoom_build_info", "gauge", "The version of the watcher.");
	str_puts(out, "whyoom_build_info{");
	label(out, "version", WHYOOM_VERSION);
	value(&p, 1);
	family(&p, "whyoom_process_info", "gauge", "A watched process; join by pid.");
	for (size_t i = 0; i < count; i++) {
		sample(&p, "whyoom_process_info", processes[i]);
		label(out, "command", processes[i]->command);
		label(out, "mode", processes[i]->sampled ? "sampled" : "full");
		label(out, "model", processes[i]->model);
		value(&p, one(processes[i]));
	}
	limits(&p);
	of_space(&p, "whyoom_memory_used_bytes", "What is used of that limit.", used);
	of_space(&p, "whyoom_memory_headroom_bytes", "What is left of that limit.", left);
	of_space(&p, "whyoom_memory_live_bytes", "Blocks and mappings that live.", live);
	of_space(&p, "whyoom_memory_reserved_bytes",
	    "What PyTorch's allocator holds of the device.", reserved);
	of_space(&p, "whyoom_kv_cache_bytes",
	    "Live bytes of functions that keep keys and values of tokens; 0: none is known.",
	    kv_cache);
	of_space(&p, "whyoom_kv_cache_ratio", "Its part of the live bytes.", kv_cache_share);
	of_space(&p, "whyoom_memory_retained_bytes",
	    "What growing call sites kept, and what caches and snapshots hold.", retained);
	roles(&p);
	of_space(&p, "whyoom_memory_growth_bytes_per_second",
	    "What is kept after requests end; 0: no growth, NaN: not known yet.", growth);
	of_space(&p, "whyoom_largest_request_bytes",
	    "The largest block so far: whether it would fit once more.", largest);
	of_space(&p, "whyoom_memory_hole_bytes", "Free between PyTorch's blocks.", hole_bytes);
	of_space(
	    &p, "whyoom_memory_largest_hole_bytes", "The largest hole between them.", largest_hole);
	of_space(&p, "whyoom_memory_fragmentation_ratio",
	    "Part of what is free that has no room for the largest request.", unusable);
	times(&p);
	of_space(&p, "whyoom_memory_alarm",
	    "1: it will be full before it has run for as long again as it ran so far, by growth "
	    "that lasted; NaN: not known yet.",
	    alarm);
	of_process(&p, "whyoom_process_resident_bytes", "gauge",
	    "Resident memory, at the recorder's newest sample.", resident);
	allocators(&p);
	of_process(
	    &p, "whyoom_requests_total", "counter", "Requests that the program marked.", requests);
	of_process(&p, "whyoom_requests_in_flight", "gauge", "Of these, those that have not ended.",
	    in_flight);
	of_process(&p, "whyoom_tasks_in_flight", "gauge",
	    "Tasks of an event loop that allocated and have not ended.", tasks);
	causes(&p);
	pressures(&p);
	of_process(&p, "whyoom_refused_total", "counter", "Requests for memory that were refused.",
	    refused);
	of_process(&p, "whyoom_events_total", "counter", "Events that were read.", events);
	of_process(&p, "whyoom_events_dropped_total", "counter",
	    "Events that the recorder could not write.", dropped);
	of_process(&p, "whyoom_trace_bytes", "gauge", "Size of the trace file.", trace);
	sites(
	    &p, "whyoom_site_live_bytes", "Live bytes of the call sites that grow fastest.", false);
	sites(&p, "whyoom_site_growth_bytes_per_second",
	    "What the call site kept of late; 0: it does not keep on growing.", true);
}

static void own_value(
    const struct page *p, const char *name, const char *type, const char *help, double number)
{
	family(p, name, type, help);
	str_printf(p->out, "%s %.17g\n", name, number);
}

static void failures(const struct page *p, const struct metrics_failures *f)
{
	family(p, "whyoom_failures_total", "counter",
	    "Processes that ended for want of memory, by the cause of their reports.");
	for (enum cause cause = 0; cause < CAUSE_COUNT; cause++)
		if (f->by_cause[cause])
			str_printf(p->out, "whyoom_failures_total{cause=\"%s\"} %" PRIu64 "\n",
			    cause_name(cause), f->by_cause[cause]);
	own_value(p, "whyoom_reports_pushed_total", "counter", "Reports that a server took.",
	    (double)f->pushed);
	own_value(p, "whyoom_reports_refused_total", "counter",
	    "Times that a server did not take a report, or was not there.", (double)f->problems);
	own_value(p, "whyoom_reports_pending", "gauge", "Reports that no server took yet.",
	    (double)f->pending);
}

void metrics_write_own(const struct metrics_own *own, struct str *out)
{
	const struct page p = {.out = out};

	own_value(&p, "whyoom_watch_cpu_seconds_total", "counter",
	    "Time of a CPU that the watcher has used.", own->cpu_seconds);
	own_value(&p, "whyoom_watch_resident_bytes", "gauge", "Resident memory of the watcher.",
	    (double)own->resident_bytes);
	own_value(&p, "whyoom_watch_looks_total", "counter", "Looks at all processes.",
	    (double)own->looks);
	own_value(&p, "whyoom_watch_answers_total", "counter", "Requests that were answered.",
	    (double)own->answers);
	if (own->failures)
		failures(&p, own->failures);
}

void metrics_add_label(struct str *out, const char *key, const char *value)
{
	label(out, key, value);
}
