#include "model/request/request.h"

#include <errno.h>
#include <stdlib.h>

#include "util/num.h"
#include "util/tuned.h"

TUNED(unsigned, FALL_PART, 8u, "a smaller fall is an object freed on the way");
TUNED(unsigned, ROUND_PART, 2u, "a round ends with a fall of half of the largest one");
TUNED(unsigned, ROUND_OF_ALL, 4u,
    "until there is a habit a round gives back a quarter of what the lane holds");

const char *request_source_name(enum request_source source)
{
	static const char *const names[] = {"none", "marks", "frames", "tasks", "threads"};

	return names[source];
}

struct requests *requests_new(bool (*is_entry)(void *arg, uint32_t stack), void *arg)
{
	struct requests *r = calloc(1, sizeof(*r));

	if (!r)
		return NULL;
	map_seed();
	r->is_entry = is_entry;
	r->arg = arg;
	r->last_key = UINT64_MAX;
	/* The lane of all threads and tasks that get none of their own. */
	if (vec_push(&r->lanes, (struct lane){.ended = true})) {
		free(r);
		return NULL;
	}
	return r;
}

void requests_free(struct requests *r)
{
	if (!r)
		return;
	vec_free(&r->lanes);
	map_free(&r->by_key);
	map_free(&r->by_id);
	free(r);
}

/* --- lanes --- */

static void count_ended(struct requests *r, const struct lane *l, uint64_t end_ns)
{
	struct lanes_ended *e;

	if (l->refused)
		return;
	e = &r->ended[l->peak ? 63 - __builtin_clzll(l->peak) : 0];

	e->count++;
	e->life_ns += num_less(end_ns, l->first_ns);
	e->clean += l->live <= l->peak / REQUEST_LEFT_PART;
}

/* Free the lanes that ended with no live bytes, and those that hold nothing and never held much. */
static int make_room(struct requests *r)
{
	size_t kept = 1;

	map_clear(&r->by_key);
	r->last_key = UINT64_MAX;
	for (size_t i = 1; i < r->lanes.count; i++) {
		struct lane *l = &r->lanes.items[i];

		if (!l->live && !requests_of_lane(r, l)) {
			if (!l->ended)
				count_ended(r, l, l->last_ns);
			continue;
		}
		r->lanes.items[kept++] = *l;
	}
	r->lanes.count = kept;
	for (size_t i = 1; i < kept; i++) {
		uint64_t *at = map_put(
		    &r->by_key, event_worker(r->lanes.items[i].thread, r->lanes.items[i].task));
		if (!at)
			return -ENOMEM;
		*at = i;
	}
	return 0;
}

static struct lane *find_lane(struct requests *r, uint32_t thread, uint32_t task)
{
	uint64_t key = event_worker(thread, task), *at;

	if (key == r->last_key)
		return &r->lanes.items[r->last_lane];
	at = map_find(&r->by_key, key);
	if (!at)
		return NULL;
	r->last_key = key;
	r->last_lane = (uint32_t)*at;
	return &r->lanes.items[*at];
}

/* Find the lane, or create it. NULL: no memory. */
static struct lane *lane_of(struct requests *r, uint32_t thread, uint32_t task, uint64_t time_ns)
{
	struct lane *l = find_lane(r, thread, task);
	uint64_t *at;

	if (l)
		return l;
	/* If few lanes were freed, the next try comes after as many more overflows. */
	if (r->lanes.count >= REQUEST_LANES && r->overflow++ % REQUEST_LANES == 0 && make_room(r))
		return NULL;
	if (r->lanes.count >= REQUEST_LANES)
		return &r->lanes.items[0];
	at = map_put(&r->by_key, event_worker(thread, task));
	if (!at)
		return NULL;
	*at = r->lanes.count;
	if (vec_push(&r->lanes, (struct lane){.thread = thread, .task = task, .first_ns = time_ns}))
		return NULL;
	r->tasks |= task != 0;
	return &r->lanes.items[r->lanes.count - 1];
}

