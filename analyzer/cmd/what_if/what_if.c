/*
 * what_if.c - `whyoom what-if`: would a change have made the run fit?
 */
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cmd/cmd.h"
#include "cmd/common/moment.h"
#include "cmd/common/output.h"
#include "cmd/common/traces.h"
#include "cmd/what_if/what_if.h"
#include "report/text/style.h"
#include "util/progress.h"
#include "util/text/fmt.h"
#include "verdict/subject.h"

enum {
	OPT_MEMORY = 256,
	OPT_EXPANDABLE,
	OPT_MAX_SPLIT,
	OPT_WITHOUT_SITE,
	OPT_CAP_GROWTH,
	OPT_CONCURRENCY,
	OPT_MAX_LEN,
	OPT_LONGEST,
	OPT_SPACE,
	OPT_PID,
};

static const struct option options[] = {
    {"memory", required_argument, NULL, OPT_MEMORY},
    {"expandable-segments", no_argument, NULL, OPT_EXPANDABLE},
    {"max-split-size-mb", required_argument, NULL, OPT_MAX_SPLIT},
    {"without-site", required_argument, NULL, OPT_WITHOUT_SITE},
    {"cap-growth", required_argument, NULL, OPT_CAP_GROWTH},
    {"concurrency", required_argument, NULL, OPT_CONCURRENCY},
    {"max-len", required_argument, NULL, OPT_MAX_LEN},
    {"longest", required_argument, NULL, OPT_LONGEST},
    {"space", required_argument, NULL, OPT_SPACE},
    {"pid", required_argument, NULL, OPT_PID},
    OUTPUT_OPTIONS,
    {NULL, 0, NULL, 0},
};

struct request {
	struct what_if_change changes[WHAT_IF_CHANGES];
	size_t count;
	const char *space; /* NULL: where it failed */
	uint64_t pid, longest;
	struct output output;
};

/* --- what is asked --- */

static struct what_if_change *add(struct request *r, enum what_if_kind kind)
{
	struct what_if_change *c = &r->changes[r->count];

	if (r->count == WHAT_IF_CHANGES - 1) /* one place is kept for all of them together */
		return NULL;
	r->count++;
	c->kind = kind;
	return c;
}

static int too_many(void)
{
	return cmd_usage(&cmd_what_if, "at most %u changes", WHAT_IF_CHANGES - 1);
}

static int add_bytes(
    struct request *r, enum what_if_kind kind, const char *option, const char *words)
{
	struct what_if_change *c = add(r, kind);
	struct fmt f;

	if (!c)
		return too_many();
	if (fmt_parse_size(optarg, &c->value) || (kind == WHAT_IF_MEMORY && !c->value))
		return cmd_usage(&cmd_what_if, "%s is a size, as 24GiB, not '%s'", option, optarg);
	snprintf(c->words, sizeof(c->words), words, fmt_size(&f, c->value));
	return 0;
}

static int add_max_split(struct request *r, const char *text)
{
	struct what_if_change *c = add(r, WHAT_IF_MAX_SPLIT);
	uint64_t mib;
	char *end;

	if (!c)
		return too_many();
	mib = strtoull(text, &end, 10);
	if (*text < '0' || *text > '9' || *end || mib < 20 || mib > UINT32_MAX)
		return cmd_usage(
		    &cmd_what_if, "--max-split-size-mb is a number from 20 on, not '%s'", text);
	c->value = mib * CACHING_MIB;
	snprintf(c->words, sizeof(c->words), "max_split_size_mb:%" PRIu64, mib);
	return 0;
}

static int add_number(
    struct request *r, enum what_if_kind kind, const char *option, const char *words)
{
	struct what_if_change *c = add(r, kind);
	int rc;

	if (!c)
		return too_many();
	rc = cmd_number(&cmd_what_if, option, 1, &c->value);
	if (rc)
		return rc;
	if (kind == WHAT_IF_CONCURRENCY && c->value == 1)
		strcpy(c->words, "one request at a time");
	else
		snprintf(c->words, sizeof(c->words), words, c->value);
	return 0;
}

