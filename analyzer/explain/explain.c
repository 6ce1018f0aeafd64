/* explain.c - see explain.h. */
#include "explain/explain.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "explain/device.h"
#include "explain/host.h"
#include "explain/meaning.h"
#include "explain/scan.h"
#include "explain/vote.h"
#include "util/progress.h"
#include "util/text/fmt.h"
#include "util/tuned.h"

#define PIECE (64u << 10)

#define SECOND 1000000000ll

/* --- the order of the messages, and those that are about one event --- */

/* Failures this close belong to one event. */
TUNED(unsigned, NEAR_LINES, 400, "a chain of exceptions with deep stacks, raised one on another");
TUNED(unsigned, RETRY_LINES, 20, "a program that recovers says so after one stack at most");
TUNED(int64_t, NEAR_NS, 30 * SECOND, "servers take some seconds to die, supervisors to notice");

static int64_t in_year(int64_t ns, int year)
{
	time_t seconds = (time_t)(ns / SECOND);
	struct tm tm;

	if (!gmtime_r(&seconds, &tm))
		return ns;
	tm.tm_year = year;
	return (int64_t)timegm(&tm) * SECOND + ns % SECOND;
}

/* Returns a time without a year in the year that is nearest to a time with one. */
static int64_t nearest_year(int64_t ns, int64_t to)
{
	time_t seconds = (time_t)(to / SECOND);
	int64_t best = ns;
	struct tm tm;

	if (!gmtime_r(&seconds, &tm))
		return ns;
	for (int year = tm.tm_year - 1; year <= tm.tm_year + 1; year++) {
		int64_t trial = in_year(ns, year);

		if (year < tm.tm_year || llabs(trial - to) < llabs(best - to))
			best = trial;
	}
	return best;
}

/* Takes the year from the nearest message above that has one, else from the first message with
 * one. */
static void fill_years(struct explanation *e)
{
	const struct when *known = NULL;

	for (size_t i = 0; i < e->count && !known; i++)
		if (e->messages[i].when.clock == WHEN_WALL && e->messages[i].when.year)
			known = &e->messages[i].when;
	for (size_t i = 0; known && i < e->count; i++) {
		struct when *when = &e->messages[i].when;

		if (when->clock != WHEN_WALL)
			continue;
		if (when->year)
			known = when;
		else
			when->ns = nearest_year(when->ns, known->ns);
	}
}

static int by_time(const void *a, const void *b)
{
	const struct explain_message *x = a, *y = b;

	if (x->when.ns != y->when.ns)
		return x->when.ns < y->when.ns ? -1 : 1;
	return x->line < y->line ? -1 : x->line > y->line;
}

/* Returns whether every message has a time of one clock. A message without a time takes that of the
 * message before. */
static bool comparable(struct explanation *e)
{
	const struct when *last = NULL;

	for (size_t i = 0; i < e->count; i++) {
		struct when *when = &e->messages[i].when;

		if (when->clock == WHEN_UNKNOWN && last) {
			when->clock = last->clock;
			when->ns = last->ns;
		}
		if (when->clock == WHEN_UNKNOWN || (last && last->clock != when->clock))
			return false;
		last = when;
	}
	return last != NULL;
}

static bool near(
    const struct explanation *e, const struct explain_message *a, const struct explain_message *b)
{
	if (e->by_time && a->when.ns && b->when.ns)
		return b->when.ns - a->when.ns <= NEAR_NS;
	return b->line - a->line <= NEAR_LINES;
}

/* A failure that the program recovers from right away is a retry, too. */
static void mark_retried(struct explanation *e)
{
	for (size_t i = 0; i < e->count; i++) {
		const struct explain_message *retry = &e->messages[i];

		for (size_t j = i;
		     retry->kind == MESSAGE_RETRY && *retry->known->group && j-- > 0;) {
			struct explain_message *m = &e->messages[j];

			if (strcmp(m->known->group, retry->known->group) == 0 &&
			    m->kind == MESSAGE_FAILURE && retry->line - m->last_line <= RETRY_LINES)
				m->kind = MESSAGE_RETRY;
		}
	}
}

static bool settles(const struct explain_message *m)
{
	return !m->known->fallback && (m->kind == MESSAGE_FAILURE || m->kind == MESSAGE_RETRY ||
					  m->kind == MESSAGE_NOT_MEMORY);
}

