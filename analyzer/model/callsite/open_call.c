/*
 * open_call.c - see open_call.h.
 *
 * A trace has no record of calls, but each acquisition has its stack. While a call is open, every
 * stack of its thread begins with the same frames at the same lines: those that lead to it. A stack
 * that begins otherwise shows that the call had ended. The reverse does not hold: a loop around a
 * call whose caller acquires nothing looks like one call with the loop inside. So one that was
 * never seen to end is only surely one where
 *
 *  - calls of the same function, or of one that leads to it, had been seen to end before, again and
 *    again, by whatever thread or task, and none since; or
 *  - it is the evaluation of a comprehension, and the table that points to what it made grew there,
 *    and no other that may hold it, or it made all of it itself, by no function of one's own:
 * nobody else has that table before it is finished.
 */
#include "model/callsite/open_call.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "model/callsite/callsite.h"
#include "util/map.h"
#include "util/num.h"
#include "util/text/str.h"

/* From this part of what is kept on, it has begun to grow. */
#define BEGUN_PART 64u
/* So many calls that ended are a habit; so few, where it is the call itself that grows, and not one
 * that it makes again and again. */
#define CALLS_MIN 4u
#define CALLS_FEW 3u
/* Work that leaves less than this part behind gives it back. */
#define LEFT_PART 4u
#define ARENAS_LEFT_PART 2u
/* Fewer blocks are told by their sizes. */
#define PILE_MIN 16u
/* So many of the oldest blocks that are left show whose they are. */
#define OLDEST 64u
#define NOT_SEEN UINT32_MAX

/* The frames that lead to a call, from the outermost. */
struct way {
	const struct feed *feed;
	const struct symbol *frames;
	size_t length; /* up to the line that calls it */
	size_t outer; /* the first that is one's own */
	size_t first; /* the same below the event loop that runs it, if one does */
	bool outermost; /* the line that grows is in that very function */
	uint32_t room; /* stacks */
};

/* Stacks, compared with so much of the way. */
struct look {
	const struct way *way;
	size_t length;
	bool lines; /* frames are the same when their lines are, too */
	uint32_t *known; /* by stack: frames in common, plus one; 0: not yet looked at */
	struct stack_path path;
	size_t equal; /* of the path's frames */
	uint32_t looks; /* at single stacks; more than FEED_LOOKS: all were looked at */
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

/* Where in its own code the interpreter is says nothing of who called whom: sum() has a loop for
 * integers, and one for what is none any more. */
static bool same_frame(const struct symbol *a, const struct symbol *b, bool lines)
{
	return lines && !a->interpreter ? symbol_same_line(a, b) : symbol_same_function(a, b);
}

/* How many of the path's frames are the way's, or those that the path is cut short to. */
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

	/* Most leave the way soon, and what comes then does not matter: it is not put into words.
	 */
	path->most = l->equal + 2;
	do {
		if (feed_path(l->way->feed, stack, path))
			trace_path_fini(path);
		l->equal = n = along(l);
	} while (n && n == path->count && n >= path->most && (path->most = 2 * n));
	if (n && l->lines &&
	    (n == path->count || !same_frame(&path->symbols[n], &frames[n], false)))
		n--;
	/* It was cut short, or is of another kind of thread: nothing can be said of it. */
	if (!path->count || !same_frame(&path->symbols[0], &frames[0], false))
		n = NOT_SEEN - 1;
	if (stack < l->way->room)
		l->known[stack] = (uint32_t)n + 1;
	return (uint32_t)n;
}

/* How many outer frames a stack has in common with the way, and by lines only those from which it
 * then goes on in the same function: so many calls of the way are open in it. NOT_SEEN when not
 * even the outermost is the same. */
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
	uint32_t thread, task; /* out: of the growth */
	/* Out: when the oldest blocks of it came that live at the moment, in no order. */
	uint64_t oldest[OLDEST];
	uint32_t oldest_count;
};

/* By the same thread, and the same task of it: another one's turn leaves no call. */
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
	if (b->birth_ns < w->oldest[youngest])
		w->oldest[youngest] = b->birth_ns;
	return 0;
}