static int add_length(struct request *r, const char *text)
{
	struct what_if_change *c;
	double percent;
	char *end;

	if (!*text || text[strlen(text) - 1] != '%')
		return add_number(
		    r, WHAT_IF_MAX_LEN, "--max-len", "inputs of at most %" PRIu64 " tokens");
	percent = strtod(text, &end);
	if (*text < '0' || *text > '9' || end[0] != '%' || end[1] || !(percent > 0) ||
	    percent > 100)
		return cmd_usage(&cmd_what_if,
		    "--max-len is a number of tokens, or a share, as 50%%, not '%s'", text);
	c = add(r, WHAT_IF_MAX_LEN);
	if (!c)
		return too_many();
	c->share = percent / 100;
	snprintf(c->words, sizeof(c->words), "inputs of at most %g %% of the longest", percent);
	return 0;
}

static int add_plain(struct request *r, enum what_if_kind kind, const char *words)
{
	struct what_if_change *c = add(r, kind);

	if (!c)
		return too_many();
	c->stats = words;
	snprintf(c->words, sizeof(c->words),
	    kind == WHAT_IF_EXPANDABLE ? "expandable_segments:True" : "without %s", words);
	return 0;
}

static int take_option(struct request *r, int opt, char *const *argv)
{
	switch (opt) {
	case OPT_MEMORY:
		return add_bytes(r, WHAT_IF_MEMORY, "--memory", "%s of memory");
	case OPT_EXPANDABLE:
		return add_plain(r, WHAT_IF_EXPANDABLE, "");
	case OPT_MAX_SPLIT:
		return add_max_split(r, optarg);
	case OPT_WITHOUT_SITE:
		return add_plain(r, WHAT_IF_WITHOUT_SITE, optarg);
	case OPT_CAP_GROWTH:
		return add_bytes(
		    r, WHAT_IF_CAP_GROWTH, "--cap-growth", "growth of each site capped at %s");
	case OPT_CONCURRENCY:
		return add_number(r, WHAT_IF_CONCURRENCY, "--concurrency",
		    "at most %" PRIu64 " requests at once");
	case OPT_MAX_LEN:
		return add_length(r, optarg);
	case OPT_LONGEST:
		return cmd_number(&cmd_what_if, "--longest", 1, &r->longest);
	case OPT_SPACE:
		r->space = optarg;
		return 0;
	case OPT_PID:
		return cmd_number(&cmd_what_if, "--pid", 1, &r->pid);
	default:
		return output_option(&cmd_what_if, opt, argv, &r->output);
	}
}

bool what_if_wants(const struct what_if_change *changes, size_t count, enum what_if_kind kind)
{
	for (size_t i = 0; i < count; i++)
		if (changes[i].kind == kind)
			return true;
	return false;
}

static bool asks(const struct request *r, enum what_if_kind kind)
{
	return what_if_wants(r->changes, r->count, kind);
}

static int parse(int argc, char **argv, struct request *r)
{
	int opt, rc = 0;

	*r = (struct request){.output = OUTPUT_DEFAULT};
	optind = 0;
	opterr = 0;
	while (!rc && (opt = getopt_long(argc, argv, OUTPUT_SHORT, options, NULL)) != -1)
		rc = take_option(r, opt, argv);
	if (!rc)
		rc = cmd_wants_trace(&cmd_what_if, argc);
	if (rc)
		return rc;
	if (r->longest && !asks(r, WHAT_IF_MAX_LEN))
		return cmd_usage(&cmd_what_if, "--longest is for --max-len");
	if (r->count > 1) {
		r->changes[r->count].kind = WHAT_IF_TOGETHER;
		strcpy(r->changes[r->count++].words, "all of these together");
	}
	return 0;
}

/* --- sites --- */

static bool is_named(const struct callsite *p, const char *stats)
{
	const char *base = p->file ? strrchr(p->file, '/') : NULL;
	char line[16];
	size_t n = strlen(stats);

	if (p->function && strcmp(p->function, stats) == 0)
		return true;
	if (!p->file || !p->line)
		return false;
	snprintf(line, sizeof(line), ":%" PRIu32, p->line);
	if (n <= strlen(line) || strcmp(stats + n - strlen(line), line) != 0)
		return false;
	n -= strlen(line);
	base = base ? base + 1 : p->file;
	return (strlen(p->file) == n && strncmp(p->file, stats, n) == 0) ||
	       (strlen(base) == n && strncmp(base, stats, n) == 0);
}

