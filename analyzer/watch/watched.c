#include "watch/watched.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/model.h"
#include "model/space/space.h"
#include "util/num.h"
#include "util/tuned.h"
#include "verdict/forecast/growth.h"
#include "verdict/forecast/rooms.h"
#include "watch/holes.h"
#include "watch/signs/in_flight.h"
#include "watch/signs/roles.h"

TUNED(uint64_t, RECENT_PART, 4u, "a quarter of the run: as long as the forecast's later part");
TUNED(double, RATE_MIN, 0.001,
    "of the live bytes in the time that the process has run: less is an import, or a log");

TUNED(uint64_t, HOLES_EVERY_NS, 10000000000u,
    "holes cost time by the live blocks: seldom enough for 0.5 % of a core with 100,000 of them");

struct watch {
	char *path;
	struct holes holes[WATCHED_SPACES]; /* of each space, measured at: */
	uint64_t holes_ns[WATCHED_SPACES]; /* the trace's time; 0: never */
	uint64_t warm_up_ns;
	const struct knowledge *knowledge; /* NULL: none */
	struct framework_frames *frames; /* of this trace's stacks; NULL: no role is known */
	struct in_flight in_flight;
	struct model_file model_file;
	char *name; /* the trace's */
	struct trace *trace;
	struct model *model;
	struct watched now;
};

static int begin(struct watch *w, struct err *err)
{
	int r = trace_follow(w->path, &w->trace, err);

	if (r < 0)
		return r;
	if (w->knowledge) {
		w->frames = framework_frames_new(w->knowledge);
		if (!w->frames)
			return err_set(err, -ENOMEM, "%s: out of memory", w->path);
	}
	return model_new(feed_of_trace(w->trace), &w->model, err);
}

static void end(struct watch *w)
{
	framework_frames_free(w->frames);
	w->frames = NULL;
	in_flight_fini(&w->in_flight);
	w->model_file = (struct model_file){0};
	model_free(w->model);
	w->model = NULL;
	trace_unfollow(w->trace);
	w->trace = NULL;
}

/* "4711.0" of "traces/4711.0.whyoom". */
static char *name_of(const char *path)
{
	char *name = strdup(str_base_name(path)), *dot = name ? strrchr(name, '.') : NULL;

	if (dot && dot != name)
		*dot = '\0';
	return name;
}

int watch_open(const char *path, uint64_t warm_up_ns, const struct knowledge *knowledge,
    struct watch **out, struct err *err)
{
	struct watch *w = calloc(1, sizeof(*w));
	int r;

	if (w) {
		w->path = strdup(path);
		w->name = name_of(path);
	}
	if (!w || !w->path || !w->name) {
		watch_close(w);
		return err_set(err, -ENOMEM, "%s: out of memory", path);
	}
	w->now.trace = w->name;
	w->warm_up_ns = warm_up_ns;
	w->knowledge = knowledge;
	r = begin(w, err);
	if (r) {
		watch_close(w);
		return r;
	}
	*out = w;
	return 0;
}

void watch_close(struct watch *w)
{
	if (!w)
		return;
	end(w);
	free(w->name);
	free(w->path);
	free(w);
}

const char *watch_path(const struct watch *w)
{
	return w->path;
}

void watch_set_pressure(struct watch *w, const struct pressure *p)
{
	w->now.pressure = *p;
}

void watch_set_cause(struct watch *w, const struct watched_cause *c)
{
	w->now.likely = *c;
}

const struct model *watch_model(const struct watch *w)
{
	return w->model;
}

static int read_events(struct watch *w, struct err *err)
{
	struct event e;
	int r;

	while ((r = trace_next_outside(w->trace, &e, err)) == 1) {
		if (in_flight_see(&w->in_flight, &e))
			return err_set(err, -ENOMEM, "%s: out of memory", w->path);
		model_file_see(&w->model_file, &e);
		r = model_apply(w->model, &e, err);
		if (r < 0)
			return r;
	}
	return r;
}

/* Read on, from the start again where a checkpoint replaced what was read. */
static int read_on(struct watch *w, struct err *err)
{
	int r = w->now.looks ? trace_follow_on(w->trace, err) : 0;

	if (w->frames) /* new stacks may have moved those that its path names */
		trace_path_fini(&w->frames->path);
	if (r == 1 || r == -EAGAIN) {
		end(w);
		w->now.begun_again++;
		memset(w->holes_ns, 0, sizeof(w->holes_ns));
		r = begin(w, err);
	}
	return r < 0 ? r : read_events(w, err);
}

/* What memory is for. `all`: the call sites of `m`, which is the space's. */
static void see_roles(
    struct watch *w, const struct model *m, const struct callsites *all, struct watched_space *s)
{
	roles_sum(w->frames, m, s->role_bytes);
	s->retained_bytes = roles_retained(w->frames, m, all, w->model->run.last_ns);
}

