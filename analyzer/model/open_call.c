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
 *    again, and none since; or
 *  - it is the evaluation of a comprehension, and the table that points to what it made grew there:
 *    nobody else has that table before it is finished.
 */
#include "model/open_call.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* From this part of what is kept on, it has begun to grow. */
#define BEGUN_PART 64u
/* So many calls that ended are a habit. */
#define CALLS_MIN 8u
/* Work that leaves less than this part behind gives it back. */
#define LEFT_PART 4u
#define NOT_SEEN UINT32_MAX

/* The frames that lead to a call, from the outermost. */
struct way {
	const struct feed *feed;
	const struct symbol *frames;
	size_t length; /* up to the line that calls it */
	size_t outer; /* the first that is one's own */
	size_t first; /* the same below the event loop that runs it, if one does */
	bool lines; /* frames are the same when their lines are, too */
	uint32_t *known; /* by stack: frames in common, plus one; 0: not yet looked at */
	uint32_t room;
};

static void look_by(struct way *w, bool lines, size_t length)
{
	w->lines = lines;
	w->length = length;
	memset(w->known, 0, w->room * sizeof(*w->known));
}

static bool same_words(const char *a, const char *b)
{
	return a == b || (a && b && strcmp(a, b) == 0);
}

static bool same_frame(const struct symbol *a, const struct symbol *b, bool lines)
{
	return (!lines || a->line == b->line) && a->python == b->python &&
	       same_words(a->function, b->function) && same_words(a->file, b->file);
}

/* How many outer frames a stack has in common with the way, and by lines only those from which it
 * then goes on in the same function: so many calls of the way are open in it. NOT_SEEN when not
 * even the outermost is the same. */
static uint32_t common(struct way *w, uint32_t stack)
{
	const struct symbol *symbols;
	uint32_t n = 0;
	size_t count;

	if (stack < w->room && w->known[stack])
		return w->known[stack] - 1;
	count = stack ? w->feed->symbols(w->feed->self, stack, &symbols) : 0;
	while (n < w->length && n < count && same_frame(&symbols[n], &w->frames[n], w->lines))
		n++;
	if (n && w->lines && (n == count || !same_frame(&symbols[n], &w->frames[n], false)))
		n--;
	/* It was cut short, or is of another kind of thread: nothing can be said of it. */
	if (!count || !same_frame(&symbols[0], &w->frames[0], false))
		n = NOT_SEEN - 1;
	if (stack < w->room)
		w->known[stack] = n + 1;
	return n;
}

static bool acquires(const struct event *e)
{
	return (e->kind == EV_ALLOC || e->kind == EV_MAP || e->kind == EV_SPACE_ALLOC) && e->stack;
}

static bool grows_there(const struct places *p, uint32_t place, uint32_t stack)
{
	static const enum site_kind kinds[] = {SITE_HEAP, SITE_MAP};

	for (size_t i = 0; i < 2; i++)
		if (places_of_stack(p, kinds[i], stack) == place)
			return true;
	return false;
}

struct walk {
	struct way *way;
	const struct places *places;
	uint32_t place;
	uint64_t from_ns;
	uint32_t thread, task; /* out: of the growth */
};

/* By the same thread, and the same task of it: another one's turn leaves no call. */
static bool is_of(const struct walk *w, const struct event *e)
{
	return e->thread == w->thread && e->task == w->task;
}

/*
 * How many of the calls on the way were never seen to end since the growth began: the first so many
 * frames lead to the innermost of them. 0: none, or several threads made it. What is left after the
 * last of its growth says nothing. 0, or negative errno.
 */
static int still_open(struct walk *w, uint32_t *out, struct err *err)
{
	struct feed feed = *w->way->feed;
	uint32_t open = (uint32_t)w->way->length, since = open;
	bool begun = false;
	struct event e;
	int rc = feed.rewind(feed.self, err);

	while (rc == 0 && open && (rc = feed.next(feed.self, &e, err)) == 1) {
		uint32_t depth;

		rc = 0;
		if (e.time_ns > w->places->moment_ns)
			break;
		if (e.time_ns < w->from_ns || !acquires(&e))
			continue;
		if (grows_there(w->places, w->place, e.stack)) {
			if (!begun) {
				w->thread = e.thread;
				w->task = e.task;
			}
			begun = true;
			depth = is_of(w, &e) ? common(w->way, e.stack) : 0;
			if (depth < since)
				since = depth;
			if (since < open)
				open = since;
		} else if (begun && is_of(w, &e)) {
			depth = common(w->way, e.stack);
			if (depth < since)
				since = depth;
		}
	}
	*out = begun ? open : 0;
	return rc < 0 ? rc : 0;
}

