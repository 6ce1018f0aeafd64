#include "model/request/waiting.h"

#include <errno.h>
#include <string.h>

#include "util/map.h"
#include "util/num.h"
#include "util/tuned.h"

TUNED(double, WAITED_SHARE, 0.75,
    "a line that waited for less of the work only worked at the same time");
TUNED(unsigned, SMALL_PART, 1024u,
    "smaller blocks than this part of all come from the library's own bookkeeping");
TUNED(unsigned, LARGEST_PART, 16u, "the same beside its largest block");

/* Recent threads that acquired, the latest first. */
#define RECENT 64u
/* Lines that waited; further ones are not counted. */
#define LINES 16u

struct recent {
	uint32_t thread, stack;
};

struct line {
	const struct symbol *symbol;
	uint32_t stack, frame; /* the latest one */
	double bytes;
};

struct watch {
	const struct feed *feed;
	const struct callsites *callsites;
	struct map own; /* by stack: 2 + the index of the program's own frame; 1: none */
	struct recent recent[RECENT];
	uint32_t recent_count;
	struct line lines[LINES];
	uint32_t line_count;
	double bytes;
};

/* Find the innermost frame of the program's own code that can be blamed. -1: none; -ENOMEM. */
static int own_frame(struct watch *w, uint32_t stack)
{
	const struct symbol *symbols;
	uint64_t *known = map_find(&w->own, stack);
	size_t count;
	int at;

	if (known)
		return (int)*known - 2;
	known = map_put(&w->own, stack);
	if (!known)
		return -ENOMEM;
	count = w->feed->symbols(w->feed->self, stack, &symbols);
	at = blame_frame(&w->callsites->context, symbols, count);
	if (at >= 0 && blame_owner(&w->callsites->context, &symbols[at]) != OWNER_USER)
		at = -1;
	*known = (uint64_t)(at + 2);
	return at;
}

static void note_recent(struct watch *w, uint32_t thread, uint32_t stack)
{
	uint32_t at = 0;

	while (at < w->recent_count && w->recent[at].thread != thread)
		at++;
	if (at == w->recent_count && w->recent_count < RECENT)
		w->recent_count++;
	else if (at == w->recent_count)
		at--;
	memmove(&w->recent[1], &w->recent[0], at * sizeof(w->recent[0]));
	w->recent[0] = (struct recent){thread, stack};
}

/* Credit this thread's bytes to the thread that last acquired memory in the program's own code. */
static int waited_for(struct watch *w, uint32_t thread, double bytes)
{
	const struct symbol *symbols;
	uint32_t i, k;
	int at = -1;

	w->bytes += bytes;
	for (i = 0; i < w->recent_count; i++) {
		if (w->recent[i].thread == thread)
			continue;
		at = own_frame(w, w->recent[i].stack);
		if (at == -ENOMEM)
			return at;
		if (at >= 0)
			break;
	}
	if (at < 0)
		return 0;
	w->feed->symbols(w->feed->self, w->recent[i].stack, &symbols);
	for (k = 0; k < w->line_count && !symbol_same_line(w->lines[k].symbol, &symbols[at]); k++)
		;
	if (k == LINES)
		return 0;
	if (k == w->line_count) {
		w->line_count++;
		w->lines[k] = (struct line){.symbol = &symbols[at]};
	}
	w->lines[k].stack = w->recent[i].stack;
	w->lines[k].frame = (uint32_t)at;
	w->lines[k].bytes += bytes;
	return 0;
}

bool waiting_possible(const struct feed *feed, const struct callsites *p, uint32_t callsite)
{
	const struct symbol *symbols;
	size_t count;

	if (!p->list[callsite].stack)
		return false;
	count = feed->symbols(feed->self, p->list[callsite].stack, &symbols);
	for (size_t i = 0; i < count; i++)
		if (blame_owner(&p->context, &symbols[i]) == OWNER_USER)
			return false;
	return count > 0;
}

static int read_events(struct watch *w, struct feed *feed, uint32_t callsite, struct err *err)
{
	const struct callsite *of = &w->callsites->list[callsite];
	uint64_t least =
	    num_least(of->facts.total_bytes / SMALL_PART, of->facts.largest / LARGEST_PART);
	/* In Python's main thread a framework may run with no line of the program, and waits for
	 * nobody. */
	bool python = feed_python_frame(feed, of->stack), first = true;
	uint32_t main = 0;
	struct event e;
	int rc = feed->rewind(feed->self, err);

	while (rc == 0 && (rc = feed->next(feed->self, &e, err)) == 1) {
		uint64_t bytes = e.block ? block_bytes(e.block) : e.size;

		rc = 0;
		if (e.time_ns > w->callsites->moment_ns)
			break;
		if (!event_acquires(&e) || !e.stack)
			continue;
		main = first ? e.thread : main;
		first = false;
		if (python && e.thread == main &&
		    callsites_made_at(w->callsites, callsite, e.stack)) {
			w->bytes += (double)bytes;
			continue;
		}
		if (callsites_made_at(w->callsites, callsite, e.stack) && bytes >= least)
			rc = waited_for(w, e.thread, (double)bytes);
		note_recent(w, e.thread, e.stack);
	}
	return rc < 0 ? err_set(err, rc, "no memory for the threads") : rc;
}

int waiting_read(struct feed feed, const struct callsites *p, uint32_t callsite,
    const struct failure *refused, struct waiting *out, struct err *err)
{
	struct watch w = {.feed = &feed, .callsites = p};
	const struct line *most = NULL;
	int rc;

	map_seed();
	*out = (struct waiting){0};
	rc = read_events(&w, &feed, callsite, err);
	if (!rc && refused && callsite == p->failed)
		rc = waited_for(&w, refused->thread, (double)refused->size);
	for (uint32_t k = 0; k < w.line_count; k++)
		if (!most || w.lines[k].bytes > most->bytes)
			most = &w.lines[k];
	if (!rc && most && most->bytes >= WAITED_SHARE * w.bytes)
		*out = (struct waiting){most->stack, most->frame, most->bytes / w.bytes};
	map_free(&w.own);
	return rc == -ENOMEM ? err_set(err, rc, "no memory for the threads") : rc;
}
