/*
 * last_word.c - the verdict in one line, for where an orchestrator keeps few bytes of a container's
 * end. Kubernetes takes 4 KiB of a container, and 12 KiB of all containers of a pod.
 */
#include "report/report.h"

#define SENTENCE_MAX 480u /* bytes; with the most of a fix and of a path below LAST_WORD_MAX */
#define FIX_MAX 260u
#define PATH_MOST 160u
#define CUT "…"

/* Append the text, cut at whole characters if it is longer than `most` bytes. `text` is safe. */
static void add_cut(struct str *out, const char *text, size_t most)
{
	size_t length = strlen(text), end = most - strlen(CUT);

	if (length <= most) {
		str_add(out, text, length);
		return;
	}
	while (end && ((unsigned char)text[end] & 0xc0) == 0x80)
		end--;
	str_add(out, text, end);
	str_puts(out, CUT);
}

static void add_safe(struct str *out, const char *text, size_t most)
{
	struct str safe = {0};

	str_safe(&safe, text);
	add_cut(out, str_text(&safe), most);
	str_free(&safe);
}

/* A path that is too long is left out: a part of it names nothing. */
static void add_command(struct str *out, const char *trace)
{
	struct str safe = {0};

	str_safe(&safe, trace);
	if (safe.length && safe.length <= PATH_MOST)
		str_printf(out, " More: whyoom report %s", safe.text);
	str_free(&safe);
}

void report_last_word(const struct verdict_result *r, const char *trace, struct str *out)
{
	str_printf(out, "whyoom: %s", cause_name(r->verdict.cause));
	if (r->verdict.confidence > 0)
		str_printf(out, " (%.0f %% sure)", r->verdict.confidence * 100);
	str_puts(out, ". ");
	add_safe(out, r->verdict.summary, SENTENCE_MAX);
	if (r->verdict.fix_count) {
		str_puts(out, " Fix: ");
		add_safe(out, r->verdict.fixes[0].text, FIX_MAX);
	} else if (r->verdict.next) {
		str_puts(out, " Next: ");
		add_safe(out, r->verdict.next, FIX_MAX);
	}
	add_command(out, trace);
}