/* Of the calls on the first `length` frames of the way: those that were never seen to end. */
struct still {
	uint32_t length;
	uint32_t open, since; /* since: as far as was seen after the last of the growth */
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

/*
 * How many of the calls on the way were never seen to end since the growth began: the first so many
 * frames lead to the innermost of them. 0: none, or several threads made it. What is left after the
 * last of its growth says nothing. Of two lengths of the way, the longer one first. 0, or negative
 * errno.
 */
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
		/* Another task's turn leaves no call, but one that is called on the same way does.
		 */
		if (!is_of(w, &e) && !growth && depth <= w->way->first)
			continue;
		still_see(longer, depth, growth);
		/* Whatever is in common beyond its end, it has all of it. */
		still_see(shorter, depth, growth);
	}
	if (!begun)
		longer->open = shorter->open = 0;
	/* A pile that is done with may have come at any time. */
	if (!w->callsites->list[w->callsite].survivors.stays && shorter->since < shorter->open)
		shorter->open = shorter->since;
	if (rc >= 0 && longer->open)
		rc = feed->each_live(feed->self, note_oldest, w);
	return rc < 0 ? rc : 0;
}

/* How often each of the functions on the way was entered and left. */
struct calls {
	struct look look; /* the function of the open call is the last one */
	uint64_t *ended;
	uint32_t now;
};

/* True when one was left. */
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

/* The most often that one of them had been. */
static uint64_t calls_most(const struct calls *c)
{
	uint64_t most = 0;

	for (size_t d = c->look.way->outer + 1; d <= c->look.length; d++)
		if (c->ended[d] > most)
			most = c->ended[d];
	return most;
}

/* What was seen of the function that the open call is of, and of the place that grows, by other
 * ways than through that call. */
struct elsewhere {
	struct look look;
	const struct symbol *function;
	struct stack_path path;
	size_t first; /* on the path: the frame of the function, plus one; 0: there is none */
	uint8_t *known; /* by stack, enum whereabouts */
	uint32_t looks; /* as of struct look */
	struct map inside; /* by thread or task: 1 while it is in such a call */
	uint64_t ended; /* calls of the function, by whatever way, of any thread or task */
	uint64_t ended_ns; /* the last of them */
	uint64_t count, bytes; /* acquired by other ways, by the same thread and task */
	bool begun; /* the call was seen */
	uint64_t call_ns; /* when the first block of the place came by this one */
};

/* A stack, and the function. */
enum whereabouts {
	NOT_LOOKED, /* yet */
	WITHOUT_IT,
	IN_IT,
	IN_LOOP_OF_IT, /* it runs an event loop: whatever task it is, the call is of the thread */
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

/* The stack is in its map, and not yet looked at. */
static enum whereabouts find_whereabouts(struct elsewhere *s, uint32_t stack)
{
	const uint32_t *order;

	if (s->looks <= FEED_LOOKS && ++s->looks > FEED_LOOKS)
		for (size_t i = feed_stack_order(s->look.way->feed, &order); i-- > 0;)
			if (order[i] < s->look.way->room && !s->known[order[i]])
				s->known[order[i]] = (uint8_t)look_for(s, order[i]);
	return s->known[stack] ? s->known[stack] : look_for(s, stack);
}

/* That task of the thread is now inside of a call of the function, or not. */
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
	/* In a context of its own, but on the same way: it is the same call, and ends with that;
	 * before that one was seen, it was another one's task. */
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

/* What lived at the place before the open call was seen. */
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
		if (h->now > h->peak)
			h->peak = h->now;
	} else if (e->kind == EV_FREE || e->kind == EV_SPACE_FREE) {
		size = map_find(&h->sizes, e->address);
		if (size) {
			h->now -= *size;
			map_remove(&h->sizes, e->address);
		}
	}
	return 0;
}

/*
 * Earlier calls held far less of what they made at the place than the open one does: they gave it
 * back on their way, so that their having given back all of it says nothing of what this one keeps.
 */
static bool held_less(const struct held *h, const struct callsite *p, uint64_t ended)
{
	uint64_t since = num_less(p->facts.total_bytes, h->made);

	return since && (double)h->made / (double)(ended ? ended : 1) * (double)p->survivors.bytes /
				(double)since >
			    LEFT_PART * (double)h->peak;
}

/* What happened before the growth began. */
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

/* `open` frames lead to the call that is open. To be freed in any case. */
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