/* What a program that is not known says counts only where no known message tells how it went. */
static void drop_fallbacks(struct explanation *e)
{
	size_t kept = 0;
	bool settled = false, others = false;

	for (size_t i = 0; i < e->count; i++)
		settled |= settles(&e->messages[i]);
	for (size_t i = 0; i < e->count; i++)
		others |= !e->messages[i].known->fallback && e->messages[i].kind != MESSAGE_CONTEXT;
	for (size_t i = 0; i < e->count; i++) {
		bool hint = e->messages[i].kind == MESSAGE_HINT;

		if ((settled || (hint && others)) && e->messages[i].known->fallback)
			fields_free(&e->messages[i].fields);
		else
			e->messages[kept++] = e->messages[i];
	}
	e->count = kept;
}

/* Some messages are a part of a report whose end tells the failure; without that end they do. */
static void promote(struct explanation *e)
{
	for (size_t i = 0; i < e->count; i++)
		if (e->messages[i].kind == MESSAGE_FAILURE)
			return;
	for (size_t i = 0; i < e->count; i++)
		if (e->messages[i].known->alone != MESSAGE_KIND_COUNT)
			e->messages[i].kind = e->messages[i].known->alone;
}

/* Sorts by time if all times come from one clock, else keeps the log's order; then numbers the
 * events. */
static void order(struct explanation *e)
{
	const struct explain_message *last = NULL;
	unsigned event = 0;

	fill_years(e);
	e->by_time = comparable(e);
	if (e->by_time)
		qsort(e->messages, e->count, sizeof(*e->messages), by_time);
	mark_retried(e);
	for (size_t i = 0; i < e->count; i++) {
		struct explain_message *m = &e->messages[i];

		if (m->kind != MESSAGE_FAILURE) {
			m->event = event;
			continue;
		}
		if (!last || !near(e, last, m))
			event++;
		m->event = event;
		last = m;
	}
}

/* --- one verdict from all messages --- */

/* A verdict with less confidence, or with a smaller lead, is "unknown". */
TUNED(double, DECIDED, 0.5, "a cause that is as likely as all others together");
TUNED(double, MARGIN, 0.05, "closer candidates change places with one more message");
TUNED(double, CONFIDENCE_MAX, 0.95, "a log is not a recording");
TUNED(double, RUNNER_UP_MIN, 0.1, "less is not worth the reader's time");

/* The weight of a message by its kind and time. */
TUNED(double, LATER, 0.4, "a failure after the first may have another cause, or follow from it");
TUNED(double, CONTEXT, 0.6, "sizes and warnings before the failure often show its cause");
TUNED(double, HINT, 0.3, "as often about something else as about memory");

/* An undecided verdict advises for the causes that it names, in few lines. */
#define LIKELY_CAUSES 2u
#define LIKELY_FIXES 2u

TUNED(double, NOT_MEMORY, 0.8, "the only message is known to be about something else");
TUNED(double, RECOVERED, 0.7, "the program says that it went on, and the log may end too early");

static const char *keep(struct explanation *e, const struct str *s)
{
	return s->failed ? NULL : arena_copy(&e->arena, str_text(s), s->length);
}

/* Returns the message of the same group that has the field, the nearest one above or else below, or
 * NULL. */
static const struct explain_message *beside(
    const struct explanation *e, const struct explain_message *m, const char *field)
{
	const struct explain_message *found = NULL;

	for (size_t i = 0; i < e->count && *m->known->group; i++) {
		const struct explain_message *other = &e->messages[i];

		if (other == m || strcmp(m->known->group, other->known->group) != 0 ||
		    !fields_find(&other->fields, field))
			continue;
		if (other > m)
			return found ? found : other;
		found = other;
	}
	return found;
}

static int judge_message(struct explanation *e, struct explain_message *m, struct votes *votes)
{
	struct str words = {0};
	int rc = device_derive(m);

	*votes = (struct votes){0};
	if (!host_pool_was_full(m, beside(e, m, "in_use_bytes"), &words))
		vote_of_message(m, votes, &words);
	/* The numbers say more than the kind of message. */
	if (!words.length)
		meaning_write(&words, m->known->meaning, &m->fields);
	m->meaning = keep(e, &words);
	m->advice = votes->advice;
	if (votes->count && votes->list[0].confidence >= DECIDED) {
		m->cause = votes->list[0].cause;
		m->confidence = votes->list[0].confidence;
	}
	str_free(&words);
	return rc || !m->meaning ? -ENOMEM : 0;
}

