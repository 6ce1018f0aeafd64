/*
 * check.c - `whyoom check`: whether a trace is whole and complete, and what it holds. Reads every
 * event once and judges nothing.
 */
#include "report/check.h"

#include <errno.h>
#include <getopt.h>
#include <stdlib.h>

#include "cmd/cmd.h"
#include "cmd/common/output.h"
#include "cmd/common/traces.h"
#include "util/progress.h"

#define PROGRESS_EVERY 65536u /* events: some ten times a second */

static int add_live(void *arg, const struct block *b)
{
	struct check_tally *tally = arg;

	tally->live_blocks++;
	tally->live_bytes += b->size;
	return 0;
}

static void count_mark(struct check_tally *tally, const struct event *e)
{
	tally->marks++;
	if (e->u.mark.what != TRACE_MARK_REQUEST)
		return;
	if (e->u.mark.phase == TRACE_MARK_BEGIN) {
		tally->requests++;
		tally->open_requests++;
	} else if (e->u.mark.phase == TRACE_MARK_END && tally->open_requests) {
		tally->open_requests--;
	}
}

static void read_all(struct trace *t, struct check_tally *tally)
{
	const struct trace_facts *facts = trace_facts(t);
	const struct trace_thread *threads;
	struct event event;
	uint64_t n = 0, live = 0;
	int r;

	progress_begin(facts->path, facts->event_bytes);
	while ((r = trace_next(t, &event, &tally->why)) > 0) {
		if (++n % PROGRESS_EVERY == 0)
			progress_step(trace_bytes_read(t));
		live += event.kind == EV_ALLOC || event.kind == EV_UNFREE;
		live -= event.kind == EV_FREE && event.block;
		if (live > tally->most_live)
			tally->most_live = live;
		tally->maps += event.kind == EV_MAP;
		tally->unmaps += event.kind == EV_UNMAP;
		tally->unmaps -= event.kind == EV_UNUNMAP && tally->unmaps;
		tally->failed += event.kind == EV_FAILED;
		if (event.kind == EV_MARK)
			count_mark(tally, &event);
	}
	progress_end();
	tally->cut = r < 0;
	for (size_t i = trace_threads(t, &threads); i-- > 0;) {
		tally->allocs += threads[i].allocs;
		tally->frees += threads[i].frees;
	}
	trace_each_live(t, add_live, tally);
}

static int read_sets(const struct traces *traces, struct check_tally **tallies, bool *damaged)
{
	size_t count = 0, n = 0;

	*damaged = false;
	for (size_t i = 0; i < traces->count; i++)
		count += check_trace_count(&traces->parts[i]);
	*tallies = calloc(count + 1, sizeof(**tallies));
	if (!*tallies)
		return -ENOMEM;
	for (size_t i = 0; i < traces->count; i++) {
		const struct trace_set *set = &traces->parts[i];

		for (size_t k = 0; k < check_trace_count(set); k++, n++) {
			read_all(check_trace(set, k), &(*tallies)[n]);
			*damaged |=
			    !check_is_whole(trace_facts(check_trace(set, k)), &(*tallies)[n]);
		}
		*damaged |= set->left_out > 0;
	}
	return 0;
}

static int parse(int argc, char **argv, struct output *output)
{
	static const struct option options[] = {OUTPUT_OPTIONS, {NULL, 0, NULL, 0}};
	int opt, rc = 0;

	optind = 0;
	opterr = 0;
	while (!rc && (opt = getopt_long(argc, argv, OUTPUT_SHORT, options, NULL)) != -1)
		rc = output_option(&cmd_check, opt, argv, output);
	return rc ? rc : cmd_wants_trace(&cmd_check, argc);
}

static int check_main(int argc, char **argv)
{
	struct output output = OUTPUT_DEFAULT;
	struct check_tally *tallies = NULL;
	struct traces traces;
	struct err err = {""};
	struct str text = {0};
	bool damaged = false;
	int rc = parse(argc, argv, &output);

	if (rc)
		return rc < 0 ? CMD_DONE : rc;
	rc = traces_open(&traces, argv + optind, (size_t)(argc - optind), &err);
	if (rc)
		return cmd_error(&err);
	rc = read_sets(&traces, &tallies, &damaged);
	if (rc) {
		err_set(&err, rc, "no memory for the traces");
	} else {
		struct check_view view = {traces.parts, traces.count, tallies};
		struct report_style style = output_style(&output);

		output.format->check(&view, &style, &text);
		rc = output_write(&text, output.path, &err);
	}
	free(tallies);
	str_free(&text);
	traces_close(&traces);
	if (rc)
		return cmd_error(&err);
	return damaged ? CMD_ERROR : CMD_DONE;
}

const struct command cmd_check = {
    .name = "check",
    .arguments = "TRACE... [OPTION...]",
    .summary = "say whether a trace is whole and complete, and what it holds",
    .result = FORMAT_OF_check,
    .details = CMD_TRACE
    "\n"
    "      --format FORMATS\n"
    "  -o, --output FILE    write there instead of to stdout\n"
    "  -h, --help           this help\n\n"
    "Exit status 1 when a file cannot be read or is damaged. A process that was killed leaves\n"
    "an undamaged one.\n",
    .main = check_main,
};