static void see_host(struct watch *w)
{
	static const char *const names[] = {[LIMIT_SYSTEM] = "machine",
	    [LIMIT_CGROUP] = "cgroup",
	    [LIMIT_AS] = "address space",
	    [LIMIT_DATA] = "data"};
	const struct model *m = w->model;
	struct watched_space *s = &w->now.spaces[w->now.space_count++];
	struct room room;

	*s = (struct watched_space){.live_bytes = m->blocks.bytes + m->maps.bytes,
	    .largest_request = holes_largest_request(m)};
	strcpy(s->name, "host");
	if (rooms_of_host(m, &room)) {
		s->limit = names[room.limit];
		s->limit_bytes = room.bytes;
		s->left = room.left;
	}
}

/* `torch` is PyTorch's space on the device that is the latest one of w->now. */
static int see_holes(struct watch *w, const struct space *torch)
{
	size_t at = w->now.space_count - 1;
	struct watched_space *s = &w->now.spaces[at];
	int r;

	if (!w->holes_ns[at] || w->model->run.last_ns - w->holes_ns[at] >= HOLES_EVERY_NS) {
		r = holes_measure(w->model, torch, s->largest_request, &w->holes[at]);
		if (r)
			return r;
		w->holes_ns[at] = w->model->run.last_ns + 1;
	}
	s->holes_known = true;
	s->hole_bytes = w->holes[at].bytes;
	s->largest_hole = w->holes[at].largest;
	s->unusable = holes_unusable(&w->holes[at], s->left, s->largest_request);
	return 0;
}

static int see_devices(struct watch *w, struct err *err)
{
	int r;
	const struct spaces *all = w->model->spaces;
	struct room room;

	for (uint32_t i = 0; all && i < all->count; i++) {
		const struct space *sp = all->list[i];
		struct watched_space *s = &w->now.spaces[w->now.space_count];

		if (sp->kind != SPACE_CUDA || w->now.space_count == WATCHED_SPACES)
			continue;
		w->now.space_count++;
		*s = (struct watched_space){
		    .live_bytes = sp->model->blocks.bytes + sp->model->maps.bytes,
		    .largest_request = holes_largest_request(sp->model)};
		snprintf(s->name, sizeof(s->name), "%s", sp->name);
		if (rooms_of_device(sp, &room)) {
			s->limit = "device";
			s->limit_bytes = room.bytes;
			s->left = room.left;
		}
		for (uint32_t k = 0; k < all->count; k++)
			if (all->list[k]->kind == SPACE_TORCH &&
			    all->list[k]->device == sp->device) {
				s->reserved_bytes = s->live_bytes;
				s->live_bytes = all->list[k]->model->blocks.bytes;
				s->largest_request = holes_largest_request(all->list[k]->model);
				r = see_holes(w, all->list[k]);
				if (r)
					return err_set(err, r, "%s: out of memory", w->path);
			}
	}
	return 0;
}

/* Without a limit, or in the warm-up, nothing is forecast. `room` as in growth_forecast(). */
static void see_forecast(const struct watch *w, const struct model *m, const struct callsites *all,
    const struct room *room, struct watched_space *s)
{
	forecast_make(NULL, 0, 0, &s->forecast);
	if (s->limit && w->now.age_ns >= w->warm_up_ns)
		growth_forecast(m, all, w->model->run.last_ns, room, &s->forecast);
}

/* In the order of see_devices(). */
static int see_device_forecasts(struct watch *w, struct err *err)
{
	const struct spaces *spaces = w->model->spaces;
	size_t at = 1;

	for (uint32_t i = 0; spaces && i < spaces->count && at < w->now.space_count; i++) {
		const struct space *sp = spaces->list[i];
		struct watched_space *s = &w->now.spaces[at];
		struct device_growth of;
		struct callsites *all;
		int r;

		if (sp->kind != SPACE_CUDA)
			continue;
		of = growth_of_device(spaces, sp, s->left);
		r = callsites_new(of.model, AT_END, &all, err);
		if (r)
			return r;
		see_forecast(w, of.model, all, &(struct room){.left = of.room}, s);
		see_roles(w, of.model, all, s);
		callsites_free(all);
		at++;
	}
	return 0;
}

/* Return the bytes a second that a call site kept of late, of blocks that stay or grow. */
static double rate_of(const struct callsite *c, uint64_t from_ns, uint64_t until_ns)
{
	double seconds = (double)(until_ns - from_ns) / 1e9;

	if ((!c->survivors.stays && !c->size.grows) || callsite_is_import(c) || seconds <= 0)
		return 0;
	return ((double)c->survivors.bytes - survivors_bytes_until(c, from_ns)) / seconds;
}

static int by_rate(const void *a, const void *b)
{
	const struct watched_site *x = a, *y = b;

	if (x->rate != y->rate)
		return x->rate < y->rate ? 1 : -1;
	return (x->live_bytes < y->live_bytes) - (x->live_bytes > y->live_bytes);
}

static void see_kinds(const struct model *m, const struct callsites *all, struct watched_kinds *out)
{
	*out = (struct watched_kinds){
	    .blocks = m->blocks.bytes,
	    .mappings = num_less(m->maps.bytes, num_sum(all->shared_bytes, all->file_bytes)),
	    .shared = all->shared_bytes,
	    .files = all->file_bytes,
	};
	for (uint32_t i = 0; i < all->count; i++)
		out->imports += all->list[i].facts.imported_bytes;
}