static double weight(const struct explain_message *m, unsigned first_event)
{
	switch (m->kind) {
	case MESSAGE_FAILURE:
		return m->event == first_event ? 1 : LATER;
	case MESSAGE_WARNING:
	case MESSAGE_CONTEXT:
		return m->event <= first_event ? CONTEXT : LATER;
	case MESSAGE_HINT:
		return HINT;
	case MESSAGE_RETRY:
	case MESSAGE_CONSEQUENCE:
	case MESSAGE_NOT_MEMORY:
	case MESSAGE_KIND_COUNT:
		break;
	}
	return 0;
}

static bool any(const struct explanation *e, enum message_kind kind)
{
	for (size_t i = 0; i < e->count; i++)
		if (e->messages[i].kind == kind)
			return true;
	return false;
}

/* The same words from several lines are one claim. */
static bool said_before(const struct explanation *e, size_t index)
{
	for (size_t i = 0; i < index; i++)
		if (e->messages[i].voted && e->messages[i].known == e->messages[index].known)
			return true;
	return false;
}

static void add_fix(struct explanation *e, const char *for_, const char *setting, const char *text)
{
	for (size_t i = 0; i < e->verdict.fix_count; i++)
		if (strcmp(e->verdict.fixes[i].text, text) == 0)
			return;
	if (e->verdict.fix_count < EXPLAIN_FIXES_MAX)
		e->verdict.fixes[e->verdict.fix_count++] =
		    (struct explain_fix){for_, setting, text};
}

static bool is_overruled(const struct explanation *e, const char *setting)
{
	for (size_t i = 0; i < e->count; i++)
		for (size_t n = 0; n < e->messages[i].known->overrule_count; n++)
			if (strcmp(e->messages[i].known->overrules[n], setting) == 0)
				return true;
	return false;
}

/* Adds the fixes for the framework of a message, or of its caller. */
static void add_framework_fixes(struct explanation *e, const struct knowledge *knowledge,
    const struct explain_message *m, const struct knowledge_framework *framework, enum role role)
{
	const struct knowledge_fix *fixes[EXPLAIN_FIXES_MAX];
	size_t count;

	if (!framework)
		return;
	count =
	    knowledge_fixes(knowledge, framework, e->verdict.cause, role, fixes, EXPLAIN_FIXES_MAX);
	for (size_t i = 0; i < count; i++)
		if (knowledge_fix_applies(fixes[i], m->known->space) &&
		    !is_overruled(e, fixes[i]->setting))
			add_fix(e, framework->name, fixes[i]->setting, fixes[i]->text);
}

/* Where nothing decides between the likeliest causes: what would help against each, and against
 * which. */
static int collect_likely_fixes(
    struct explanation *e, const struct knowledge *knowledge, const struct votes *votes)
{
	const struct knowledge_message *known = e->messages[e->verdict.message].known;
	const struct knowledge_fix *fixes[LIKELY_FIXES];

	for (size_t v = 0; v < votes->count && v < LIKELY_CAUSES; v++) {
		size_t count = knowledge_fixes(knowledge, known->framework, votes->list[v].cause,
		    ROLE_NONE, fixes, LIKELY_FIXES);

		for (size_t i = 0; i < count; i++) {
			struct str words = {0};
			const char *text;

			if (!knowledge_fix_applies(fixes[i], known->space) ||
			    is_overruled(e, fixes[i]->setting))
				continue;
			str_printf(&words, "If it is %s: %s", cause_name(votes->list[v].cause),
			    fixes[i]->text);
			text = keep(e, &words);
			str_free(&words);
			if (!text)
				return -ENOMEM;
			add_fix(e, known->framework->name, fixes[i]->setting, text);
		}
	}
	return 0;
}