static void end_round(struct lane *l, uint64_t fall)
{
	if (l->rounds < REQUEST_ROUNDS && fall < l->high / ROUND_OF_ALL)
		return;
	if (fall > l->largest_fall) {
		if (fall / ROUND_PART > l->largest_fall) {
			l->rounds = 0;
			l->setup_ns = l->low_ns;
		}
		l->largest_fall = fall;
	}
	if (fall < l->largest_fall / ROUND_PART)
		return;
	l->rounds++;
	l->base_ns = l->low_ns;
	l->base = l->low;
}

static void rise(struct lane *l)
{
	/* Seldom, so a branch is cheaper than a store at each event. */
	if (l->live > l->peak)
		l->peak = l->live;
	if (!l->falling) {
		if (l->live > l->high)
			l->high = l->live;
	} else if (l->live - l->low > l->largest_fall / FALL_PART) {
		end_round(l, l->high - l->low);
		l->falling = false;
		l->high = l->live;
	}
}

static void fall(struct lane *l, uint64_t time_ns)
{
	if (!l->falling) {
		if (l->high - l->live <= l->largest_fall / FALL_PART)
			return;
		l->falling = true;
		l->low = l->live;
		l->low_ns = time_ns;
	} else if (l->live < l->low) {
		l->low = l->live;
		l->low_ns = time_ns;
	}
}

/* --- requests --- */

static struct request_run *request_of(const struct requests *r, const struct lane *l)
{
	const struct request_run *q = &r->open[l->request];

	return l->request_serial && q->serial == l->request_serial && q->used
		   ? (struct request_run *)q
		   : NULL;
}

static void keep(struct requests *r, const struct request_run *q)
{
	uint32_t at = r->kept_count;

	if (at == REQUESTS_KEPT) {
		at--;
		if (r->kept[at].peak >= q->peak)
			return;
	} else {
		r->kept_count++;
	}
	for (; at && r->kept[at - 1].peak < q->peak; at--)
		r->kept[at] = r->kept[at - 1];
	r->kept[at] = *q;
}

static void leave(struct lane *l)
{
	l->request_serial = 0;
}

static void enter(struct lane *l, const struct requests *r, struct request_run *q, uint64_t now)
{
	if (!q)
		return;
	l->request = (uint32_t)(q - r->open);
	l->request_serial = q->serial;
	q->shared |= l->thread != q->thread || l->task != q->task;
	l->entered_ns = now;
	l->rounds_before = l->rounds;
	if (!l->first_entered_ns)
		l->first_entered_ns = now;
}

/* NULL: too many are open. */
static struct request_run *begin(struct requests *r, const struct lane *l, uint64_t id,
    const char *name, bool marked, uint64_t time_ns)
{
	struct request_run *q;

	if (!r->begun++)
		r->first_start_ns = time_ns;
	if (r->in_flight >= REQUESTS_OPEN)
		return NULL;
	if (r->open_free) {
		q = &r->open[r->open_free - 1];
		r->open_free = q->next_free;
	} else {
		q = &r->open[r->open_used++];
	}
	*q = (struct request_run){.id = id,
	    .serial = r->begun,
	    .name = name,
	    .thread = l->thread,
	    .task = l->task,
	    .start_ns = time_ns,
	    .marked = marked,
	    .used = true};
	if (++r->in_flight > r->most_at_once)
		r->most_at_once = r->in_flight;
	return q;
}

static void end(struct requests *r, struct request_run *q, uint64_t time_ns)
{
	q->end_ns = time_ns;
	if (r->on_end)
		r->on_end(r->end_arg, q);
	keep(r, q);
	if (!r->finished++)
		r->first_end_ns = time_ns;
	r->finished_peak = num_most(r->finished_peak, q->peak);
	r->in_flight--;
	q->used = false;
	q->next_free = r->open_free;
	r->open_free = (uint32_t)(q - r->open) + 1;
}

static bool is_own(const struct lane *l, const struct request_run *q)
{
	return q->thread == l->thread && q->task == l->task;
}

/* Find the request that a lane is in because another lane of its thread is. A task that runs during
 * a call of its thread works for that call: the call's frames lie beneath the task's, whether the
 * call runs a loop or calls in a context of its own. The task may show the call first; the request
 * belongs to the call once the thread itself is seen in it. */