int what_if_find_site(
    const struct callsites *callsites, const char *stats, uint32_t *out, struct err *err)
{
	uint32_t found = CALLSITE_NONE;

	for (uint32_t i = 0; i < callsites->count; i++) {
		if (!is_named(&callsites->list[i], stats))
			continue;
		if (found != CALLSITE_NONE)
			return err_set(err, WHAT_IF_NOT_HERE,
			    "'%.100s' is the name of several sites: name it as FILE:LINE", stats);
		found = i;
	}
	if (found == CALLSITE_NONE)
		return err_set(err, WHAT_IF_NOT_HERE,
		    "no site '%.100s': name a function, or FILE:LINE, as `whyoom sites` shows it",
		    stats);
	*out = found;
	return 0;
}

void what_if_find_sites(
    const struct callsites *callsites, struct what_if_change *changes, size_t count)
{
	struct err why;

	for (size_t i = 0; i < count; i++)
		if (changes[i].kind == WHAT_IF_WITHOUT_SITE &&
		    what_if_find_site(callsites, changes[i].stats, &changes[i].callsite, &why))
			what_if_not(&changes[i], why.text);
}

/* --- what applies --- */

void what_if_not(struct what_if_change *change, const char *why)
{
	change->kind = WHAT_IF_NONE;
	snprintf(change->why_not, sizeof(change->why_not), "%s", why);
}

void what_if_none(
    struct what_if_change *changes, size_t count, enum what_if_kind kind, const char *why)
{
	for (size_t i = 0; i < count; i++)
		if (changes[i].kind == kind)
			what_if_not(&changes[i], why);
}

/* 0, or WHAT_IF_NOT_HERE: changes are asked about, and none applies. */
static int some_apply(const struct request *r)
{
	bool asked = false;

	for (size_t i = 0; i < r->count; i++) {
		if (r->changes[i].kind != WHAT_IF_TOGETHER && r->changes[i].kind != WHAT_IF_NONE)
			return 0;
		asked = true;
	}
	return asked ? WHAT_IF_NOT_HERE : 0;
}

/* The rows say what does not apply, and all of them together are those that do. */
static void settle_rows(struct request *r, struct what_if_answer *a)
{
	struct what_if_change *last = r->count ? &r->changes[r->count - 1] : NULL;
	size_t apply = 0;

	for (size_t i = 0; i < r->count && i + 1 < a->view.count; i++) {
		apply += r->changes[i].kind < WHAT_IF_TOGETHER;
		if (r->changes[i].kind == WHAT_IF_NONE)
			a->view.rows[i + 1] = (struct what_if_row){
			    .change = r->changes[i].words, .why_not = r->changes[i].why_not};
	}
	if (!last || last->kind != WHAT_IF_TOGETHER)
		return;
	if (apply < 2)
		a->view.count--;
	else if (apply + 1 < r->count)
		strcpy(last->words, "all that apply together");
}

static int none_applies(const struct request *r)
{
	struct err err;

	for (size_t i = 0; i < r->count; i++)
		if (r->changes[i].kind == WHAT_IF_NONE) {
			err_set(&err, 0, "%s: does not apply: %s", r->changes[i].words,
			    r->changes[i].why_not);
			cmd_error(&err);
		}
	return CMD_ERROR;
}

/* --- the command --- */

/* Where it failed; else PyTorch's blocks, else the host. */
static void choose_space(const struct model *m, char *out, size_t room)
{
	const struct device_failure *f = spaces_failure(m->spaces);

	snprintf(out, room, "host");
	for (uint32_t i = 0; m->spaces && i < m->spaces->count && !model_failure(m); i++) {
		const struct space *sp = m->spaces->list[i];

		if (sp->kind == SPACE_TORCH &&
		    (!f || m->spaces->list[f->space]->device == sp->device))
			snprintf(out, room, "%s", sp->name);
	}
}

static void check_settings(struct request *r, const char *space)
{
	static const enum what_if_kind settings[] = {WHAT_IF_EXPANDABLE, WHAT_IF_MAX_SPLIT};
	char why[200];

	snprintf(why, sizeof(why),
	    "it is a setting of PyTorch, and the question is about %.40s: use --space torch:0",
	    strcmp(space, "host") == 0 ? "the host's memory" : space);
	for (size_t i = 0; i < 2; i++)
		what_if_none(r->changes, r->count, settings[i], why);
}