/* Adds the fixes message by message: its own, those for its caller, its framework and the cause. */
static void collect_fixes(struct explanation *e, const struct knowledge *knowledge)
{
	enum cause cause = e->verdict.cause;
	const struct explain_message *decides =
	    e->verdict.message != SIZE_MAX ? &e->messages[e->verdict.message] : NULL;

	if (decides && decides->advice) {
		add_fix(e, decides->known->from, "", decides->advice);
		return;
	}
	for (size_t i = 0; i < e->count; i++) {
		const struct explain_message *m = &e->messages[i];
		/* What a message advises by itself holds whatever the cause. */
		bool speaks = (m->cause && m->cause == cause) || i == e->verdict.message ||
			      (decides && !cause && m->kind == MESSAGE_FAILURE &&
				  m->event == decides->event && !m->known->fallback);

		for (size_t n = 0; speaks && n < m->known->fix_count; n++)
			add_fix(e, m->known->from, "", m->known->fixes[n]);
	}
	for (size_t i = 0; i < e->count; i++) {
		const struct traceback *t = &e->messages[i].traceback;

		for (int role = ROLE_COUNT - 1; role > ROLE_NONE; role--)
			add_framework_fixes(e, knowledge, &e->messages[i], t->roles[role].framework,
			    (enum role)role);
		add_framework_fixes(
		    e, knowledge, &e->messages[i], t->framework.framework, ROLE_NONE);
	}
	for (size_t i = 0; i < e->count; i++)
		if (e->messages[i].kind == MESSAGE_FAILURE || i == e->verdict.message)
			add_framework_fixes(e, knowledge, &e->messages[i],
			    e->messages[i].known->framework, ROLE_NONE);
}

/* What helps wherever that memory ran out, for a message that has no advice of its own. */
static void add_common_fixes(struct explanation *e, const struct knowledge *knowledge)
{
	const struct knowledge_message *const *messages;
	size_t count = knowledge_messages(knowledge, &messages);
	const struct explain_message *m = &e->messages[e->verdict.message];
	const char *space = *m->known->space ? m->known->space : "host";

	if (m->kind == MESSAGE_HINT)
		space = "sigkill";

	for (size_t i = 0; i < count; i++)
		for (size_t n = 0; messages[i]->claim && strcmp(messages[i]->claim, space) == 0 &&
				   n < messages[i]->fix_count;
		     n++)
			add_fix(e, m->known->from, "", messages[i]->fixes[n]);
}

static bool names_a_size(const struct explain_message *m)
{
	return fields_find(&m->fields, "requested_bytes") || fields_find(&m->fields, "anon_bytes");
}

/* Failures of one event and group get more telling from line to line; those that name a size tell
 * more than others. */
static size_t most_telling(const struct explanation *e, size_t first)
{
	const struct explain_message *m = &e->messages[first];
	size_t last = first;

	for (size_t i = first + 1; *m->known->group && i < e->count; i++)
		if (e->messages[i].kind == MESSAGE_FAILURE && e->messages[i].event == m->event &&
		    strcmp(e->messages[i].known->group, m->known->group) == 0 &&
		    (names_a_size(&e->messages[i]) || !names_a_size(&e->messages[last])))
			last = i;
	return last;
}

/* Returns the message that the verdict rests on: the first one of the first failure that supports
 * the cause. */
static size_t rests_on(const struct explanation *e, enum cause cause)
{
	size_t failure = SIZE_MAX, other = SIZE_MAX;

	for (size_t i = 0; i < e->count; i++) {
		const struct explain_message *m = &e->messages[i];

		if (m->cause && cause && m->cause == cause) {
			if (m->kind == MESSAGE_FAILURE)
				return i;
			if (other == SIZE_MAX)
				other = i;
		}
		if (failure == SIZE_MAX && m->kind == MESSAGE_FAILURE)
			failure = i;
	}
	if (other != SIZE_MAX)
		return other;
	return failure != SIZE_MAX ? most_telling(e, failure) : SIZE_MAX;
}

/* A refusal that the program got over may be where it began; or, for what is no certain failure of
 * memory, one of something else. */
static void say_what_was_before(const struct explanation *e, enum message_kind other, struct str *s)
{
	for (size_t i = e->verdict.message; i != SIZE_MAX && i-- > 0;) {
		const struct explain_message *m = &e->messages[i];

		if ((m->known->kind == MESSAGE_RETRY || m->known->kind == other) &&
		    near(e, m, &e->messages[e->verdict.message])) {
			str_printf(s, " Before that: %s", m->meaning);
			return;
		}
	}
}

