/*
 * servers.c - functions that make blocks for the lines that call them, such as a driver's
 * get(size): the caller's line is the one that changes.
 */
#include <errno.h>
#include <stdlib.h>

#include "diff/side.h"
#include "util/num.h"
#include "util/tuned.h"

TUNED(size_t, SERVED_LINES, 3u, "two lines are a function that is used twice");
TUNED(double, SERVED_TIMES, 2.0, "blocks of one kind differ by less");
TUNED(double, EVEN_ROUND, 1.0625, "an allocator rounds up by 1/16 within one size");

/* A function that is blamed, and the line that called it. */
struct call {
	uint64_t function, line; /* hashes */
	uint64_t bytes, count, largest;
};

static int by_function(const void *x, const void *y)
{
	const struct call *a = x, *b = y;

	if (a->function != b->function)
		return a->function < b->function ? -1 : 1;
	return (a->line > b->line) - (a->line < b->line);
}

/* Does the function make blocks for its callers, each of a size of its own? Each line that calls it
 * counts, so that a helper of one file is one, too; a report, which blames one line for all, asks
 * for more. */
static bool serves(const struct call *list, size_t count)
{
	double least = 0, most = 0;
	size_t even = 0, lines = 0;

	for (size_t i = 0, j; i < count; i = j) {
		uint64_t bytes = 0, blocks = 0, largest = 0;
		double mean;

		for (j = i; j < count && list[j].line == list[i].line; j++) {
			bytes += list[j].bytes;
			blocks += list[j].count;
			largest = num_most(largest, list[j].largest);
		}
		mean = (double)bytes / (double)blocks;
		lines++;
		if ((double)largest > EVEN_ROUND * mean)
			continue;
		least = even && least < mean ? least : mean;
		most = even && most > mean ? most : mean;
		even++;
	}
	return lines >= SERVED_LINES && even >= 2 && most > SERVED_TIMES * least;
}

static int note_servers(struct side *s, struct call *list, size_t count)
{
	if (count)
		qsort(list, count, sizeof(*list), by_function);
	for (size_t i = 0, j; i < count; i = j) {
		uint64_t *known;

		for (j = i; j < count && list[j].function == list[i].function; j++)
			;
		if (!serves(&list[i], j - i))
			continue;
		known = map_put(&s->wrappers, list[i].function);
		if (!known)
			return -ENOMEM;
		*known = 1;
	}
	return 0;
}

int side_servers(struct side *s, const struct wrapper_input *list, size_t count)
{
	struct stack_path path = {0};
	blame_marks_t marks = {0};
	struct call *calls = malloc((count + 1) * sizeof(*calls));
	size_t n = 0;
	int rc = calls ? 0 : -ENOMEM;

	for (size_t i = 0; i < count && !rc; i++) {
		const struct symbol *symbols;
		uint64_t function;
		int at = list[i].frame;

		if (!list[i].stack || at < 0)
			continue;
		rc = feed_path(&s->feed, list[i].stack, &path);
		if (!rc)
			rc = blame_follow(&s->context, &path, &marks);
		if (rc)
			break;
		symbols = path.symbols;
		if (blame_owner(&s->context, &symbols[at]) != OWNER_USER)
			continue;
		function = side_names(s, &symbols[at]).all;
		at = blame_marked(&marks.items[at], symbols);
		if (at < 0 || blame_owner(&s->context, &symbols[at]) != OWNER_USER ||
		    side_names(s, &symbols[at]).all == function)
			continue;
		calls[n++] =
		    (struct call){function, side_names(s, &symbols[at]).all * 31 + symbols[at].line,
			list[i].total_bytes, list[i].total_count, list[i].largest};
	}
	if (!rc)
		rc = note_servers(s, calls, n);
	trace_path_fini(&path);
	vec_free(&marks);
	free(calls);
	return rc;
}
