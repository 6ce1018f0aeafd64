/*
 * check.c - `whyoom check`: whether a trace is whole and complete, and what it holds. Reads every
 * event once and judges nothing.
 */
#include "report/check.h"

#include <errno.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>

#include "cmd/cmd.h"
#include "cmd/common/output.h"
#include "cmd/common/traces.h"
#include "model/space/space.h"
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

/* Make an entry for each space that is new in the model, and take the most blocks at once. */
static int count_spaces(struct check_tally *tally, const struct spaces *spaces)
{
	for (uint32_t i = 0; spaces && i < spaces->count; i++) {
		const struct space *sp = spaces->list[i];
		struct check_space *of, new = {.name = ""};

		if (i == tally->spaces.count) {
			memcpy(new.name, sp->name, sizeof(new.name));
			if (vec_push(&tally->spaces, new))
				return -ENOMEM;
		}
		of = &tally->spaces.items[i];
		of->allocs = sp->model->total.count;
		of->live_blocks = sp->model->blocks.count;
		of->live_bytes = sp->model->blocks.bytes;
		of->frees = of->allocs - of->live_blocks;
		of->most_bytes = sp->model->peak.bytes;
		if (of->live_blocks > of->most_live)
			of->most_live = of->live_blocks;
	}
	return 0;
}

/* Read the events, and let a model follow the spaces other than the host's. */
static int read_all(struct trace *t, struct check_tally *tally, struct err *err)
{
	struct model *model;
	const struct trace_facts *facts = trace_facts(t);
	const struct trace_thread *threads;
	struct event event;
	uint64_t n = 0, live = 0;
	int r, rc = model_new(feed_of_trace(t), &model, err);

	if (rc)
		return rc;
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
		if (event.kind < EV_SPACE_ALLOC || event.kind > EV_SPACE_CALL)
			continue;
		rc = model_apply(model, &event, err);
		if (!rc)
			rc = count_spaces(tally, model->spaces);
		if (rc)
			break;
	}
	progress_end();
	model_free(model);
	tally->cut = r < 0;
	for (size_t i = trace_threads(t, &threads); i-- > 0;) {
		tally->allocs += threads[i].allocs;
		tally->frees += threads[i].frees;
	}
	trace_each_live(t, add_live, tally);
	return rc;
}

static void free_tallies(struct check_tally *tallies, size_t count)
{
	for (size_t i = 0; tallies && i < count; i++)
		vec_free(&tallies[i].spaces);
	free(tallies);
}

static int read_sets(const struct traces *traces, struct check_tally **tallies, size_t *read,
    bool *damaged, struct err *err)
{
	size_t count = 0, n = 0;
	int rc;

	*damaged = false;
	*read = 0;
	for (size_t i = 0; i < traces->count; i++)
		count += check_trace_count(&traces->parts[i]);
	*tallies = calloc(count + 1, sizeof(**tallies));
	if (!*tallies)
		return err_set(err, -ENOMEM, "no memory for the traces");
	*read = count;
	for (size_t i = 0; i < traces->count; i++) {
		const struct trace_set *set = &traces->parts[i];

		for (size_t k = 0; k < check_trace_count(set); k++, n++) {
			rc = read_all(check_trace(set, k), &(*tallies)[n], err);
			if (rc)
				return rc;
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
	size_t read = 0;
	int rc = parse(argc, argv, &output);

	if (rc)
		return rc < 0 ? CMD_DONE : rc;
	rc = traces_open(&traces, argv + optind, (size_t)(argc - optind), &err);
	if (rc)
		return cmd_error(&err);
	rc = read_sets(&traces, &tallies, &read, &damaged, &err);
	if (!rc) {
		struct check_view view = {traces.parts, traces.count, tallies};
		struct report_style style = output_style(&output);

		output.format->check(&view, &style, &text);
		rc = output_write(&text, output.path, &err);
	}
	free_tallies(tallies, read);
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
