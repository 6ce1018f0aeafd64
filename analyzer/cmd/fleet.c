/*
 * fleet.c - `whyoom fleet`: the runs of many hosts as one table, and questions about it.
 */
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cmd/cmd.h"
#include "cmd/common/output.h"
#include "cmd/fleet_page.h"
#include "fleet/store.h"
#include "util/io.h"
#include "util/unfinished.h"

#define DATABASE "fleet.db"
#define PAGE "fleet-page"
#define TIMEOUT 120u /* seconds for one run: twenty times what ten million events take */

enum { OPT_FLAT = 256, OPT_JSONL, OPT_SQL, OPT_TIMEOUT };

static const struct option options[] = {
    {"database", required_argument, NULL, 'd'},
    {"flat", no_argument, NULL, OPT_FLAT},
    {"jobs", required_argument, NULL, 'j'},
    {"jsonl", no_argument, NULL, OPT_JSONL},
    {"sql", no_argument, NULL, OPT_SQL},
    {"timeout", required_argument, NULL, OPT_TIMEOUT},
    OUTPUT_OPTIONS,
    {NULL, 0, NULL, 0},
};

struct request {
	struct output output;
	const char *database;
	bool flat, jsonl, sql;
	uint64_t jobs, seconds;
};

/* --- collect --- */

struct collection {
	struct fleet_store *store;
	FILE *lines; /* of --jsonl; NULL: none */
	uint64_t judged, failed, loaded, known;
};

static int take_line(struct collection *c, const char *line, struct err *err)
{
	int rc = fleet_load(c->store, line, err);

	if (!rc && c->lines && (fputs(line, c->lines) < 0 || fputc('\n', c->lines) == EOF))
		rc = err_set(err, -errno, "cannot write: %s", strerror(errno));
	return rc;
}

static int take_judged(
    void *self, const struct fleet_run *run, const struct fleet_judged *judged, struct err *err)
{
	struct collection *c = self;
	struct str line = {0};
	int rc = fleet_line(c->store, run, judged, &line, err);

	if (!rc)
		rc = take_line(c, str_text(&line), err);
	if (judged->error.length)
		fprintf(stderr, "whyoom: %s: %s\n", run->path, str_text(&judged->error));
	c->judged++;
	c->failed += judged->error.length > 0;
	str_free(&line);
	return rc;
}

/* Take in the lines that another host's `collect --jsonl` wrote; "-" is stdin. */
static int load_file(struct collection *c, const char *path, struct err *err)
{
	FILE *in = strcmp(path, "-") ? fopen(path, "re") : stdin;
	size_t room = 0, number = 0;
	char *line = NULL;
	struct err why;
	ssize_t n;
	int rc = 0;

	if (!in)
		return err_set(err, -errno, "%s: %s", path, strerror(errno));
	while (!rc && (n = getline(&line, &room, in)) >= 0) {
		number++;
		while (n && (line[n - 1] == '\n' || line[n - 1] == '\r'))
			line[--n] = 0;
		if (!n)
			continue;
		rc = take_line(c, line, &why);
		if (rc)
			err_set(err, rc, "%s, line %zu: %s", path, number, why.text);
		c->loaded += !rc;
	}
	if (!rc && ferror(in))
		rc = err_set(err, -EIO, "%s: %s", path, strerror(errno));
	free(line);
	if (in != stdin)
		fclose(in);
	return rc;
}

static bool is_folder(const char *path)
{
	struct stat st;

	return !stat(path, &st) && S_ISDIR(st.st_mode);
}

static int judge_folder(
    struct collection *c, const char *path, const struct request *r, struct err *err)
{
	const struct fleet_judging how = {.jobs = (unsigned)r->jobs,
	    .seconds = (unsigned)r->seconds,
	    .take = take_judged,
	    .self = c};
	struct fleet_runs runs = {0};
	size_t *fresh = NULL, count = 0;
	int rc = fleet_runs_find(&runs, path, !r->flat, err);

	if (!rc) {
		fresh = calloc(runs.list.count + 1, sizeof(*fresh));
		rc = fresh ? 0 : err_set(err, -ENOMEM, "no memory for the list of runs");
	}
	for (size_t i = 0; i < runs.list.count && !rc; i++)
		if (!fleet_knows(c->store, &runs.list.items[i]))
			fresh[count++] = i;
	if (!rc) {
		c->known += runs.list.count - count;
		rc = fleet_judge(&runs, fresh, count, &how, err);
	}
	free(fresh);
	fleet_runs_free(&runs);
	return rc;
}

static int collect_all(
    struct collection *c, int argc, char **argv, const struct request *r, struct err *err)
{
	int rc = 0;