/* What the place made before that time was given back. */
static bool gave_back(const struct callsite *p, uint64_t before_ns)
{
	uint64_t count = 0, freed = 0;

	for (uint32_t i = 0; i < p->facts.step_count && p->facts.steps[i].last_ns < before_ns;
	     i++) {
		count += p->facts.steps[i].count;
		freed += p->facts.steps[i].freed_count;
	}
	return count >= CALLS_MIN && freed >= count - count / 16;
}

/* Is most of it mappings, the interpreter's arenas? Each has its place by whose object happened to
 * be the first in it. */
static bool is_of_arenas(const struct callsite *p)
{
	return p->facts.map_bytes > p->facts.live_bytes / 2;
}

/* So many calls had ended by then, and a good part of them left something behind. */
static bool left_much(const struct walk *w, uint64_t ended, uint64_t ended_ns)
{
	const struct callsite *main = &w->callsites->list[w->callsite];
	uint64_t left = 0;

	for (uint32_t i = 0; i < w->oldest_count; i++)
		left += w->oldest[i] <= ended_ns;
	/* Mappings are known by their steps only: an interpreter's arenas, of which a few stay. */
	if (is_of_arenas(main))
		return survivors_count_until(main, ended_ns) > (double)ended / ARENAS_LEFT_PART;
	return left > ended / LEFT_PART || left == OLDEST;
}

/* The frame of a place in its heaviest stack: the innermost that is its line. */
static size_t frame_of(const struct callsite *p, const struct symbol *symbols, size_t count)
{
	for (size_t i = count; i-- > 0;)
		if (callsite_is_line(p, &symbols[i]))
			return i;
	return 0;
}

/* At the end of its step, for a step may begin with what was released long before. */
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

/* It holds more than all that was made there before: no next one of a series, whatever it is. */
static bool is_pile(const struct callsite *p)
{
	uint64_t made = 0, from = begun_ns(p);

	for (uint32_t i = 0; i < p->facts.step_count && p->facts.steps[i].last_ns < from; i++)
		made += p->facts.steps[i].bytes;
	return p->survivors.count >= PILE_MIN && p->survivors.bytes >= made;
}

static bool qualifies(const struct callsite *p, bool piles)
{
	return p->stack && (piles ? !p->survivors.stays && is_pile(p) : p->survivors.stays);
}

/* The place that keeps most, `but` one, of those that keep from each generation, or else of piles.
 * Beside what is larger it decides nothing. */
static uint32_t keeps_most(const struct callsites *p, uint32_t but)
{
	for (int piles = 0; piles < 2; piles++) {
		uint32_t most = CALLSITE_NONE;

		for (uint32_t i = 0; i < p->count; i++)
			if (i != but && qualifies(&p->list[i], piles) &&
			    (most == CALLSITE_NONE ||
				p->list[i].survivors.bytes > p->list[most].survivors.bytes))
				most = i;
		if (most != CALLSITE_NONE &&
		    p->list[most].survivors.bytes >= (p->live_bytes + p->map_bytes) / 4)
			return most;
	}
	return CALLSITE_NONE;
}

/* The places that the first `length` frames lead to. */
static int mark(struct callsites *p, const struct way *way, size_t length, enum open_call as,
    bool repeats, uint64_t before)
{
	const struct symbol *open_of = &way->frames[length];
	struct look look;
	int rc = look_init(&look, way, true, length);

	while (open_of > way->frames && blame_is_comprehension(open_of))
		open_of--; /* is part of the function around it */
	for (uint32_t i = 0; i < p->count && !rc; i++) {
		struct callsite *callsite = &p->list[i];

		/* Who remembers the results of a call has seen it end. */
		if (!callsite->holders.remembered &&
		    (callsite->survivors.stays || callsite->relations.index_of != CALLSITE_NONE ||
			(as == OPEN_CALL_YES && (callsite->size.grows || is_pile(callsite)))) &&
		    common(&look, callsite->stack) == length) {
			if (as == OPEN_CALL_YES || callsite->call.open == OPEN_CALL_NO) {
				callsite->call.open = as;
				callsite->call.function = open_of;
				callsite->call.repeats = repeats;
				if (callsite->call.ended_before < before)
					callsite->call.ended_before = before;
			}
		}
	}
	look_fini(&look);
	return rc;
}

