/*
 * open_call.c - see open_call.h.
 *
 * A trace has no record of calls, but each acquisition has its stack. While a call is open, every
 * stack of its thread begins with the frames and lines that lead to the call; a stack that begins
 * otherwise shows that the call has returned. The reverse is not true: if the caller acquires
 * nothing, a loop around a call looks like one call with the loop inside. So a call that was never
 * seen to return counts as surely open only if
 *
 * - calls of the same function, or of one that leads to it, were seen to return before, repeatedly,
 *   on any thread or task, and none since; or
 * - it is the evaluation of a comprehension. The table that points to its blocks grew there, and no
 *   other table may hold them; or the comprehension itself made all of them, through no function of
 *   the user: until it is finished, no other code has that table.
 */
#include "model/callsite/open_call.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "model/callsite/callsite.h"
#include "util/map.h"
#include "util/num.h"
#include "util/tuned.h"

TUNED(unsigned, BEGUN_PART, 64u, "what came before the first 1/64 of what is kept is set-up");
TUNED(unsigned, CALLS_MIN, 4u, "three calls that ended may be the start of a program");
TUNED(unsigned, CALLS_FEW, 3u,
    "the call that grows is itself seen to end, which says more than one that it makes");
TUNED(unsigned, LEFT_PART, 4u,
    "a call that gives back three quarters of what it made leaves only results");
TUNED(unsigned, ARENAS_LEFT_PART, 2u, "an arena stays for one small object that lies in it");
TUNED(uint32_t, LISTS_TELL, 16u,
    "sixteen larger blocks of a line tell what its small ones are used for");
TUNED(double, SAME_PACE_PART, 2.0,
    "one call makes its blocks far faster than many that also release what they work on");
TUNED(unsigned, BUILDUP_MIN, 16u, "a call site of fewer blocks is judged by their sizes");

/* The oldest surviving blocks show which calls left them. */
#define OLDEST 64u
#define NOT_SEEN UINT32_MAX

/* The way: the frames that lead to a call, from the outermost. */
struct way {
	const struct feed *feed;
	const struct symbol *frames;
	size_t length; /* number of frames before the calling line */
	size_t outer; /* the first frame of the user's code */
	size_t first; /* the first one below the event loop that runs it, if there is one */
	bool outermost; /* the growing line is in that very function */
	uint32_t room; /* number of stacks */
};

/* A comparison of stacks with the first `length` frames of the way. */
struct look {
	const struct way *way;
	size_t length;
	bool lines; /* equal frames must have equal lines */
	uint32_t *known; /* by stack: 1 + number of common frames; 0: unknown */
	struct stack_path path;
	size_t equal; /* number of equal frames on the path */
	uint32_t looks; /* lookups of single stacks; more than FEED_LOOKS: all were looked up */
};

static int look_init(struct look *l, const struct way *way, bool lines, size_t length)
{
	*l = (struct look){.way = way, .lines = lines, .length = length};
	l->known = calloc(way->room + 1u, sizeof(*l->known));
	return l->known ? 0 : -ENOMEM;
}

static void look_fini(struct look *l)
{
	trace_path_fini(&l->path);
	free(l->known);
}

/* A line inside the interpreter does not identify the call: sum() has one loop for integers and
 * another for other objects. */
static bool same_frame(const struct symbol *a, const struct symbol *b, bool lines)
{
	return lines && !a->interpreter ? symbol_same_line(a, b) : symbol_same_function(a, b);
}

static size_t along(const struct look *l)
{
	const struct stack_path *path = &l->path;
	size_t n = l->equal < path->same ? l->equal : path->same;

	while (n < l->length && n < path->count &&
	       same_frame(&path->symbols[n], &l->way->frames[n], l->lines))
		n++;
	return n;
}

static uint32_t look_at(struct look *l, uint32_t stack)
{
	struct stack_path *path = &l->path;
	const struct symbol *frames = l->way->frames;
	size_t n;

	/* Most stacks leave the way early, so later frames are not read. */
	path->most = l->equal + 2;
	do {
		if (feed_path(l->way->feed, stack, path))
			trace_path_fini(path);
		l->equal = n = along(l);
	} while (n && n == path->count && n >= path->most && (path->most = 2 * n));
	if (n && l->lines &&
	    (n == path->count || !same_frame(&path->symbols[n], &frames[n], false)))
		n--;
	/* A stack that was cut short, or of another kind of thread, tells nothing. */
	if (!path->count || !same_frame(&path->symbols[0], &frames[0], false))
		n = NOT_SEEN - 1;
	if (stack < l->way->room)
		l->known[stack] = (uint32_t)n + 1;
	return (uint32_t)n;
}