	for (int i = optind; i < argc && !rc; i++)
		rc = is_folder(argv[i]) ? judge_folder(c, argv[i], r, err)
					: load_file(c, argv[i], err);
	return rc;
}

static void tell(const struct collection *c, const char *where)
{
	fprintf(stderr, "whyoom: %llu runs judged", (unsigned long long)c->judged);
	if (c->failed)
		fprintf(stderr, ", of which %llu cannot be read", (unsigned long long)c->failed);
	if (c->known)
		fprintf(stderr, ", %llu known before", (unsigned long long)c->known);
	if (c->loaded)
		fprintf(stderr, ", %llu lines taken in", (unsigned long long)c->loaded);
	fprintf(stderr, "; %s\n", where);
}

static int collect_lines(
    struct collection *c, int argc, char **argv, const struct request *r, struct err *err)
{
	struct output_stream stream;
	int rc = fleet_open(NULL, true, &c->store, err);

	if (rc)
		return rc;
	rc = output_begin(&stream, r->output.path, err);
	if (rc) {
		fleet_close(c->store);
		return rc;
	}
	c->lines = fdopen(dup(stream.fd), "w");
	rc = c->lines ? collect_all(c, argc, argv, r, err)
		      : err_set(err, -errno, "cannot write: %s", strerror(errno));
	if (c->lines && fclose(c->lines) && !rc)
		rc = err_set(err, -errno, "cannot write: %s", strerror(errno));
	fleet_close(c->store);
	if (rc) {
		output_abort(&stream);
		return rc;
	}
	return output_commit(&stream, err);
}

/* A database that did not exist before is removed when the work fails or a signal ends it. */
static int collect_rows(struct collection *c, int argc, char **argv, const struct request *r,
    const char *path, struct err *err)
{
	bool fresh = access(path, F_OK) != 0 && !unfinished_file(path);
	int rc = fleet_open(path, true, &c->store, err);

	if (!rc) {
		rc = collect_all(c, argc, argv, r, err);
		if (!rc)
			rc = fleet_commit(c->store, err);
		fleet_close(c->store);
	}
	if (fresh && rc)
		unfinished_remove(path);
	else if (fresh)
		unfinished_done(path);
	return rc;
}

static int collect(int argc, char **argv, const struct request *r)
{
	const char *path = r->output.path ? r->output.path : DATABASE;
	struct collection c = {0};
	struct err err;
	int rc;

	if (optind >= argc)
		return cmd_usage(
		    &cmd_fleet, "collect needs a folder of traces, or a file of lines");
	rc = r->jsonl ? collect_lines(&c, argc, argv, r, &err)
		      : collect_rows(&c, argc, argv, r, path, &err);
	if (rc)
		return cmd_error(&err);
	tell(&c, r->jsonl ? "written as lines" : path);
	return CMD_DONE;
}

/* --- ask --- */

/* "first-seen" for first_seen; what follows the first line's "-- " is the question. */
static void put_question(const struct fleet_question *q, FILE *out)
{
	char name[32];

	snprintf(name, sizeof(name), "%s", q->name);
	for (char *p = name; *p; p++)
		*p = *p == '_' ? '-' : *p;
	fprintf(out, "  %-12s  %.*s\n", name, (int)strcspn(q->sql, "\n") - 3, q->sql + 3);
}

static void put_questions(FILE *out)
{
	fputs("\nQuestions:\n", out);
	for (const struct fleet_question *q = fleet_questions; q->name; q++)
		put_question(q, out);
}

static bool same_name(const char *name, const char *word)
{
	for (; *name && *word; name++, word++)
		if (*word != *name && !(*name == '_' && *word == '-'))
			return false;
	return *name == *word;
}

/* The SQL of a question, or of a file that the user wrote; `tables`: the word "schema" is known,
 * too. 0; 1: no such question. */
static int find_question(const char *word, bool tables, struct str *sql, struct err *err)
{
	size_t n = strlen(word);

	if (tables && !strcmp(word, "schema")) {
		str_puts(sql, fleet_tables);
		return 0;
	}
	for (const struct fleet_question *q = fleet_questions; q->name; q++)
		if (same_name(q->name, word)) {
			str_puts(sql, q->sql);
			return 0;
		}
	return n > 4 && !strcmp(word + n - 4, ".sql") ? io_read_text(word, SIZE_MAX, sql, err) : 1;
}

static int answer(const char *sql, const struct request *r, struct err *err)
{
	struct report_style style = output_style(&r->output);
	struct fleet_store *store;
	struct fleet_answer table;
	struct str text = {0};
	int rc = fleet_open(r->database, false, &store, err);

	if (rc)
		return rc;
	rc = fleet_ask(store, sql, &table, err);
	if (!rc) {
		r->output.format->fleet(&table, &style, &text);
		rc = output_write(&text, r->output.path, err);
		fleet_answer_free(&table);
	}
	str_free(&text);
	fleet_close(store);
	return rc;
}