static int see_sites(struct watch *w, struct err *err)
{
	const struct model *m = w->model;
	uint64_t age = num_less(m->run.last_ns, m->run.first_ns);
	uint64_t from = m->run.last_ns - age / RECENT_PART;
	struct callsites *all;
	struct watched_site *list;
	struct room room = {.left = 0};
	int r = callsites_new(m, AT_END, &all, err);

	if (r)
		return r;
	see_kinds(m, all, &w->now.kinds);
	list = calloc(all->count + 1, sizeof(*list));
	for (uint32_t i = 0; list && i < all->count; i++) {
		const struct callsite *c = &all->list[i];
		double rate = rate_of(c, from, m->run.last_ns);

		if (rate * (double)age / 1e9 < RATE_MIN * (double)all->live_bytes)
			rate = 0;
		if (rate > 0)
			w->now.kinds.growing += c->facts.live_bytes;
		list[i] = (struct watched_site){.function = c->function,
		    .file = c->file,
		    .line = c->line,
		    .live_bytes = c->facts.live_bytes,
		    .live_count = c->facts.live_count,
		    .rate = rate,
		    .stack = c->stack};
	}
	if (list) {
		qsort(list, all->count, sizeof(*list), by_rate);
		w->now.callsite_total = all->count;
		w->now.listed = num_least(all->count, WATCHED_SITES);
		w->now.seen = num_least(all->count, WATCHED_SEEN);
		memcpy(w->now.sites, list, w->now.seen * sizeof(*list));
	} else {
		r = err_set(err, -ENOMEM, "%s: out of memory", w->path);
	}
	free(list);
	rooms_of_host(m, &room);
	see_forecast(w, m, all, &room, &w->now.spaces[0]);
	see_roles(w, m, all, &w->now.spaces[0]);
	callsites_free(all);
	return r;
}

static double level_or_nan(const struct model *m, uint32_t key)
{
	uint64_t bytes;

	return levels_get(&m->measured.levels, key, &bytes) ? (double)bytes : NAN;
}

static void see_process(struct watch *w)
{
	const struct trace_facts *f = trace_facts(w->trace);
	struct watched *now = &w->now;
	size_t used = 0;

	now->pid = f->pid;
	now->running = f->running;
	now->ended_well = f->end_how == TRACE_END_EXIT && f->end_code == 0;
	now->sampled = f->mode == TRACE_MODE_SAMPLED;
	now->attached = w->model->base.attached;
	now->ran_ns = w->model->base.ran_ns;
	now->before_bytes = base_left(&w->model->base, true);
	now->age_ns = num_sum(w->model->run.last_ns, now->ran_ns);
	now->resident_bytes = levels_value(&w->model->measured.levels, TRACE_LEVEL_RSS_ANON) +
			      levels_value(&w->model->measured.levels, TRACE_LEVEL_RSS_SHMEM) +
			      levels_value(&w->model->measured.levels, TRACE_LEVEL_RSS_FILE);
	now->refused =
	    w->model->refusals.requests + (w->model->spaces ? w->model->spaces->failure_total : 0);
	now->events = w->model->run.events;
	now->malloc_free = level_or_nan(w->model, TRACE_LEVEL_MALLOC_FREE);
	now->python_free = level_or_nan(w->model, TRACE_LEVEL_PYTHON_FREE);
	now->marks = w->in_flight.marks;
	now->requests = w->in_flight.requests;
	now->in_flight = in_flight_requests(&w->in_flight);
	now->has_tasks = w->in_flight.has_tasks;
	now->tasks = in_flight_tasks(&w->in_flight);
	now->dropped = f->dropped_total;
	now->trace_bytes = f->file_bytes;
	if (!model_name_of_arguments(f->argv, now->model))
		memcpy(now->model, w->model_file.name, sizeof(now->model));
	now->command[0] = '\0';
	for (size_t i = 0; f->argv && f->argv[i] && used < sizeof(now->command) - 1; i++) {
		const char *slash = strrchr(f->argv[i], '/');

		used += (size_t)snprintf(now->command + used, sizeof(now->command) - used, "%s%s",
		    i ? " " : "", slash && slash[1] ? slash + 1 : f->argv[i]);
	}
}

int watch_look(struct watch *w, const struct watched **out, struct err *err)
{
	int r = read_on(w, err);

	if (r)
		return r;
	w->now.looks++;
	see_process(w);
	w->now.space_count = w->now.listed = w->now.seen = w->now.callsite_total = 0;
	see_host(w);
	r = see_devices(w, err);
	if (!r)
		r = see_sites(w, err);
	if (!r)
		r = see_device_forecasts(w, err);
	*out = &w->now;
	return r;
}

size_t watch_stack(struct watch *w, uint32_t stack, const struct symbol **out)
{
	return stack ? trace_symbols(w->trace, stack, out) : 0;
}