static struct request_run *around(struct requests *r, const struct lane *l)
{
	const struct lane *own = l->task ? find_lane(r, l->thread, 0) : NULL;
	struct request_run *newest = NULL;

	if (l->task)
		return own ? request_of(r, own) : NULL;
	for (uint32_t i = 0; i < r->open_used; i++) {
		struct request_run *q = &r->open[i];

		if (q->used && q->thread == l->thread && q->task && q->start_ns > l->last_ns &&
		    (!newest || q->serial > newest->serial))
			newest = q;
	}
	if (newest)
		newest->task = 0;
	return newest;
}

static void follow_frames(struct requests *r, struct lane *l, uint32_t stack, uint64_t time_ns)
{
	struct request_run *q = request_of(r, l);
	bool inside;

	if (!r->is_entry || !stack || r->marked || l == r->lanes.items)
		return;
	inside = r->is_entry(r->arg, stack);
	if (inside == (q != NULL))
		return;
	if (inside) {
		q = around(r, l);
		enter(l, r, q ? q : begin(r, l, 0, NULL, false, time_ns), time_ns);
	} else {
		if (is_own(l, q))
			end(r, q, time_ns);
		leave(l);
	}
}

/* Marks overrule frames: drop the requests that frames showed. */
static void forget_frames(struct requests *r)
{
	r->marked = true;
	for (size_t i = 1; i < r->lanes.count; i++) {
		leave(&r->lanes.items[i]);
		r->lanes.items[i].first_entered_ns = 0;
	}
	r->open_used = r->open_free = r->kept_count = 0;
	r->begun = r->finished = r->in_flight = r->most_at_once = 0;
	r->finished_peak = r->first_start_ns = r->first_end_ns = 0;
}

static void on_phase(struct requests *r, const struct event *e)
{
	if (e->u.mark.phase == TRACE_MARK_BEGIN && r->phase_count < MARKED_PHASES)
		r->phases[r->phase_count++] = (struct marked_phase){
		    .name = e->u.mark.name, .id = e->u.mark.id, .start_ns = e->time_ns};
	for (uint32_t i = r->phase_count; e->u.mark.phase == TRACE_MARK_END && i-- > 0;)
		if (r->phases[i].id == e->u.mark.id && !r->phases[i].end_ns) {
			r->phases[i].end_ns = e->time_ns;
			return;
		}
}

static int on_mark(struct requests *r, const struct event *e)
{
	struct request_run *q;
	struct lane *l;
	uint64_t *at;

	if (e->u.mark.what == TRACE_MARK_PHASE)
		on_phase(r, e);
	if (e->u.mark.what != TRACE_MARK_REQUEST || e->u.mark.phase == TRACE_MARK_POINT)
		return 0;
	if (!r->marked)
		forget_frames(r);
	l = lane_of(r, e->thread, e->task, e->time_ns);
	if (!l)
		return -ENOMEM;
	at = map_find(&r->by_id, e->u.mark.id);
	q = at ? &r->open[*at] : NULL;
	switch (e->u.mark.phase) {
	case TRACE_MARK_BEGIN:
		if (q) /* its end was never marked */
			break;
		q = begin(r, l, e->u.mark.id, e->u.mark.name, true, e->time_ns);
		if (!q)
			break;
		at = map_put(&r->by_id, e->u.mark.id);
		if (!at)
			return -ENOMEM;
		*at = (uint64_t)(q - r->open);
		/* fallthrough */
	case TRACE_MARK_ENTER:
		if (l != r->lanes.items)
			enter(l, r, q, e->time_ns);
		break;
	case TRACE_MARK_LEAVE:
		if (request_of(r, l) == q)
			leave(l);
		break;
	case TRACE_MARK_END:
		if (!q)
			break;
		end(r, q, e->time_ns);
		map_remove(&r->by_id, e->u.mark.id);
		break;
	}
	return 0;
}

static void end_lane(struct requests *r, uint32_t thread, uint32_t task, uint64_t time_ns)
{
	struct lane *l = find_lane(r, thread, task);
	struct request_run *q;

	if (!l || l->ended)
		return;
	l->ended = true;
	count_ended(r, l, time_ns);
	q = request_of(r, l);
	if (q && !q->marked && is_own(l, q))
		end(r, q, time_ns);
	leave(l);
}