static int ask(int argc, char **argv, const struct request *r)
{
	struct str sql = {0};
	struct err err;
	int rc;

	if (optind >= argc) {
		put_questions(stdout);
		return CMD_DONE;
	}
	if (optind + 1 < argc)
		return cmd_usage(
		    &cmd_fleet, "one question at a time, not also '%s'", argv[optind + 1]);
	rc = find_question(argv[optind], r->sql, &sql, &err);
	if (rc > 0)
		return cmd_usage(&cmd_fleet,
		    "there is no question '%s'; `whyoom fleet ask` lists them", argv[optind]);
	if (!rc)
		rc = r->sql ? output_write(&sql, r->output.path, &err)
			    : answer(str_text(&sql), r, &err);
	str_free(&sql);
	return rc ? cmd_error(&err) : CMD_DONE;
}

/* --- page --- */

static int page(int argc, char **argv, const struct request *r)
{
	const char *folder = r->output.path ? r->output.path : PAGE;
	struct err err;

	if (optind < argc)
		return cmd_usage(&cmd_fleet, "page takes no argument such as '%s'", argv[optind]);
	if (fleet_page_write(r->database, folder, &err))
		return cmd_error(&err);
	printf("%s/index.html\n", folder);
	return CMD_DONE;
}

/* --- options --- */

static int take_option(struct request *r, int opt, char *const *argv)
{
	switch (opt) {
	case 'd':
		r->database = optarg;
		return 0;
	case 'j':
		return cmd_number(&cmd_fleet, "--jobs", 1, &r->jobs);
	case OPT_TIMEOUT:
		return cmd_number(&cmd_fleet, "--timeout", 1, &r->seconds);
	case OPT_FLAT:
		r->flat = true;
		return 0;
	case OPT_JSONL:
		r->jsonl = true;
		return 0;
	case OPT_SQL:
		r->sql = true;
		return 0;
	default:
		return output_option(&cmd_fleet, opt, argv, &r->output);
	}
}

static int fleet_main(int argc, char **argv)
{
	struct request r = {.output = OUTPUT_DEFAULT, .database = DATABASE, .seconds = TIMEOUT};
	long processors = sysconf(_SC_NPROCESSORS_ONLN);
	const char *word;
	int opt, rc = 0;

	r.jobs = processors > 0 ? (uint64_t)processors : 1;
	optind = 0;
	opterr = 0;
	while (!rc && (opt = getopt_long(argc, argv, OUTPUT_SHORT "d:j:", options, NULL)) != -1)
		rc = take_option(&r, opt, argv);
	if (rc)
		return rc < 0 ? CMD_DONE : rc;
	word = optind < argc ? argv[optind++] : "";
	if (!strcmp(word, "collect"))
		return collect(argc, argv, &r);
	if (!strcmp(word, "ask"))
		return ask(argc, argv, &r);
	if (!strcmp(word, "page"))
		return page(argc, argv, &r);
	return cmd_usage(&cmd_fleet, "collect, ask or page, not '%s'", word);
}

const struct command cmd_fleet = {
    .name = "fleet",
    .arguments = "collect DIR|FILE... | ask [QUESTION|FILE.sql] | page",
    .summary = "put the runs of many hosts into one table, and ask it",
    .result = FORMAT_OF_fleet,
    .details =
	"collect judges each run at and below the folders, each in a process of its own, and\n"
	"writes a row for it; FILE has the lines that --jsonl wrote elsewhere (-: stdin). A run\n"
	"that is there already is not judged again. ask answers from those rows; page puts all\n"
	"answers into one page, which leads to the reports of examples.\n"
	"\n"
	"  -o, --output FILE        collect: the database (default: fleet.db), or with --jsonl "
	"the\n"
	"                           lines (default: stdout); ask: the answer; page: the folder "
	"that is\n"
	"                           made (default: fleet-page)\n"
	"      --flat               judge the folders' own traces, not those below\n"
	"      --jsonl              lines of JSON, which DuckDB, Spark and `collect` read\n"
	"  -j, --jobs N             judge N runs at once (default: one for each processor)\n"
	"      --timeout SECONDS    give up a run after that (default: 120)\n"
	"      --sql                ask: print the question's SQL, for another engine; of "
	"'schema', the\n"
	"                           tables\n"
	"  -d, --database FILE      ask, page: the database (default: fleet.db)\n"
	"      --format FORMATS\n"
	"  -h, --help               this help\n",
    .more = put_questions,
    .main = fleet_main,
};
