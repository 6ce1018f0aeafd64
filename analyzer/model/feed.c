/* feed.c - a trace as a feed. */
#include "model/feed.h"

#include <errno.h>
#include <stdlib.h>

#include "util/progress.h"

static int next_event(void *self, struct event *out, struct err *err)
{
	return trace_next_outside(self, out, err);
}

static int rewind_trace(void *self, struct err *err)
{
	trace_rewind(self);
	return 0;
}

static size_t symbols_of(void *self, uint32_t stack, const struct symbol **out)
{
	return trace_symbols(self, stack, out);
}

static const char *info_of(void *self, const char *key)
{
	return trace_info(self, key);
}

static const struct trace_facts *facts_of(void *self)
{
	return trace_facts(self);
}

static uint64_t bytes_read_of(void *self)
{
	return trace_bytes_read(self);
}

static const char *space_of(void *self, uint32_t id)
{
	return trace_space(self, id);
}

static int each_live_of(void *self, int (*fn)(void *arg, const struct block *b), void *arg)
{
	return trace_each_live(self, fn, arg);
}

static int path_of(void *self, uint32_t stack, struct stack_path *path)
{
	return trace_path(self, stack, path);
}

static int rewind_spaces(void *self, struct err *err)
{
	trace_rewind_spaces(self);
	return 0;
}

int feed_rewind_spaces(const struct feed *feed, struct err *err)
{
	return feed->rewind_spaces ? feed->rewind_spaces(feed->self, err)
				   : feed->rewind(feed->self, err);
}

int feed_path(const struct feed *feed, uint32_t stack, struct stack_path *path)
{
	if (feed->path)
		return feed->path(feed->self, stack, path);
	path->same = 0;
	path->count = feed->symbols(feed->self, stack, &path->symbols);
	return 0;
}

static int stack_order_of(void *self, const uint32_t **order, size_t *count)
{
	return trace_stack_order(self, order, count);
}

static int fold_stacks(void *self, const struct trace_fold *fold, uint16_t *out)
{
	return trace_fold_stacks(self, fold, out);
}

static uint32_t stack_limit(void *self)
{
	return trace_stack_limit(self);
}

size_t feed_stack_order(const struct feed *feed, const uint32_t **order)
{
	size_t count = 0;

	if (!feed->stack_order || feed->stack_order(feed->self, order, &count))
		return 0;
	return count;
}

static void rest(void *self)
{
	trace_release_live(self);
}

void feed_progress(const struct feed *feed, const char *what)
{
	progress_begin(what, feed->facts(feed->self)->event_bytes);
}

void feed_step(const struct feed *feed)
{
	if (feed->bytes_read)
		progress_step(feed->bytes_read(feed->self));
}

void feed_rest(const struct feed *feed)
{
	if (feed->rest)
		feed->rest(feed->self);
}

struct feed feed_of_trace(struct trace *t)
{
	return (struct feed){t, next_event, rewind_trace, symbols_of, info_of, facts_of,
	    bytes_read_of, space_of, each_live_of, path_of, rewind_spaces, stack_order_of,
	    fold_stacks, stack_limit, rest};
}

const char *feed_interpreter(const struct feed *feed)
{
	const char *python = feed->info(feed->self, "python");

	return python && *python ? feed->info(feed->self, "exe") : NULL;
}

bool feed_number(const struct feed *feed, const char *key, uint64_t *out)
{
	const char *text = feed->info(feed->self, key);
	char *end;

	if (!text || text[0] < '0' || text[0] > '9')
		return false;
	errno = 0;
	*out = strtoull(text, &end, 10);
	return errno == 0 && *end == '\0';
}

const struct symbol *feed_python_frame(const struct feed *feed, uint32_t stack)
{
	const struct symbol *symbols;
	size_t count = stack ? feed->symbols(feed->self, stack, &symbols) : 0;

	while (count && !symbols[count - 1].python)
		count--;
	return count ? &symbols[count - 1] : NULL;
}