/* Return the number of outer frames that a stack shares with the way. With lines, the stack must go
 * on in the same function, so this is the number of the way's calls that are open in it. NOT_SEEN
 * when the outermost frame differs. */
static uint32_t common(struct look *l, uint32_t stack)
{
	const uint32_t *order;

	if (stack < l->way->room && l->known[stack])
		return l->known[stack] - 1;
	if (l->looks <= FEED_LOOKS && ++l->looks > FEED_LOOKS)
		for (size_t i = feed_stack_order(l->way->feed, &order); i-- > 0;)
			if (order[i] < l->way->room && !l->known[order[i]])
				look_at(l, order[i]);
	if (stack < l->way->room && l->known[stack])
		return l->known[stack] - 1;
	return look_at(l, stack);
}

static bool acquires(const struct event *e)
{
	return event_acquires(e) && e->stack;
}

struct walk {
	const struct way *way;
	const struct callsites *callsites;
	uint32_t callsite;
	uint64_t from_ns;
	uint32_t thread, task; /* out: those of the growth */
	/* Out: births of its oldest live blocks, unordered. */
	uint64_t oldest[OLDEST];
	uint32_t oldest_count;
};

/* True for the same thread and task: another task's turn ends no call. */
static bool is_of(const struct walk *w, const struct event *e)
{
	return e->thread == w->thread && e->task == w->task;
}

static int note_oldest(void *arg, const struct block *b)
{
	struct walk *w = arg;
	uint32_t youngest = 0;

	if (callsites_of_stack(w->callsites, STACK_STATS_HEAP, b->stack) != w->callsite)
		return 0;
	if (w->oldest_count < OLDEST) {
		w->oldest[w->oldest_count++] = b->birth_ns;
		return 0;
	}
	for (uint32_t i = 1; i < OLDEST; i++)
		if (w->oldest[i] > w->oldest[youngest])
			youngest = i;
	w->oldest[youngest] = num_least(w->oldest[youngest], b->birth_ns);
	return 0;
}

/* The calls on the first `length` frames of the way that were never seen to return. */
struct still {
	uint32_t length;
	uint32_t open, since; /* since: at the last growth or later */
};

static void still_init(struct still *s, size_t length)
{
	*s = (struct still){(uint32_t)length, (uint32_t)length, (uint32_t)length};
}

static void still_see(struct still *s, uint32_t depth, bool growth)
{
	if (depth < s->since)
		s->since = depth;
	if (growth && s->since < s->open)
		s->open = s->since;
}

/* Count the calls on the way that were never seen to return since the growth began; that many
 * frames lead to the innermost of them. 0: none, or several threads made the growth. Events after
 * the last growth do not count. `longer` and `shorter`: two lengths of the way. 0 or negative
 * errno. */
static int still_open(
    struct walk *w, struct look *look, struct still *longer, struct still *shorter, struct err *err)
{
	const struct feed *feed = w->way->feed;
	bool begun = false;
	struct event e;
	int rc = feed->rewind(feed->self, err);

	while (rc == 0 && (longer->open || shorter->open) &&
	       (rc = feed->next(feed->self, &e, err)) == 1) {
		bool growth;
		uint32_t depth;

		rc = 0;
		if (e.time_ns > w->callsites->moment_ns)
			break;
		if (e.time_ns < w->from_ns || !acquires(&e))
			continue;
		growth = callsites_made_at(w->callsites, w->callsite, e.stack);
		if (growth && !begun) {
			w->thread = e.thread;
			w->task = e.task;
			begun = true;
		}
		if (!begun || (!growth && e.thread != w->thread))
			continue;
		depth = growth && !is_of(w, &e) ? 0 : common(look, e.stack);
		/* Another task's turn ends no call, unless it came by the same way. */
		if (!is_of(w, &e) && !growth && depth <= w->way->first)
			continue;
		still_see(longer, depth, growth);
		/* A common part beyond the shorter length covers all of it. */
		still_see(shorter, depth, growth);
	}
	if (!begun)
		longer->open = shorter->open = 0;
	/* A complete build-up may have been made at any time. */
	if (!w->callsites->list[w->callsite].survivors.stays && shorter->since < shorter->open)
		shorter->open = shorter->since;
	if (rc >= 0 && longer->open)
		rc = feed->each_live(feed->self, note_oldest, w);
	return rc < 0 ? rc : 0;
}