/*
 * Is the open call surely one that ends, as others of its kind did? Calls of its function, or of
 * one that leads to it, had ended before; or what was done before by other ways, by its function or
 * at the place that grows, had all been given back.
 */
static int is_sure(struct walk *w, size_t open, bool *sure, uint64_t *before, struct err *err)
{
	const struct callsite *main = &w->callsites->list[w->callsite];
	struct earlier b;
	uint64_t call_ns;
	int rc = earlier_read(w, open, &b, err);

	if (!rc) {
		call_ns = b.elsewhere.call_ns ? b.elsewhere.call_ns : w->from_ns;
		*before = calls_most(&b.calls);
		if (b.elsewhere.ended > *before)
			*before = b.elsewhere.ended;
		/* Calls by a pool's thread that makes nothing between them cannot be counted, but
		 * what they gave back can. A coroutine that an event loop runs may be the program's
		 * outermost function. */
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

/* No function of one's own is called from that frame: what is made is its own expression's. */
static bool is_innermost_own(
    const struct callsites *p, const struct symbol *symbols, size_t count, size_t frame)
{
	while (++frame < count)
		if (blame_owner(&p->context, &symbols[frame]) == OWNER_USER)
			return false;
	return true;
}

/* The innermost comprehension of the first so many frames and the one after them; 0: none. */
static size_t evaluation_around(const struct symbol *symbols, size_t open)
{
	while (open && !blame_is_comprehension(&symbols[open]))
		open--;
	return open;
}

/* All tables that may hold what the place keeps were enlarged by that frame's own expression. */
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
	/* What the runtime itself calls is its caller's. */
	while (call.open > w->outer && call.open < frame &&
	       blame_owner(&p->context, &symbols[call.open]) == OWNER_RUNTIME)
		call.open--;
	/* A loop that runs others' calls is none that ends, either. */
	if (rc || call.open <= w->outer || call.open < w->first)
		return rc;
	rc = is_sure(&walk, call.open, &sure, &before, err);
	if (rc)
		return rc;
	around = evaluation_around(symbols, call.open);
	if (!sure && around > w->outer && holds_all(w, p, &p->list[most], around))
		return mark(p, w, around, OPEN_CALL_YES, false, before);
	/* Of an outer call of which nothing else is known nothing can be said: a server's loop is
	 * one, too. */
	if (sure || (call.open == frame && !w->outermost))
		rc = mark(p, w, call.open, sure ? OPEN_CALL_YES : OPEN_CALL_MAYBE, sure, before);
	if (rc || sure || call.open < frame || inner == frame)
		return rc;
	/* The evaluation itself is one that ends. */
	return evaluation.open == inner ? mark(p, w, inner, OPEN_CALL_YES, false, before) : 0;
}

/* The outermost function of one's own below the event loop that runs it, if one does. */
static size_t first_own(const struct callsites *p, const struct symbol *symbols, size_t length)
{
	size_t at = length;

	while (at > 0 && !blame_is_event_loop(&symbols[at - 1]))
		at--;
	while (at < length && blame_owner(&p->context, &symbols[at]) != OWNER_USER)
		at++;
	return at;
}

/* The line has a module loaded: what that makes is put in place, and of no request. */
static bool is_import(const struct symbol *symbols, size_t count, size_t frame)
{
	static const char importer[] = "<frozen importlib";

	for (size_t i = frame + 1; i < count; i++)
		if (symbols[i].file &&
		    strncmp(symbols[i].file, importer, sizeof(importer) - 1) == 0)
			return true;
	return false;
}

/* Piles that calls left, each given back, and now one that is not: its call has not ended, although
 * a loop around them that acquires nothing is not seen. */
static void mark_piles(struct callsites *p)
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
	/* The outermost function of one's own is no call that ends. */
	while (
	    way.outer < way.length && blame_owner(&p->context, &symbols[way.outer]) != OWNER_USER)
		way.outer++;
	/* Unless others of its kind were seen to end: somebody's worker calls it time and again. */
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

	mark_piles(p);
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

void open_call_retract(struct callsites *p, uint32_t callsite)
{
	p->list[callsite].call.open = OPEN_CALL_NO;
}