/* --- events --- */

int requests_acquired(struct requests *r, const struct block *b, uint64_t time_ns)
{
	struct lane *l = lane_of(r, b->thread, b->task, time_ns);
	uint64_t bytes = block_bytes(b);
	struct request_run *q;

	if (!l)
		return -ENOMEM;
	follow_frames(r, l, b->stack, time_ns);
	l->last_ns = time_ns;
	l->live += bytes;
	l->acquired += bytes;
	rise(l);
	q = request_of(r, l);
	if (!q)
		return 0;
	q->acquired += bytes;
	q->live += bytes;
	if (q->live > q->peak)
		q->peak = q->live;
	return 0;
}

/* `moving`: its successor replaces it at once. */
static void released(struct requests *r, const struct block *b, uint64_t time_ns, bool moving)
{
	struct lane *l = find_lane(r, b->thread, b->task);
	uint64_t bytes = block_bytes(b);
	struct request_run *q;

	if (!l)
		l = r->lanes.items;
	l->live = num_less(l->live, bytes);
	q = request_of(r, l);
	if (q && b->birth_ns >= l->entered_ns)
		q->live = num_less(q->live, bytes);
	if (moving)
		return;
	l->frees_ns[l->frees++ % LANE_FREES] = time_ns;
	fall(l, time_ns);
}

int requests_passed(struct requests *r, const struct event *e)
{
	struct lane *l;

	if (e->kind != EV_ALLOC)
		return e->kind == EV_FREE || e->kind == EV_UNFREE ? 0 : requests_apply(r, e);
	if (!r->is_entry || r->marked)
		return 0;
	l = lane_of(r, e->thread, e->task, e->time_ns);
	if (!l)
		return -ENOMEM;
	follow_frames(r, l, e->stack, e->time_ns);
	return 0;
}

int requests_apply(struct requests *r, const struct event *e)
{
	struct lane *l;

	switch (e->kind) {
	case EV_ALLOC:
	case EV_UNFREE:
		return e->block ? requests_acquired(r, e->block, e->time_ns) : 0;
	case EV_FREE:
		if (e->block)
			released(r, e->block, e->time_ns, e->flags & EVENT_REALLOC);
		return 0;
	case EV_FAILED:
		l = find_lane(r, e->thread, e->task);
		if (l)
			l->refused = true;
		return 0;
	case EV_THREAD_EXIT:
		end_lane(r, e->thread, 0, e->time_ns);
		return 0;
	case EV_TASK_END:
		end_lane(r, e->thread, e->task, e->time_ns);
		return 0;
	case EV_MARK:
		return on_mark(r, e);
	default:
		return 0;
	}
}

enum request_source requests_source(const struct requests *r)
{
	if (r->begun)
		return r->marked ? REQUESTS_MARKED : REQUESTS_FRAMES;
	if (r->tasks)
		return REQUESTS_TASKS;
	return r->lanes.count > 2 ? REQUESTS_THREADS : REQUESTS_NONE;
}

const struct request_run *requests_of_lane(const struct requests *r, const struct lane *l)
{
	return request_of(r, l);
}

bool requests_lane_only_makes(const struct lane *l, uint64_t since_ns)
{
	return l->frees_ns[l->frees % LANE_FREES] < since_ns;
}

const struct lane *requests_lane(const struct requests *r, uint32_t thread, uint32_t task)
{
	const uint64_t *at = map_find(&r->by_key, event_worker(thread, task));

	return at ? &r->lanes.items[*at] : NULL;
}

struct lanes_ended requests_ended(const struct requests *r, uint64_t peak)
{
	struct lanes_ended sum = {0};

	for (uint32_t i = peak ? 63 - (uint32_t)__builtin_clzll(peak) : 0; i < 64; i++) {
		sum.count += r->ended[i].count;
		sum.clean += r->ended[i].clean;
		sum.life_ns += r->ended[i].life_ns;
	}
	return sum;
}