/* How often each function on the way was entered and returned. */
struct calls {
	struct look look; /* the open call's function is the last one */
	uint64_t *ended;
	uint32_t now;
};

/* True when a call returned. */
static bool calls_see(struct calls *c, uint32_t stack)
{
	uint32_t depth = common(&c->look, stack);
	bool left = depth < c->now;

	if (depth > c->look.length)
		return false;
	for (uint32_t d = depth + 1; d <= c->now; d++)
		c->ended[d]++;
	c->now = depth;
	return left;
}

static uint64_t calls_most(const struct calls *c)
{
	uint64_t most = 0;

	for (size_t d = c->look.way->outer + 1; d <= c->look.length; d++)
		most = num_most(most, c->ended[d]);
	return most;
}

/* The open call's function, and the growing call site, reached by other ways than that call. */
struct elsewhere {
	struct look look;
	const struct symbol *function;
	struct stack_path path;
	size_t first; /* on the path: 1 + the function's frame; 0: none */
	uint8_t *known; /* by stack, enum whereabouts */
	uint32_t looks; /* as in struct look */
	struct map inside; /* by thread or task: 1 during such a call */
	uint64_t ended; /* finished calls of the function, by any way, of any thread or task */
	uint64_t ended_ns; /* end of the latest */
	uint64_t count, bytes; /* acquired by other ways, on the same thread and task */
	bool begun; /* the call was seen */
	uint64_t call_ns; /* first block of the call site by this way */
};

/* Is a stack inside the function? */
enum whereabouts {
	NOT_LOOKED,
	WITHOUT_IT,
	IN_IT,
	/* the function runs an event loop: the call is the thread's, whatever the task */
	IN_LOOP_OF_IT,
};

static enum whereabouts look_for(struct elsewhere *s, uint32_t stack)
{
	const struct stack_path *path = &s->path;

	if (feed_path(s->look.way->feed, stack, &s->path))
		trace_path_fini(&s->path);
	if (s->first > path->same)
		s->first = 0;
	for (size_t i = path->same; i < path->count && !s->first; i++)
		if (same_frame(&path->symbols[i], s->function, false))
			s->first = i + 1;
	for (size_t i = s->first; i && i < path->count; i++)
		if (blame_is_event_loop(&path->symbols[i]))
			return IN_LOOP_OF_IT;
	return s->first ? IN_IT : WITHOUT_IT;
}

/* Pre: the stack is in the map, and unknown. */
static enum whereabouts find_whereabouts(struct elsewhere *s, uint32_t stack)
{
	const uint32_t *order;

	if (s->looks <= FEED_LOOKS && ++s->looks > FEED_LOOKS)
		for (size_t i = feed_stack_order(s->look.way->feed, &order); i-- > 0;)
			if (order[i] < s->look.way->room && !s->known[order[i]])
				s->known[order[i]] = (uint8_t)look_for(s, order[i]);
	return s->known[stack] ? s->known[stack] : look_for(s, stack);
}

/* Note that the thread's task is inside a call of the function, or not. */
static int pass(struct elsewhere *s, const struct event *e, uint32_t task, bool now)
{
	uint64_t key = event_worker(e->thread, task), *inside = map_find(&s->inside, key);

	if (!inside && now)
		inside = map_put(&s->inside, key);
	if (!inside)
		return now ? -ENOMEM : 0;
	if (*inside && !now) {
		s->ended++;
		s->ended_ns = e->time_ns;
	}
	*inside = now;
	return 0;
}

