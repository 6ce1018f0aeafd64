/*
 * backtest TRACE...: what a forecast would have said at one half, three quarters and nine tenths of
 * the life of each process of these traces, and what then happened. A life ends with the refused
 * request that a report would explain, or with the process.
 *
 * Prints a line for each cut and space with a limit, fields separated by tabs: trace, pid, cut,
 * space, state, alarm, the forecast's seconds until the end (expected, soonest, latest), those that
 * were really left, bytes left, bytes a second, seconds since it grows, bytes to acquire until the
 * end, those that really were acquired, the limit, and the seconds that acquiring them would have
 * taken at the speed of the life's newer half so far: whoever knew all of the future but the speed
 * of the machine would have said that.
 * backtest.py adds up.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "model/model.h"
#include "model/space/space.h"
#include "trace/trace.h"
#include "util/num.h"
#include "verdict/forecast/growth.h"
#include "verdict/forecast/rooms.h"

static const double cuts[] = {0.5, 0.75, 0.9};
static const char *const states[] = {"unknown", "steady", "grows"};

struct life {
	const char *path;
	uint32_t pid;
	uint64_t first_ns, end_ns;
	const struct model *whole; /* until the trace's end */
};

/* A life that is cut off: what was known then. */
struct cut {
	const struct life *of;
	double part;
	uint64_t now_ns;
};

/* Return the seconds that it takes to acquire `bytes` at the speed so far. */
static double at_speed(const struct cut *c, const struct model *whole, double bytes)
{
	uint64_t half = (c->of->first_ns + c->now_ns) / 2;
	double before = (double)timeline_acquired(&whole->timeline, half, c->now_ns);

	return before > 0 ? bytes * (double)(c->now_ns - half) / 1e9 / before : INFINITY;
}

/* `whole`: the space's model until the trace's end. */
static int print_space(const struct cut *c, const char *name, const struct model *m,
    const struct model *whole, const struct room *room, struct err *err)
{
	const struct life *of = c->of;
	struct callsites *all;
	struct forecast f;
	uint64_t acquired = timeline_acquired(&whole->timeline, c->now_ns, of->end_ns);
	int r = callsites_new(m, AT_END, &all, err);

	if (r)
		return r;
	growth_forecast(m, all, c->now_ns, room, &f);
	printf("%s\t%u\t%.2f\t%s\t%s\t%d\t%g\t%g\t%g\t%g\t%llu\t%g\t%g\t%g\t%llu\t%llu\t%g\n",
	    of->path, of->pid, c->part, name, states[f.state], f.alarm, f.seconds, f.soonest,
	    f.latest, (1 - c->part) * (double)(of->end_ns - of->first_ns) / 1e9,
	    (unsigned long long)room->left, f.rate, f.since, f.work, (unsigned long long)acquired,
	    (unsigned long long)room->bytes, at_speed(c, whole, (double)acquired));
	callsites_free(all);
	return 0;
}

static int print_devices(const struct cut *c, const struct spaces *spaces, struct err *err)
{
	const struct spaces *whole = c->of->whole->spaces;
	struct room room;
	int r = 0;

	for (uint32_t i = 0; spaces && i < spaces->count && !r; i++) {
		const struct space *sp = spaces->list[i];
		struct device_growth device;

		if (sp->kind != SPACE_CUDA || !rooms_of_device(sp, &room))
			continue;
		device = growth_of_device(spaces, sp, room.left);
		/* The order of spaces is that of their first events. */
		room = (struct room){.bytes = room.bytes, .left = device.room};
		r = print_space(c, sp->name, device.model,
		    device.model == sp->model ? whole->list[i]->model
					      : spaces_of(whole, SPACE_TORCH, sp->device)->model,
		    &room, err);
	}
	return r;
}

static int print_cut(struct trace *t, const struct life *of, double part, struct err *err)
{
	uint64_t at = of->first_ns + (uint64_t)((double)(of->end_ns - of->first_ns) * part);
	struct room room;
	struct model *m;
	struct cut c;
	int r = feed_until_model(feed_of_trace(t), UINT64_MAX, at, &m, err);

	if (r)
		return r;
	c = (struct cut){of, part, m->run.last_ns};
	if (rooms_of_host(m, &room))
		r = print_space(&c, "host", m, of->whole, &room, err);
	if (!r)
		r = print_devices(&c, m->spaces, err);
	model_free(m);
	return r;
}

static int print_life(struct trace *t, const char *path, struct err *err)
{
	struct life of = {.path = path, .pid = trace_facts(t)->pid};
	const struct device_failure *device;
	struct failure_view host;
	struct model *m;
	int r = feed_until_model(feed_of_trace(t), UINT64_MAX, UINT64_MAX, &m, err);

	if (r)
		return r;
	of.first_ns = m->run.first_ns;
	of.end_ns = m->run.last_ns;
	failure_settle(m);
	failure_read(m, NULL, &host);
	device = spaces_failure(m->spaces);
	if (host.kind != FAILURE_NONE)
		of.end_ns = host.time_ns;
	if (device)
		of.end_ns = num_least(of.end_ns, device->time_ns);
	of.whole = m;
	for (size_t n = 0; n < sizeof(cuts) / sizeof(*cuts) && !r; n++)
		r = print_cut(t, &of, cuts[n], err);
	model_free(m);
	return r;
}

int main(int argc, char **argv)
{
	int status = 0;

	for (int i = 1; i < argc; i++) {
		struct trace_set set;
		struct err err;
		int r = trace_set_open(argv[i], &set, &err);

		for (size_t k = 0; !r && k < set.count; k++)
			r = print_life(set.images[k], argv[i], &err);
		if (r) {
			fprintf(stderr, "%s\n", err.text);
			status = 1;
			continue;
		}
		trace_set_close(&set);
	}
	return status;
}
