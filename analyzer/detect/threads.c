/*
 * threads.c - whether threads end with their work or stay, which their number alone does not tell:
 * for causes of an address space that threads' stacks fill.
 */
#include <math.h>

#include "detect/detect.h"
#include "util/tuned.h"

TUNED(uint64_t, THREADS_MIN, 16u, "pools of threads have as many as there are processors, or few");
TUNED(unsigned, THREADS_FEW, 16u, "the helpers of a library's start end, too");
TUNED(unsigned, THREADS_TELL, 8u, "of eight that ended one at most may be of the late ones");
TUNED(double, THREADS_SURE, 128.0, "no pool has as many threads as that by design");
TUNED(double, UNJOINED_TIMES, 2.0,
    "where half of all that ended are left, nobody joins them; of a burst, the last are few");
TUNED(uint64_t, THREAD_START_NS, 500000u,
    "to start a thread takes some ten microseconds, to serve a request a millisecond");

/* True if the threads that have ended began before those that have not: then many have come at
 * once, where otherwise some of each time do not end. Only threads that allocated are known. */
static bool ended_came_first(const struct scene *scene)
{
	const struct requests *r = scene->held ? scene->held->of : NULL;
	uint32_t ended = 0, later = 0, alive = 0;
	uint64_t sum = 0, mean;

	for (size_t i = 1; r && i < r->lanes.count; i++) {
		const struct lane *l = &r->lanes.items[i];

		if (!l->task && !l->ended && l->first_ns > scene->model->run.first_ns) {
			alive++;
			sum += l->first_ns;
		}
	}
	mean = alive ? sum / alive : 0;
	for (size_t i = 1; r && i < r->lanes.count; i++) {
		const struct lane *l = &r->lanes.items[i];

		ended += !l->task && l->ended;
		later += !l->task && l->ended && l->first_ns > mean;
	}
	return alive > 1 && ended >= THREADS_TELL && later <= ended / THREADS_TELL;
}

double scene_threads_end(const struct scene *scene)
{
	const struct scene_limit *l = &scene->limit;
	double times = l->threads ? (double)l->threads_ended / (double)l->threads : 0;

	if (!scene_asks_for_thread(scene))
		return 0;
	if (l->threads_ended && ended_came_first(scene))
		return 1;
	/* Where half as many had ended, most of them stay. */
	return fmin(1, times * times);
}

double scene_threads_unjoined(const struct scene *scene)
{
	const struct scene_limit *l = &scene->limit;
	double each = l->threads ? (double)l->stacks / (double)l->threads : 0;

	if (!l->unjoined || !l->threads_ended || each <= 0)
		return 0;
	return fmin(1, UNJOINED_TIMES * (double)l->unjoined / each / (double)l->threads_ended);
}

double scene_threads_stay(const struct scene *scene)
{
	const struct callsite *p;

	if (!scene_asks_for_thread(scene) || scene->callsites->failed == CALLSITE_NONE ||
	    scene->limit.threads < THREADS_MIN)
		return 0;
	/* The loader's table of thread-local memory lives as long as its thread. */
	p = &scene->callsites->list[scene->callsites->failed];
	if (p->survivors.stays && p->survivors.count >= scene->limit.threads / 2) {
		/* A pool is started in one go, and its threads do not end. */
		if (scene->limit.threads_ended < scene->limit.threads / THREADS_FEW &&
		    (p->facts.last_ns - p->facts.first_ns) / p->survivors.count < THREAD_START_NS)
			return 0;
		return finding_stays(p) * (1 - scene_threads_end(scene));
	}
	/* A sample has few of these tables. */
	return scene->sample_every ? fmin(1, (double)scene->limit.threads / THREADS_SURE) *
					 (1 - scene_threads_end(scene))
				   : 0;
}