static int elsewhere_see(struct elsewhere *s, const struct walk *w, const struct event *e)
{
	bool now, grows;
	int rc;

	if (e->kind == EV_THREAD_EXIT || e->kind == EV_TASK_END)
		return pass(s, e, e->task, false);
	if (!acquires(e) || e->stack >= w->way->room)
		return 0;
	if (!s->known[e->stack])
		s->known[e->stack] = (uint8_t)find_whereabouts(s, e->stack);
	now = s->known[e->stack] != WITHOUT_IT;
	/* Another task by the same way belongs to the same call, and ends with it; before that call
	 * was seen, to an earlier one. */
	if (e->thread == w->thread && s->look.length > w->way->first &&
	    common(&s->look, e->stack) == s->look.length) {
		s->begun |= is_of(w, e);
		if (s->begun && !is_of(w, e))
			return 0;
	}
	rc = pass(s, e, s->known[e->stack] == IN_LOOP_OF_IT ? 0 : e->task, now);
	grows = callsites_made_at(w->callsites, w->callsite, e->stack);
	if (rc || !is_of(w, e) || (!now && !grows))
		return rc;
	if (common(&s->look, e->stack) < s->look.length) {
		s->count++;
		s->bytes += e->size;
	} else if (!s->call_ns && grows) {
		s->call_ns = e->time_ns;
	}
	return 0;
}

/* Live bytes of the call site before the open call was seen. */
struct held {
	struct map sizes; /* by address */
	uint64_t made, now, peak; /* bytes */
};

static int held_see(struct held *h, const struct walk *w, const struct event *e)
{
	uint64_t *size;

	if (acquires(e) && callsites_made_at(w->callsites, w->callsite, e->stack)) {
		size = map_put(&h->sizes, e->address);
		if (!size)
			return -ENOMEM;
		h->now += e->size - *size;
		h->made += e->size;
		*size = e->size;
		h->peak = num_most(h->peak, h->now);
	} else if (e->kind == EV_FREE || e->kind == EV_SPACE_FREE) {
		size = map_find(&h->sizes, e->address);
		if (size) {
			h->now -= *size;
			map_remove(&h->sizes, e->address);
		}
	}
	return 0;
}

/* True if earlier calls held far less at a time than the open call, because they released on the
 * way. That they released everything then says nothing about this one's bytes. */
static bool held_less(const struct held *h, const struct callsite *p, uint64_t ended)
{
	uint64_t since = num_less(p->facts.total_bytes, h->made);

	return since && (double)h->made / (double)(ended ? ended : 1) * (double)p->survivors.bytes /
				(double)since >
			    LEFT_PART * (double)h->peak;
}

/* Events before the growth. */
struct earlier {
	struct calls calls;
	struct elsewhere elsewhere;
	struct held held;
};

static void earlier_fini(struct earlier *b)
{
	look_fini(&b->calls.look);
	free(b->calls.ended);
	look_fini(&b->elsewhere.look);
	trace_path_fini(&b->elsewhere.path);
	free(b->elsewhere.known);
	map_free(&b->elsewhere.inside);
	map_free(&b->held.sizes);
}

/* Read the events before the growth. `open` frames lead to the open call. Call earlier_fini(). */
static int earlier_read(struct walk *w, size_t open, struct earlier *b, struct err *err)
{
	const struct feed *feed = w->way->feed;
	struct event e;
	int rc;

	map_seed();
	memset(b, 0, sizeof(*b));
	rc = look_init(&b->calls.look, w->way, false, open + 1);
	if (!rc)
		rc = look_init(&b->elsewhere.look, w->way, true, open);
	b->elsewhere.function = &w->way->frames[open];
	b->calls.ended = calloc(open + 2, sizeof(*b->calls.ended));
	b->elsewhere.known = calloc(w->way->room + 1u, sizeof(*b->elsewhere.known));
	if (rc || !b->calls.ended || !b->elsewhere.known)
		return err_set(err, -ENOMEM, "no memory for the calls");
	rc = feed->rewind(feed->self, err);
	while (rc == 0 && (rc = feed->next(feed->self, &e, err)) == 1) {
		rc = 0;
		if (e.time_ns >= w->from_ns)
			break;
		if (is_of(w, &e) && acquires(&e) && calls_see(&b->calls, e.stack))
			b->elsewhere.ended_ns = e.time_ns;
		rc = elsewhere_see(&b->elsewhere, w, &e);
		if (!rc && !b->elsewhere.call_ns)
			rc = held_see(&b->held, w, &e);
	}
	return rc < 0 ? rc : 0;
}

/* True when the call site's blocks from before were released: not by a table that outgrew one. */
static bool gave_back(const struct callsite *p, uint64_t before_ns)
{
	uint64_t count = 0, freed = 0;

	if (callsite_indexes_itself(p))
		return false;
	for (uint32_t i = 0; i < p->facts.step_count && p->facts.steps[i].last_ns < before_ns;
	     i++) {
		count += p->facts.steps[i].count;
		freed += p->facts.steps[i].freed_count;
	}
	return count >= CALLS_MIN && freed >= count - count / 16;
}

