/*
 * what_if.c - `whyoom what-if`: would it have fitted?
 */
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cmd/cmd.h"
#include "cmd/moment.h"
#include "cmd/output.h"
#include "cmd/traces.h"
#include "cmd/what_if.h"
#include "report/style.h"
#include "util/fmt.h"
#include "util/json.h"
#include "util/progress.h"
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
	OPT_FORMAT,
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
    {"format", required_argument, NULL, OPT_FORMAT},
    {"space", required_argument, NULL, OPT_SPACE},
    {"pid", required_argument, NULL, OPT_PID},
    {"output", required_argument, NULL, 'o'},
    {"help", no_argument, NULL, 'h'},
    {NULL, 0, NULL, 0},
};

struct request {
	struct what_if_change changes[WHAT_IF_CHANGES];
	size_t count;
	const char *space, *output; /* space NULL: where it failed */
	uint64_t pid, longest;
	bool json;
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

static int add_bytes(struct request *r, enum what_if_kind kind, const char *option,
    const char *text, const char *words)
{
	struct what_if_change *c = add(r, kind);
	struct fmt f;

	if (!c)
		return too_many();
	if (fmt_parse_size(text, &c->value) || (kind == WHAT_IF_MEMORY && !c->value))
		return cmd_usage(&cmd_what_if, "%s is a size, as 24GiB, not '%s'", option, text);
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

static int parse_count(const char *option, const char *text, uint64_t *out)
{
	char *end;

	*out = strtoull(text, &end, 10);
	if (*text < '0' || *text > '9' || *end || !*out)
		return cmd_usage(&cmd_what_if, "%s is a number from 1 on, not '%s'", option, text);
	return 0;
}

static int add_number(struct request *r, enum what_if_kind kind, const char *option,
    const char *text, const char *words)
{
	struct what_if_change *c = add(r, kind);
	int rc;

	if (!c)
		return too_many();
	rc = parse_count(option, text, &c->value);
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
		    r, WHAT_IF_MAX_LEN, "--max-len", text, "inputs of at most %" PRIu64 " tokens");
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
	c->site = words;
	snprintf(c->words, sizeof(c->words),
	    kind == WHAT_IF_EXPANDABLE ? "expandable_segments:True" : "without %s", words);
	return 0;
}

static int take_option(struct request *r, int opt, char *const *argv)
{
	char *end;

	switch (opt) {
	case OPT_MEMORY:
		return add_bytes(r, WHAT_IF_MEMORY, "--memory", optarg, "%s of memory");
	case OPT_EXPANDABLE:
		return add_plain(r, WHAT_IF_EXPANDABLE, "");
	case OPT_MAX_SPLIT:
		return add_max_split(r, optarg);
	case OPT_WITHOUT_SITE:
		return add_plain(r, WHAT_IF_WITHOUT_SITE, optarg);
	case OPT_CAP_GROWTH:
		return add_bytes(r, WHAT_IF_CAP_GROWTH, "--cap-growth", optarg,
		    "growth of each site capped at %s");
	case OPT_CONCURRENCY:
		return add_number(r, WHAT_IF_CONCURRENCY, "--concurrency", optarg,
		    "at most %" PRIu64 " requests at once");
	case OPT_MAX_LEN:
		return add_length(r, optarg);
	case OPT_LONGEST:
		return parse_count("--longest", optarg, &r->longest);
	case OPT_FORMAT:
		return cmd_format(&cmd_what_if, optarg, &r->json);
	case OPT_SPACE:
		r->space = optarg;
		return 0;
	case OPT_PID:
		r->pid = strtoull(optarg, &end, 10);
		if (*optarg < '1' || *optarg > '9' || *end)
			return cmd_usage(&cmd_what_if, "--pid is a number, not '%s'", optarg);
		return 0;
	case 'o':
		r->output = optarg;
		return 0;
	case 'h':
		cmd_help(&cmd_what_if, stdout);
		return -1;
	default:
		return cmd_stray(&cmd_what_if, opt, argv[optind - 1]);
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

	memset(r, 0, sizeof(*r));
	optind = 0;
	opterr = 0;
	while (!rc && (opt = getopt_long(argc, argv, ":o:h", options, NULL)) != -1)
		rc = take_option(r, opt, argv);
	if (rc)
		return rc;
	if (optind == argc)
		return cmd_usage(&cmd_what_if, "no trace: name a directory that `whyoom run` made");
	if (r->longest && !asks(r, WHAT_IF_MAX_LEN))
		return cmd_usage(&cmd_what_if, "--longest says what --max-len is to be taken of");
	if (r->count > 1) {
		r->changes[r->count].kind = WHAT_IF_TOGETHER;
		strcpy(r->changes[r->count++].words, "all of these together");
	}
	return 0;
}

/* --- sites --- */

static bool is_site(const struct place *p, const char *site)
{
	const char *base = p->file ? strrchr(p->file, '/') : NULL;
	char line[16];
	size_t n = strlen(site);

	if (p->function && strcmp(p->function, site) == 0)
		return true;
	if (!p->file || !p->line)
		return false;
	snprintf(line, sizeof(line), ":%" PRIu32, p->line);
	if (n <= strlen(line) || strcmp(site + n - strlen(line), line) != 0)
		return false;
	n -= strlen(line);
	base = base ? base + 1 : p->file;
	return (strlen(p->file) == n && strncmp(p->file, site, n) == 0) ||
	       (strlen(base) == n && strncmp(base, site, n) == 0);
}

int what_if_site(const struct places *places, const char *site, uint32_t *out, struct err *err)
{
	uint32_t found = PLACE_NONE;

	for (uint32_t i = 0; i < places->count; i++) {
		if (!is_site(&places->list[i], site))
			continue;
		if (found != PLACE_NONE)
			return err_set(err, -EINVAL,
			    "'%.100s' is the name of several sites: name it as FILE:LINE", site);
		found = i;
	}
	if (found == PLACE_NONE)
		return err_set(err, -ENOENT,
		    "no site '%.100s': name a function, or FILE:LINE, as `whyoom sites` shows it",
		    site);
	*out = found;
	return 0;
}

/* --- the answer --- */

static const char *const match_names[] = {"none", "identical", "within", "not"};

static void match_json(struct json *j, const struct torch_match *m)
{
	json_object(j, "model");
	json_string(j, "match", match_names[m->kind]);
	json_u64(j, "requests", m->requests);
	json_u64(j, "segments", m->segments);
	json_u64(j, "streams", m->streams);
	json_u64(j, "compared", m->compared);
	json_real(j, "deviation", m->deviation, 6);
	if (m->first.what) {
		json_object(j, "first_difference");
		json_string(j, "what", m->first.what);
		json_real(j, "seconds", (double)m->first.time_ns / 1e9, 6);
		json_u64(j, "request", m->first.request);
		json_u64(j, "recorded_bytes", m->first.recorded);
		json_u64(j, "modelled_bytes", m->first.modelled);
		json_object_end(j);
	} else {
		json_null(j, "first_difference");
	}
	json_string(j, "doubt", m->doubt);
	json_object_end(j);
}

static void refusal_json(struct json *j, const struct what_if_row *row)
{
	const struct torch_refusal *f = &row->refusal;

	if (!row->refused) {
		json_null(j, "refused");
		return;
	}
	json_object(j, "refused");
	json_u64(j, "request", f->block.serial);
	json_real(j, "seconds", (double)f->block.time_ns / 1e9, 6);
	json_u64(j, "bytes", f->size);
	json_u64(j, "segment_bytes", f->segment);
	json_u64(j, "reserved_bytes", f->reserved);
	json_u64(j, "allocated_bytes", f->allocated);
	json_u64(j, "largest_hole_bytes", f->largest_hole);
	json_object_end(j);
}

static void row_json(struct json *j, const char *key, const struct what_if_row *row)
{
	json_object(j, key);
	if (row->change)
		json_string(j, "change", row->change);
	json_bool(j, "fits", row->fits);
	json_i64(j, "headroom_bytes", row->headroom);
	refusal_json(j, row);
	json_object_end(j);
}

static void answer_json(const struct what_if_answer *a, struct str *out)
{
	struct json j = {.out = out, .pretty = true};

	json_object(&j, NULL);
	json_u64(&j, "schema", 1);
	json_string(&j, "space", a->space);
	json_u64(&j, "pid", a->pid);
	json_u64_or_null(&j, "limit_bytes", a->limit, a->limit > 0);
	json_u64_or_null(&j, "requested_bytes", a->requested, a->requested > 0);
	if (a->match.requests)
		match_json(&j, &a->match);
	else
		json_null(&j, "model");
	what_if_lengths_json(&a->lengths, &j);
	row_json(&j, "recorded", &a->rows[0]);
	json_array(&j, "what_if");
	for (size_t i = 1; i < a->count; i++)
		row_json(&j, NULL, &a->rows[i]);
	json_array_end(&j);
	json_object_end(&j);
	str_puts(out, "\n");
}

static void row_text(
    const struct what_if_row *row, const struct report_style *style, struct str *out)
{
	const char *words = row->change ? row->change : "as it was";
	struct str line = {0};
	struct fmt a, b, c;

	str_printf(&line, "%s: %s, %s", words, row->fits ? "fits" : "does not fit",
	    fmt_size_signed(&a, row->headroom));
	if (row->refused)
		str_printf(&line, "; %s refused after %s, with %s in blocks",
		    fmt_size(&a, row->refusal.size), fmt_duration(&b, row->refusal.block.time_ns),
		    fmt_size(&c, row->refusal.allocated));
	style_item(out, style, "  - ", 4, str_text(&line));
	str_free(&line);
}

static void match_text(
    const struct torch_match *m, const struct report_style *style, struct str *out)
{
	struct str line = {0};
	struct fmt a, b;

	if (m->kind == TORCH_MATCH_IDENTICAL)
		str_printf(&line,
		    "The model of PyTorch's allocator takes the same %s segments as PyTorch did, "
		    "for %s requests.",
		    fmt_count(&a, m->segments), fmt_count(&b, m->requests));
	else
		str_printf(&line,
		    "The model of PyTorch's allocator does not do as PyTorch did: of what is "
		    "reserved it is off by up to %.1f %%, from request %s on, after %s. The rows "
		    "above are %s.",
		    m->deviation * 100, fmt_count(&a, m->first.request),
		    fmt_duration(&b, m->first.time_ns),
		    m->kind == TORCH_MATCH_WITHIN ? "close" : "not to be relied on");
	if (m->doubt)
		str_printf(&line, " In doubt: %s.", m->doubt);
	style_wrap(out, style, 2, str_text(&line));
	str_free(&line);
}

static void answer_text(
    const struct what_if_answer *a, const struct report_style *style, struct str *out)
{
	struct str line = {0};
	struct fmt f;

	str_printf(&line, "What if, in %s of process %" PRIu32, a->space, a->pid);
	if (a->limit)
		str_printf(&line, ", with %s", fmt_size(&f, a->limit));
	style_title(out, style, str_text(&line));
	for (size_t i = 0; i < a->count; i++)
		row_text(&a->rows[i], style, out);
	what_if_lengths_text(&a->lengths, style, out);
	if (a->match.requests) {
		str_puts(out, "\n");
		match_text(&a->match, style, out);
	}
	str_free(&line);
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

static int check_changes(const struct request *r, const char *space, struct err *err)
{
	for (size_t i = 0; i < r->count; i++)
		if (strcmp(space, "host") == 0 && (r->changes[i].kind == WHAT_IF_EXPANDABLE ||
						      r->changes[i].kind == WHAT_IF_MAX_SPLIT))
			return err_set(err, -EINVAL,
			    "%s is a setting of PyTorch's, and the question is about the host's "
			    "memory: use --space torch:0",
			    r->changes[i].words);
	return 0;
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

	if (rc)
		return rc;
	a->pid = trace_facts(t)->pid;
	rc = subject_model(feed_of_trace(t), &m, err);
	if (rc)
		return rc;
	if (r->space)
		snprintf(a->space, sizeof(a->space), "%s", r->space);
	else
		choose_space(m, a->space, sizeof(a->space));
	rc = check_changes(r, a->space, err);
	a->lengths.asked = asks(r, WHAT_IF_MAX_LEN);
	a->lengths.tokens = r->longest;
	if (!rc)
		rc = strcmp(a->space, "host") != 0 &&
			     !((asks(r, WHAT_IF_CONCURRENCY) || a->lengths.asked) &&
				 of_driver(m, a->space))
			 ? what_if_torch(&one, m, r->changes, r->count, a, err)
			 : what_if_host(&one, r->changes, r->count, a, err);
	model_free(m);
	return rc;
}

static int answer(const struct trace_set *set, struct request *r, struct err *err)
{
	struct report_style style = report_style_of(r->output ? -1 : STDOUT_FILENO);
	struct what_if_answer a = {0};
	struct str text = {0};
	int rc = find_answer(set, r, &a, err);

	if (!rc) {
		if (r->json)
			answer_json(&a, &text);
		else
			answer_text(&a, &style, &text);
		rc = output_write(&text, r->output, err);
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
	return rc ? cmd_error(&err) : CMD_DONE;
}

const struct command cmd_what_if = {
    .name = "what-if",
    .arguments = "TRACE... CHANGE...",
    .summary = "would it have fitted?",
    .details =
	"TRACE is a directory that `whyoom run` made, or one file of it. Each CHANGE is tried by\n"
	"itself, and with several all of them together:\n\n"
	"      --memory SIZE                  a device, or a limit, of that size\n"
	"      --expandable-segments          PyTorch's expandable_segments:True\n"
	"      --max-split-size-mb N          PyTorch's max_split_size_mb:N\n"
	"      --without-site SITE            without what a FUNCTION or FILE:LINE asks for\n"
	"      --cap-growth SIZE              no site holds that much more than its first block\n"
	"      --concurrency N                at most N requests in flight, and the others wait\n"
	"      --max-len N|SHARE%             inputs of at most N tokens, or that part of the "
	"longest\n\n"
	"      --longest TOKENS               that the longest input had, where no marks say it\n"
	"      --space SPACE                  torch:0, ..., host (default: where it failed)\n"
	"      --format text|json\n"
	"      --pid PID                      of several processes, this one\n"
	"  -o, --output FILE                  write there instead of to stdout\n"
	"  -h, --help                         this help\n",
    .main = what_if_main,
};