/* The most often that one of the functions on the way had been entered and left before it began. */
static int calls_before(struct walk *w, uint64_t *out, struct err *err)
{
	struct feed feed = *w->way->feed;
	uint64_t *ended = calloc(w->way->length + 1, sizeof(*ended));
	uint32_t now = 0;
	struct event e;
	int rc = ended ? feed.rewind(feed.self, err) : -ENOMEM;

	*out = 0;
	while (rc == 0 && (rc = feed.next(feed.self, &e, err)) == 1) {
		uint32_t depth;

		rc = 0;
		if (e.time_ns >= w->from_ns)
			break;
		if (!is_of(w, &e) || !acquires(&e))
			continue;
		depth = common(w->way, e.stack);
		if (depth > w->way->length)
			continue;
		for (uint32_t d = depth + 1; d <= now; d++)
			ended[d]++;
		now = depth;
	}
	for (size_t d = w->way->outer + 1; ended && d <= w->way->length; d++)
		if (ended[d] > *out)
			*out = ended[d];
	free(ended);
	return rc < 0 ? rc : 0;
}

/* What was seen before the growth began of the function that the open call is of, and of the place
 * that grows, by other ways than through that call. */
struct elsewhere {
	uint64_t ended; /* calls of the function, by whatever way */
	uint64_t count, bytes; /* acquired by other ways */
	uint64_t call_ns; /* when the first block of the place came by this one */
};

static bool holds(const struct way *w, uint32_t stack, const struct symbol *function)
{
	const struct symbol *symbols;
	size_t count = stack ? w->feed->symbols(w->feed->self, stack, &symbols) : 0;

	for (size_t i = 0; i < count; i++)
		if (same_frame(&symbols[i], function, false))
			return true;
	return false;
}

static int seen_elsewhere(
    struct walk *w, const struct symbol *function, struct elsewhere *out, struct err *err)
{
	struct feed feed = *w->way->feed;
	uint8_t *known = calloc(w->way->room + 1u, 1); /* by stack: 1 without it, 2 in it */
	bool inside = false;
	struct event e;
	int rc = known ? feed.rewind(feed.self, err) : -ENOMEM;

	memset(out, 0, sizeof(*out));
	while (rc == 0 && (rc = feed.next(feed.self, &e, err)) == 1) {
		bool now;

		rc = 0;
		if (e.time_ns >= w->from_ns)
			break;
		if (!is_of(w, &e) || !acquires(&e) || e.stack >= w->way->room)
			continue;
		if (!known[e.stack])
			known[e.stack] = holds(w->way, e.stack, function) ? 2 : 1;
		now = known[e.stack] == 2;
		out->ended += inside && !now;
		inside = now;
		if (!now && !grows_there(w->places, w->place, e.stack))
			continue;
		if (common(w->way, e.stack) < w->way->length) {
			out->count++;
			out->bytes += e.size;
		} else if (!out->call_ns && grows_there(w->places, w->place, e.stack)) {
			out->call_ns = e.time_ns;
		}
	}
	free(known);
	return rc < 0 ? rc : 0;
}

/* What the place made before that time was given back. */
static bool gave_back(const struct place *p, uint64_t before_ns)
{
	uint64_t count = 0, freed = 0;

	for (uint32_t i = 0; i < p->step_count && p->steps[i].last_ns < before_ns; i++) {
		count += p->steps[i].count;
		freed += p->steps[i].freed_count;
	}
	return count && freed >= count - count / 16;
}

/* The frame of a place in its heaviest stack: the innermost that is its line. */
static size_t frame_of(const struct place *p, const struct symbol *symbols, size_t count)
{
	for (size_t i = count; i-- > 0;)
		if (symbols[i].line == p->line && same_words(symbols[i].function, p->function) &&
		    same_words(symbols[i].file, p->file))
			return i;
	return 0;
}

/* At the end of its step, for a step may begin with what was released long before. */
static uint64_t begun_ns(const struct place *p)
{
	uint64_t kept = 0;

	for (uint32_t i = 0; i < p->step_count; i++) {
		kept += p->steps[i].bytes - p->steps[i].freed_bytes;
		if (kept >= p->keep.bytes / BEGUN_PART)
			return p->steps[i].last_ns;
	}
	return p->first_ns;
}

static uint32_t keeps_most(const struct places *p)
{
	uint32_t most = PLACE_NONE;

	for (uint32_t i = 0; i < p->count; i++)
		if (p->list[i].keep.stays && p->list[i].stack &&
		    (most == PLACE_NONE || p->list[i].keep.bytes > p->list[most].keep.bytes))
			most = i;
	/* Beside what is larger it decides nothing. */
	return most != PLACE_NONE && p->list[most].keep.bytes >= (p->live_bytes + p->map_bytes) / 4
		   ? most
		   : PLACE_NONE;
}