/* True when most of it is mappings, the interpreter's arenas. An arena belongs to the call site of
 * the first object in it. */
static bool is_of_arenas(const struct callsite *p)
{
	return p->facts.map_bytes > p->facts.live_bytes / 2;
}

/* True when what was left by then grew at half the pace of all that came later, or faster: calls
 * that return leave as much as before. */
static bool goes_on(const struct callsites *p, const struct callsite *main, uint64_t ended_ns)
{
	double before = survivors_bytes_until(main, ended_ns);
	double since = (double)main->survivors.bytes - before;

	if (ended_ns <= main->facts.first_ns || p->moment_ns <= ended_ns)
		return false;
	return before / (double)(ended_ns - main->facts.first_ns) >=
	       since / (double)(p->moment_ns - ended_ns) / SAME_PACE_PART;
}

/* True when many of the calls that had returned by then left something behind. */
static bool left_much(const struct walk *w, uint64_t ended, uint64_t ended_ns)
{
	const struct callsite *main = &w->callsites->list[w->callsite];
	uint64_t left = 0;

	for (uint32_t i = 0; i < w->oldest_count; i++)
		left += w->oldest[i] <= ended_ns;
	/* Only steps describe mappings, and a few mappings always stay: larger blocks of the line,
	 * such as lists, tell more. */
	if (is_of_arenas(main) && w->oldest_count < LISTS_TELL)
		return survivors_count_until(main, ended_ns) > (double)ended / ARENAS_LEFT_PART ||
		       goes_on(w->callsites, main, ended_ns);
	return left > ended / LEFT_PART || left == OLDEST;
}

/* Return a call site's frame in its heaviest stack: the innermost one on its line. */
static size_t frame_of(const struct callsite *p, const struct symbol *symbols, size_t count)
{
	for (size_t i = count; i-- > 0;)
		if (callsite_is_line(p, &symbols[i]))
			return i;
	return 0;
}

/* Return the end of the step in which the growth began: the step may start with blocks that were
 * released long before. */
static uint64_t begun_ns(const struct callsite *p)
{
	uint64_t kept = 0;

	for (uint32_t i = 0; i < p->facts.step_count; i++) {
		kept += p->facts.steps[i].bytes - p->facts.steps[i].freed_bytes;
		if (kept >= p->survivors.bytes / BEGUN_PART)
			return p->facts.steps[i].last_ns;
	}
	return p->facts.first_ns;
}

/* True if it holds more than all earlier blocks there: it is not the next of a series. */
static bool is_buildup(const struct callsite *p)
{
	uint64_t made = 0, from = begun_ns(p);

	for (uint32_t i = 0; i < p->facts.step_count && p->facts.steps[i].last_ns < from; i++)
		made += p->facts.steps[i].bytes;
	return p->survivors.count >= BUILDUP_MIN && p->survivors.bytes >= made;
}

static bool qualifies(const struct callsite *p, bool buildups)
{
	return p->stack && (buildups ? !p->survivors.stays && is_buildup(p) : p->survivors.stays);
}

/* Find the call site that keeps most, except `but`: one that keeps blocks of each generation, or
 * else a build-up. Much smaller than everything live, it decides nothing. */
static uint32_t keeps_most(const struct callsites *p, uint32_t but)
{
	for (int buildups = 0; buildups < 2; buildups++) {
		uint32_t most = CALLSITE_NONE;

		for (uint32_t i = 0; i < p->count; i++)
			if (i != but && qualifies(&p->list[i], buildups) &&
			    (most == CALLSITE_NONE ||
				p->list[i].survivors.bytes > p->list[most].survivors.bytes))
				most = i;
		if (most != CALLSITE_NONE &&
		    p->list[most].survivors.bytes >= (p->live_bytes + p->map_bytes) / 4)
			return most;
	}
	return CALLSITE_NONE;
}