static void undecided(struct explanation *e, const struct votes *votes, struct str *s)
{
	e->verdict.cause = CAUSE_UNKNOWN;
	e->verdict.confidence = 0;
	e->verdict.message = rests_on(e, CAUSE_UNKNOWN);
	if (e->verdict.message != SIZE_MAX)
		str_puts(s, e->messages[e->verdict.message].meaning);
	say_what_was_before(e, MESSAGE_RETRY, s);
	str_printf(s, "%sThe text alone does not decide the cause", str_text(s)[0] ? " " : "");
	if (votes->count) {
		e->verdict.runner_up = votes->list[0].cause;
		e->verdict.runner_up_confidence = votes->list[0].confidence;
		str_printf(s, ": %s", cause_name(votes->list[0].cause));
		if (votes->count > 1)
			str_printf(s, " or %s", cause_name(votes->list[1].cause));
		str_puts(s, votes->count > 1 ? " are the likeliest" : " is the likeliest");
	}
	str_puts(s, ".");
	e->verdict.next = "Run it under `whyoom run -- COMMAND`: the recording shows what filled "
			  "the memory, and when.";
}

static void decided(struct explanation *e, const struct votes *votes, struct str *s)
{
	const struct vote *winner = &votes->list[0];
	const char *function;

	e->verdict.cause = winner->cause;
	e->verdict.confidence =
	    winner->confidence < CONFIDENCE_MAX ? winner->confidence : CONFIDENCE_MAX;
	if (votes->count > 1 && votes->list[1].confidence >= RUNNER_UP_MIN) {
		e->verdict.runner_up = votes->list[1].cause;
		e->verdict.runner_up_confidence = votes->list[1].confidence;
	}
	e->verdict.message = rests_on(e, winner->cause);
	/* The log's other messages may show why, but the failure comes first. */
	if (e->messages[e->verdict.message].kind != MESSAGE_FAILURE)
		str_printf(s, "%s ", e->messages[rests_on(e, CAUSE_UNKNOWN)].meaning);
	str_puts(s, e->messages[e->verdict.message].meaning);
	function = vote_function_of(&e->messages[e->verdict.message].traceback, winner->cause);
	if (function)
		str_printf(s, " By the traceback, it was asked for in %s.", function);
}

/* Returns the first message of the kinds; SIZE_MAX: there is none. */
static size_t first_of(const struct explanation *e, enum message_kind a, enum message_kind b)
{
	for (size_t i = 0; i < e->count; i++)
		if (e->messages[i].kind == a || e->messages[i].kind == b)
			return i;
	return SIZE_MAX;
}

/* No message is about a failure, and none says that nothing failed. */
static void uncertain(struct explanation *e, struct str *s)
{
	size_t i = first_of(e, MESSAGE_HINT, MESSAGE_CONSEQUENCE);

	if (i != SIZE_MAX) {
		str_puts(s, "No message says for certain that memory ran out.");
	} else {
		str_puts(s, "No message says what failed.");
		i = first_of(e, MESSAGE_WARNING, MESSAGE_WARNING);
	}
	if (i == SIZE_MAX)
		i = first_of(e, MESSAGE_CONTEXT, MESSAGE_CONTEXT);
	if (i == SIZE_MAX)
		return;
	e->verdict.message = i;
	str_printf(s, " %s", e->messages[i].meaning);
	say_what_was_before(e, MESSAGE_NOT_MEMORY, s);
}

static void recovered(struct explanation *e, struct str *s)
{
	e->verdict.cause = CAUSE_HEALTHY;
	e->verdict.confidence = RECOVERED;
	str_puts(s, "The log has no failure: the program went on.");
	for (size_t i = e->count; i-- > 0;)
		if (e->messages[i].known->kind == MESSAGE_RETRY) {
			e->verdict.message = i;
			str_printf(s, " %s", e->messages[i].meaning);
			return;
		}
}