static void mark(struct places *p, struct way *w, enum open_call as, uint64_t before)
{
	for (uint32_t i = 0; i < p->count; i++) {
		struct place *place = &p->list[i];

		if ((place->keep.stays || place->index_of != PLACE_NONE ||
			(as == OPEN_CALL_YES && place->size.grows)) &&
		    common(w, place->stack) == w->length) {
			place->open_call = as;
			place->calls_before = before;
		}
	}
}

/*
 * Is the open call surely one that ends, as others of its kind did? Calls of its function, or of
 * one that leads to it, had ended before; or what was done before by other ways, by its function or
 * at the place that grows, had all been given back.
 */
static int is_sure(
    struct walk *w, const struct symbol *frames, bool *sure, uint64_t *before, struct err *err)
{
	const struct place *main = &w->places->list[w->place];
	size_t open = w->way->length;
	struct elsewhere elsewhere;
	int rc;

	look_by(w->way, false, open + 1);
	rc = calls_before(w, before, err);
	look_by(w->way, true, open);
	if (!rc)
		rc = seen_elsewhere(w, &frames[open], &elsewhere, err);
	if (rc)
		return rc;
	if (elsewhere.ended > *before)
		*before = elsewhere.ended;
	if (!elsewhere.call_ns)
		elsewhere.call_ns = w->from_ns;
	/* A coroutine that an event loop runs may be the program's outermost function. */
	*sure = *before >= CALLS_MIN ||
		(open > w->way->first && elsewhere.count >= CALLS_MIN &&
		    ((double)elsewhere.bytes / LEFT_PART >= place_kept(main, elsewhere.call_ns) ||
			gave_back(main, w->from_ns)));
	return 0;
}

static int judge(struct way *w, struct places *p, uint32_t most, const struct symbol *symbols,
    size_t count, struct err *err)
{
	struct walk walk = {w, p, most, begun_ns(&p->list[most]), 0, 0};
	const struct place *main = &p->list[most];
	size_t frame = w->length, inner = frame;
	uint64_t before;
	uint32_t open;
	bool sure = false;
	int rc;

	look_by(w, true, frame);
	rc = still_open(&walk, &open, err);
	/* A loop that runs others' calls is none that ends, either. */
	if (rc || open <= w->outer || open < w->first)
		return rc;
	look_by(w, true, open);
	rc = is_sure(&walk, symbols, &sure, &before, err);
	if (rc)
		return rc;
	/* Of an outer call of which nothing else is known nothing can be said: a server's loop is
	 * one, too. */
	if (sure || open == frame)
		mark(p, w, sure ? OPEN_CALL_YES : OPEN_CALL_MAYBE, before);
	while (++inner < count && !blame_is_comprehension(&symbols[inner]))
		;
	if (sure || open < frame || inner >= count || main->index_of != most)
		return 0;
	/* Once more, for the evaluation itself. */
	look_by(w, true, inner);
	rc = still_open(&walk, &open, err);
	if (!rc && open == inner)
		mark(p, w, OPEN_CALL_YES, before);
	return rc;
}

/* The outermost function of one's own below the event loop that runs it, if one does. */
static size_t first_own(const struct places *p, const struct symbol *symbols, size_t length)
{
	size_t at = length;

	while (at > 0 && !blame_is_event_loop(&symbols[at - 1]))
		at--;
	while (at < length && blame_owner(&p->context, &symbols[at]) != OWNER_USER)
		at++;
	return at;
}

int open_call_read(struct feed feed, struct places *p, struct err *err)
{
	uint32_t most = keeps_most(p);
	const struct symbol *symbols;
	struct way way = {.feed = &feed};
	size_t count;
	int rc;

	if (most == PLACE_NONE)
		return 0;
	count = feed.symbols(feed.self, p->list[most].stack, &symbols);
	way.frames = symbols;
	way.length = frame_of(&p->list[most], symbols, count);
	way.first = first_own(p, symbols, way.length);
	/* The outermost function of one's own is no call that ends. */
	while (
	    way.outer < way.length && blame_owner(&p->context, &symbols[way.outer]) != OWNER_USER)
		way.outer++;
	if (way.outer == way.length)
		return 0;
	for (int k = 0; k < SITE_KINDS; k++)
		if (p->limits[k] > way.room)
			way.room = p->limits[k];
	way.known = calloc(way.room + 1u, sizeof(*way.known));
	if (!way.known)
		return err_set(err, -ENOMEM, "no memory for the calls");
	rc = judge(&way, p, most, symbols, count, err);
	free(way.known);
	return rc;
}