/* Set .call of the call sites that the first `length` frames lead to. */
static int mark(struct callsites *p, const struct way *way, size_t length, enum open_call as,
    bool repeats, uint64_t before)
{
	const struct symbol *open_of = &way->frames[length];
	struct look look;
	int rc = look_init(&look, way, true, length);

	while (open_of > way->frames && blame_is_comprehension(open_of))
		open_of--; /* part of the function around it */
	for (uint32_t i = 0; i < p->count && !rc; i++) {
		struct callsite *callsite = &p->list[i];

		/* A cache of results has seen the call return. */
		if (!callsite->holders.remembered &&
		    (callsite->survivors.stays || callsite->relations.index_of != CALLSITE_NONE ||
			(as == OPEN_CALL_YES && (callsite->size.grows || is_buildup(callsite)))) &&
		    common(&look, callsite->stack) == length) {
			if (as == OPEN_CALL_YES || callsite->call.open == OPEN_CALL_NO) {
				callsite->call.open = as;
				callsite->call.function = open_of;
				callsite->call.repeats = repeats;
				callsite->call.ended_before =
				    num_most(callsite->call.ended_before, before);
			}
		}
	}
	look_fini(&look);
	return rc;
}

/* Decide whether the open call surely returns some day, like others of its kind: calls of its
 * function, or of one that leads to it, returned before; or all earlier blocks by other ways, of
 * its function or the call site, were released. */
static int is_sure(struct walk *w, size_t open, bool *sure, uint64_t *before, struct err *err)
{
	const struct callsite *main = &w->callsites->list[w->callsite];
	struct earlier b;
	uint64_t call_ns;
	int rc = earlier_read(w, open, &b, err);

	if (!rc) {
		call_ns = b.elsewhere.call_ns ? b.elsewhere.call_ns : w->from_ns;
		*before = calls_most(&b.calls);
		*before = num_most(*before, b.elsewhere.ended);
		/* Calls of a pool's thread that acquires nothing in between cannot be counted, but
		 * their releases can. An event loop's coroutine may be the program's outermost
		 * function. */
		*sure = (*before >= (open == w->way->length ? CALLS_FEW : CALLS_MIN) &&
			    !left_much(w, *before, b.elsewhere.ended_ns)) ||
			(!held_less(&b.held, main, *before) &&
			    ((w->way->outermost && gave_back(main, w->from_ns)) ||
				(open > w->way->first && b.elsewhere.count >= CALLS_MIN &&
				    ((double)b.elsewhere.bytes / LEFT_PART >=
					    survivors_bytes_until(main, call_ns) ||
					gave_back(main, w->from_ns)))));
	}
	earlier_fini(&b);
	return rc;
}

/* True when that frame calls no user function: its own expression makes the blocks. */
static bool is_innermost_own(
    const struct callsites *p, const struct symbol *symbols, size_t count, size_t frame)
{
	while (++frame < count)
		if (blame_owner(&p->context, &symbols[frame]) == OWNER_USER)
			return false;
	return true;
}

/* Return the innermost comprehension among frames 0 to `open`; 0: none. */
static size_t evaluation_around(const struct symbol *symbols, size_t open)
{
	while (open && !blame_is_comprehension(&symbols[open]))
		open--;
	return open;
}

/* True when that frame's own expression enlarged all possible tables of the kept blocks. */
static bool holds_all(
    const struct way *w, struct callsites *p, const struct callsite *kept, size_t frame)
{
	bool all = kept->holders.table_count;
	struct look look;

	if (look_init(&look, w, true, frame + 1))
		return false;
	for (uint32_t i = 0; i < kept->holders.table_count && all; i++) {
		const struct symbol *symbols;
		size_t count = w->feed->symbols(w->feed->self, kept->holders.tables[i], &symbols);

		all = common(&look, kept->holders.tables[i]) == frame &&
		      is_innermost_own(p, symbols, count, frame);
	}
	look_fini(&look);
	return all;
}