static void no_failure(struct explanation *e, struct str *s)
{
	bool doubt = any(e, MESSAGE_HINT) || any(e, MESSAGE_CONSEQUENCE);

	e->verdict.cause = CAUSE_UNKNOWN;
	e->verdict.message = SIZE_MAX;
	if (any(e, MESSAGE_NOT_MEMORY) && !doubt && !any(e, MESSAGE_WARNING)) {
		e->verdict.message = first_of(e, MESSAGE_NOT_MEMORY, MESSAGE_NOT_MEMORY);
		e->verdict.cause = CAUSE_HEALTHY;
		e->verdict.confidence = NOT_MEMORY;
		str_printf(s, "No memory ran out. %s", e->messages[e->verdict.message].meaning);
	} else if (any(e, MESSAGE_RETRY) && !doubt) {
		recovered(e, s);
	} else if (e->count) {
		uncertain(e, s);
	} else {
		str_puts(s, "No known message about running out of memory was found.");
	}
	if (e->verdict.cause == CAUSE_UNKNOWN)
		e->verdict.next =
		    "Look for how the process ended (its last lines, `dmesg`, `kubectl describe "
		    "pod`), or run it under `whyoom run -- COMMAND`.";
}

static unsigned first_event(const struct explanation *e)
{
	for (size_t i = 0; i < e->count; i++)
		if (e->messages[i].kind == MESSAGE_FAILURE)
			return e->messages[i].event;
	return 0;
}

/* Adds the limit of the cgroup, which the kernel prints above its kill. */
static int add_limit(struct explanation *e, struct explain_message *kill)
{
	const struct explain_message *usage = beside(e, kill, "limit_bytes");
	const struct field *scope = fields_find(&kill->fields, "scope");
	uint64_t limit, used;
	struct str words = {0};
	struct fmt a, b;

	if (!usage || usage > kill || !scope || scope->type != FIELD_TEXT ||
	    !strstr(scope->text, "cgroup") ||
	    !fields_bytes(&usage->fields, "limit_bytes", &limit) ||
	    !fields_bytes(&usage->fields, "usage_bytes", &used))
		return 0;
	str_printf(&words, "%s The cgroup held %s of its limit of %s.", kill->meaning,
	    fmt_size(&a, used), fmt_size(&b, limit));
	kill->meaning = keep(e, &words);
	str_free(&words);
	return kill->meaning ? 0 : -ENOMEM;
}

/* Judges kills whose table of tasks is in the log, too. */
static int judge_kills(struct explanation *e, struct votes *all)
{
	for (size_t i = 0; i < e->count; i++) {
		struct explain_message *kill = &e->messages[i];
		const struct explain_message *table = beside(e, kill, "tasks");
		struct str words = {0};
		enum cause cause;

		if (kill->kind != MESSAGE_FAILURE || kill->cause)
			continue;
		if (add_limit(e, kill))
			return -ENOMEM;
		if (!table)
			continue;
		cause = host_vote_of_kill(kill, table, beside(e, kill, "shmem_bytes"), all, &words);
		if (cause) {
			kill->cause = cause;
			kill->confidence = HOST_VOTE_OF_TABLE;
			kill->meaning = keep(e, &words);
		}
		str_free(&words);
		if (!kill->meaning)
			return -ENOMEM;
	}
	return 0;
}

/* Returns the memory of the largest killed process; 0: no kill, or not said. */
static uint64_t killed_bytes(const struct explanation *e)
{
	uint64_t most = 0, bytes;

	for (size_t i = 0; i < e->count; i++)
		if (e->messages[i].kind == MESSAGE_FAILURE &&
		    fields_bytes(&e->messages[i].fields, "anon_bytes", &bytes) && bytes > most)
			most = bytes;
	return most;
}

/* A store that says its size is the cause as likely as its share of the killed process's memory. */
static double confidence_of(
    const struct explain_message *m, double w, double confidence, uint64_t killed)
{
	uint64_t held;

	if (m->kind != MESSAGE_CONTEXT || !killed || !fields_bytes(&m->fields, "held_bytes", &held))
		return w * confidence;
	return held < killed ? (double)held / (double)killed : 1;
}

/* Judges all messages: fills cause and meaning of each, the ledger and the verdict. 0 or -ENOMEM.
 */
