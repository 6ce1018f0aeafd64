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
#define NOT_SEEN UINT32_MAX

/* The frames that lead to a call, from the outermost. */
struct way {
	const struct feed *feed;
	const struct symbol *frames;
	size_t length; /* up to the line that calls it */
	size_t outer; /* the first that is one's own */
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

/* How many outer frames a stack has in common with the way: its length only when it then goes on in
 * the function that the way leads to; NOT_SEEN when not even the outermost is the same. */
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
	if (n == w->length && w->lines &&
	    (n == count || !same_frame(&symbols[n], &w->frames[n], false)))
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
		if (stack < p->limits[kinds[i]] && p->of[kinds[i]][stack] == place)
			return true;
	return false;
}

struct walk {
	struct way *way;
	const struct places *places;
	uint32_t place;
	uint64_t from_ns;
	uint32_t thread; /* out: of the growth */
};

/* 1: since it began the call was never seen to end; 0: it was; negative errno. */
static int never_left(struct walk *w, struct err *err)
{
	struct feed feed = *w->way->feed;
	bool begun = false, left = false;
	struct event e;
	int rc = feed.rewind(feed.self, err);

	while (rc == 0 && (rc = feed.next(feed.self, &e, err)) == 1) {
		uint32_t depth;

		rc = 0;
		if (e.time_ns > w->places->moment_ns)
			break;
		if (e.time_ns < w->from_ns || !acquires(&e))
			continue;
		if (grows_there(w->places, w->place, e.stack)) {
			if (!begun)
				w->thread = e.thread;
			begun = true;
			/* Of several threads, or by another way in. */
			if (e.thread != w->thread || left ||
			    common(w->way, e.stack) < w->way->length)
				return 0;
			continue;
		}
		if (!begun || e.thread != w->thread)
			continue;
		depth = common(w->way, e.stack);
		left |= depth < w->way->length;
	}
	return rc < 0 ? rc : begun;
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
		if (e.thread != w->thread || !acquires(&e))
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

		if ((place->keep.stays || place->index_of != PLACE_NONE) &&
		    common(w, place->stack) == w->length) {
			place->open_call = as;
			place->calls_before = before;
		}
	}
}

static int judge(struct way *w, struct places *p, uint32_t most, const struct symbol *symbols,
    size_t count, struct err *err)
{
	struct walk walk = {w, p, most, begun_ns(&p->list[most]), 0};
	const struct place *main = &p->list[most];
	uint64_t before;
	size_t frame = w->length, inner = frame;
	int rc;

	look_by(w, true, frame);
	rc = never_left(&walk, err);
	if (rc <= 0)
		return rc;
	look_by(w, false, frame + 1);
	rc = calls_before(&walk, &before, err);
	if (rc)
		return rc;
	look_by(w, true, frame);
	mark(p, w, before >= CALLS_MIN ? OPEN_CALL_YES : OPEN_CALL_MAYBE, before);
	while (++inner < count && !blame_is_comprehension(&symbols[inner]))
		;
	if (before >= CALLS_MIN || inner >= count || main->index_of != most)
		return 0;
	/* Once more, for the evaluation itself. */
	look_by(w, true, inner);
	rc = never_left(&walk, err);
	if (rc > 0)
		mark(p, w, OPEN_CALL_YES, before);
	return rc < 0 ? rc : 0;
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