static int judge(const struct way *w, struct callsites *p, uint32_t most,
    const struct symbol *symbols, size_t count, struct err *err)
{
	struct walk walk = {
	    .way = w, .callsites = p, .callsite = most, .from_ns = begun_ns(&p->list[most])};
	size_t frame = w->length, inner = frame, around;
	struct still evaluation, call;
	struct look look;
	uint64_t before;
	bool sure = false;
	int rc;

	while (++inner < count && !blame_is_comprehension(&symbols[inner]))
		;
	if (inner >= count || (p->list[most].relations.index_of != most &&
				  !is_innermost_own(p, symbols, count, inner)))
		inner = frame;
	still_init(&evaluation, inner);
	still_init(&call, frame);
	rc = look_init(&look, w, true, inner);
	if (!rc)
		rc = still_open(&walk, &look, &evaluation, &call, err);
	look_fini(&look);
	/* A call by the runtime counts as its caller's. */
	while (call.open > w->outer && call.open < frame &&
	       blame_owner(&p->context, &symbols[call.open]) == OWNER_RUNTIME)
		call.open--;
	/* A loop that runs other calls never returns, either. */
	if (rc || call.open <= w->outer || call.open < w->first)
		return rc;
	rc = is_sure(&walk, call.open, &sure, &before, err);
	if (rc)
		return rc;
	around = evaluation_around(symbols, call.open);
	if (!sure && around > w->outer && holds_all(w, p, &p->list[most], around))
		return mark(p, w, around, OPEN_CALL_YES, false, before);
	/* An outer call without other evidence may be a server's loop. */
	if (sure || (call.open == frame && !w->outermost))
		rc = mark(p, w, call.open, sure ? OPEN_CALL_YES : OPEN_CALL_MAYBE, sure, before);
	if (rc || sure || call.open < frame || inner == frame)
		return rc;
	/* The evaluation itself returns. */
	return evaluation.open == inner ? mark(p, w, inner, OPEN_CALL_YES, false, before) : 0;
}

/* Return the user's outermost function below the event loop that runs it, if there is one. */
static size_t first_own(const struct callsites *p, const struct symbol *symbols, size_t length)
{
	size_t at = length;

	while (at > 0 && !blame_is_event_loop(&symbols[at - 1]))
		at--;
	while (at < length && blame_owner(&p->context, &symbols[at]) != OWNER_USER)
		at++;
	return at;
}

/* True when the line imports a module: its blocks stay, and belong to no request. */
static bool is_import(const struct symbol *symbols, size_t count, size_t frame)
{
	static const char importer[] = "<frozen importlib";

	for (size_t i = frame + 1; i < count; i++)
		if (symbols[i].file &&
		    strncmp(symbols[i].file, importer, sizeof(importer) - 1) == 0)
			return true;
	return false;
}

/* Mark call sites whose build-ups were all released, except the current one: its call has not
 * returned, although a loop around the calls that acquires nothing would be invisible. */
static void mark_buildups(struct callsites *p)
{
	for (uint32_t i = 0; i < p->count; i++) {
		struct callsite *callsite = &p->list[i];

		if (!callsite->buildup.bytes || callsite->holders.remembered ||
		    callsite->size.grows || callsite->backlog.grows ||
		    callsite->buildup.bytes <
			callsite->facts.live_bytes - callsite->facts.live_bytes / LEFT_PART)
			continue;
		callsite->call.open = OPEN_CALL_YES;
		callsite->call.repeats = true;
		callsite->call.ended_before = callsite->buildup.times;
	}
}

static int read_place(struct feed *feed, struct callsites *p, uint32_t callsite, struct err *err)
{
	const struct symbol *symbols;
	struct way way = {.feed = feed};
	size_t count = feed->symbols(feed->self, p->list[callsite].stack, &symbols);

	way.frames = symbols;
	way.length = frame_of(&p->list[callsite], symbols, count);
	if (is_import(symbols, count, way.length))
		return 0;
	way.first = first_own(p, symbols, way.length);
	/* The user's outermost function does not return, */
	while (
	    way.outer < way.length && blame_owner(&p->context, &symbols[way.outer]) != OWNER_USER)
		way.outer++;
	/* unless others of its kind were seen to return: a worker calls it repeatedly. */
	way.outermost = way.outer == way.length;
	if (way.outermost && !way.outer--)
		return 0;
	way.room = p->stack_limit;
	return judge(&way, p, callsite, symbols, count, err);
}

int open_call_read(struct feed feed, struct callsites *p, struct err *err)
{
	uint32_t most = keeps_most(p, CALLSITE_NONE), next;
	int rc;

	mark_buildups(p);
	if (most == CALLSITE_NONE)
		return 0;
	rc = read_place(&feed, p, most, err);
	if (!rc && p->list[most].call.open != OPEN_CALL_YES && is_of_arenas(&p->list[most])) {
		next = keeps_most(p, most);
		if (next != CALLSITE_NONE && is_of_arenas(&p->list[next]))
			rc = read_place(&feed, p, next, err);
	}
	return rc == -ENOMEM ? err_set(err, rc, "no memory for the calls") : rc;
}