static int judge(struct explanation *e, const struct knowledge *knowledge)
{
	struct votes all = {0}, votes;
	unsigned first = first_event(e);
	uint64_t killed = killed_bytes(e);
	struct str summary = {0};

	for (size_t i = 0; i < e->count; i++) {
		double w = weight(&e->messages[i], first);

		if (judge_message(e, &e->messages[i], &votes))
			return -ENOMEM;
		if (said_before(e, i) || w <= 0)
			votes.count = 0;
		e->messages[i].voted = votes.count > 0;
		for (size_t v = 0; v < votes.count; v++) {
			const struct vote *vote = &votes.list[v];
			double sure = confidence_of(&e->messages[i], w, vote->confidence, killed);

			votes_combine(&all, vote->cause, sure);
			if (!e->messages[i].cause && sure >= DECIDED) {
				e->messages[i].cause = vote->cause;
				e->messages[i].confidence = sure;
			}
		}
	}
	if (judge_kills(e, &all))
		return -ENOMEM;
	votes_sort(&all);
	if (!any(e, MESSAGE_FAILURE))
		no_failure(e, &summary);
	else if (!all.count || all.list[0].confidence < DECIDED ||
		 (all.count > 1 && all.list[0].confidence - all.list[1].confidence < MARGIN))
		undecided(e, &all, &summary);
	else
		decided(e, &all, &summary);
	if (e->verdict.message != SIZE_MAX)
		device_ledger(&e->messages[e->verdict.message], &e->ledger);
	for (size_t i = 0; i < e->count && !e->ledger.row_count; i++)
		device_ledger(&e->messages[i], &e->ledger);
	collect_fixes(e, knowledge);
	if (!e->verdict.cause && !e->verdict.fix_count && e->verdict.message != SIZE_MAX &&
	    any(e, MESSAGE_FAILURE) && collect_likely_fixes(e, knowledge, &all))
		return -ENOMEM;
	if (!e->verdict.fix_count && e->verdict.message != SIZE_MAX &&
	    (any(e, MESSAGE_FAILURE) || e->messages[e->verdict.message].kind == MESSAGE_HINT))
		add_common_fixes(e, knowledge);
	e->verdict.summary = keep(e, &summary);
	str_free(&summary);
	return e->verdict.summary ? 0 : -ENOMEM;
}

/* --- the log --- */

static int finish(struct scan *scan, const struct knowledge *knowledge, struct explanation *out)
{
	int rc = scan_end(scan);

	if (rc)
		return rc;
	drop_fallbacks(out);
	promote(out);
	order(out);
	return judge(out, knowledge);
}

static int fail(int rc, struct explanation *out, struct err *err)
{
	explain_fini(out);
	return rc == -ENOMEM ? err_set(err, rc, "no memory to read the log") : rc;
}

int explain_stream(
    FILE *in, const struct knowledge *knowledge, struct explanation *out, struct err *err)
{
	struct scan *scan = NULL;
	char *piece = malloc(PIECE);
	uint64_t read = 0;
	struct stat st;
	size_t n;
	int rc;

	*out = (struct explanation){0};
	rc = piece ? scan_new(knowledge, out, &scan, err) : -ENOMEM;
	/* A pipe's length is unknown. */
	progress_begin("reading the log",
	    !fstat(fileno(in), &st) && S_ISREG(st.st_mode) ? (uint64_t)st.st_size : 0);
	while (!rc && (n = fread(piece, 1, PIECE, in)) > 0) {
		rc = scan_feed(scan, piece, n);
		progress_step(read += n);
	}
	progress_end();
	if (!rc && ferror(in))
		rc = err_set(err, errno ? -errno : -EIO, "cannot read the log: %s",
		    strerror(errno ? errno : EIO));
	if (!rc)
		rc = finish(scan, knowledge, out);
	scan_free(scan);
	free(piece);
	return rc ? fail(rc, out, err) : 0;
}

int explain_buffer(const char *text, size_t bytes, const struct knowledge *knowledge,
    struct explanation *out, struct err *err)
{
	struct scan *scan = NULL;
	int rc;

	*out = (struct explanation){0};
	rc = scan_new(knowledge, out, &scan, err);
	if (!rc)
		rc = scan_feed(scan, text, bytes);
	if (!rc)
		rc = finish(scan, knowledge, out);
	scan_free(scan);
	return rc ? fail(rc, out, err) : 0;
}

void explain_fini(struct explanation *e)
{
	for (size_t i = 0; i < e->count; i++)
		fields_free(&e->messages[i].fields);
	free(e->messages);
	arena_free(&e->arena);
	*e = (struct explanation){0};
}