/* A device's space that is not PyTorch's. */
static bool of_driver(const struct model *m, const char *name)
{
	const struct space *sp = spaces_find(m->spaces, name);

	return sp && sp->kind != SPACE_TORCH;
}

static int find_answer(
    const struct trace_set *set, struct request *r, struct what_if_answer *a, struct err *err)
{
	struct model *m = NULL;
	struct trace *t;
	struct trace_set one = {
	    .images = &t, .count = 1, .supervisor = set->supervisor, .path = set->path};
	int rc = moment_process(set, r->pid, &t, err);
	bool torch;

	if (rc)
		return rc;
	a->view.pid = trace_facts(t)->pid;
	rc = subject_model(feed_of_trace(t), &m, err);
	if (rc)
		return rc;
	trace_set_damage(set, t, &a->view.damage);
	if (r->space)
		snprintf(a->view.space, sizeof(a->view.space), "%s", r->space);
	else
		choose_space(m, a->view.space, sizeof(a->view.space));
	a->lengths.asked = asks(r, WHAT_IF_MAX_LEN);
	a->lengths.tokens = r->longest;
	/* A driver's space is judged as the host's, by what lived. */
	torch =
	    strcmp(a->view.space, "host") != 0 &&
	    !((asks(r, WHAT_IF_CONCURRENCY) || a->lengths.asked) && of_driver(m, a->view.space));
	if (!torch)
		check_settings(r, a->view.space);
	rc = some_apply(r);
	if (!rc)
		rc = torch ? what_if_torch(&one, m, r->changes, r->count, a, err)
			   : what_if_host(&one, r->changes, r->count, a, err);
	if (!rc)
		rc = some_apply(r);
	settle_rows(r, a);
	model_free(m);
	return rc;
}

static int answer(const struct trace_set *set, struct request *r, struct err *err)
{
	struct report_style style = output_style(&r->output);
	struct what_if_answer a = {0};
	struct str text = {0};
	int rc = find_answer(set, r, &a, err);

	if (!rc) {
		what_if_lengths_view(&a.lengths, &a.view.inputs);
		r->output.format->what_if(&a.view, &style, &text);
		rc = output_write(&text, r->output.path, err);
	}
	what_if_lengths_fini(&a.lengths);
	str_free(&text);
	return rc;
}

static int what_if_main(int argc, char **argv)
{
	struct request r;
	struct traces traces;
	struct err err = {""};
	int rc = parse(argc, argv, &r);

	if (rc)
		return rc < 0 ? CMD_DONE : rc;
	rc = traces_open(&traces, argv + optind, (size_t)(argc - optind), &err);
	if (!rc) {
		rc = answer(&traces.set, &r, &err);
		traces_close(&traces);
	}
	progress_end();
	if (rc == WHAT_IF_NOT_HERE)
		return none_applies(&r);
	return rc ? cmd_error(&err) : CMD_DONE;
}

const struct command cmd_what_if = {
    .name = "what-if",
    .arguments = "TRACE... CHANGE...",
    .summary = "say whether a change would have made the run fit",
    .result = FORMAT_OF_what_if,
    .details = CMD_TRACE
    "Each CHANGE is tried by itself, and several also together. For a CHANGE that does not\n"
    "apply to this trace the answer says why.\n\n"
    "      --memory SIZE                  a device, or a limit, of that size\n"
    "      --expandable-segments          PyTorch's expandable_segments:True\n"
    "      --max-split-size-mb N          PyTorch's max_split_size_mb:N\n"
    "      --without-site SITE            without the memory of FUNCTION or FILE:LINE\n"
    "      --cap-growth SIZE              no call site grows by more than SIZE\n"
    "      --concurrency N                at most N requests in flight; the others wait\n"
    "      --max-len N|SHARE%             inputs of at most N tokens, or SHARE of the longest\n\n"
    "      --longest TOKENS               the length of the longest input, if no marks say it\n"
    "      --space SPACE                  torch:0, ..., host (default: where it failed)\n"
    "      --format FORMATS\n"
    "      --pid PID                      the process, if there are several\n"
    "  -o, --output FILE                  write there instead of to stdout\n"
    "  -h, --help                         this help\n",
    .main = what_if_main,
};
