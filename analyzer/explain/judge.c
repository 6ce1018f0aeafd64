/* judge.c - see judge.h. */
#include "explain/judge.h"

#include <errno.h>
#include <string.h>

#include "explain/advice.h"
#include "explain/device.h"
#include "explain/host.h"
#include "explain/meaning.h"
#include "explain/story.h"
#include "util/text/fmt.h"
#include "util/tuned.h"

/* A verdict with less confidence, or with a smaller lead, is "unknown". */
TUNED(double, DECIDED, 0.5, "a cause that is as likely as all others together");
TUNED(double, MARGIN, 0.05, "closer candidates change places with one more message");
TUNED(double, CONFIDENCE_MAX, 0.95, "a log is not a recording");
TUNED(double, RUNNER_UP_MIN, 0.1, "less is not worth the reader's time");

/* The weight of a message by its kind and time. */
TUNED(double, LATER, 0.4, "a failure after the first may have another cause, or follow from it");
TUNED(double, CONTEXT, 0.6, "sizes and warnings before the failure often show its cause");
TUNED(double, HINT, 0.3, "as often about something else as about memory");

TUNED(double, NOT_MEMORY, 0.8, "the only message is known to be about something else");
TUNED(double, RECOVERED, 0.7, "the program says that it went on, and the log may end too early");

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
	m->meaning = advice_keep(e, &words);
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

/* The same words from several lines are one claim. */
static bool said_before(const struct explanation *e, size_t index)
{
	for (size_t i = 0; i < index; i++)
		if (e->messages[i].voted && e->messages[i].known == e->messages[index].known)
			return true;
	return false;
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
		    story_near(e, m, &e->messages[e->verdict.message])) {
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

	/* A hint that knows what to do says more than one that does not. */
	for (size_t k = i; k != SIZE_MAX && k < e->count && !e->messages[i].known->fix_count; k++)
		if (e->messages[k].kind == MESSAGE_HINT && e->messages[k].known->fix_count)
			i = k;
	if (i != SIZE_MAX) {
		str_puts(s, "No message says for certain that memory ran out.");
	} else {
		i = first_of(e, MESSAGE_WARNING, MESSAGE_WARNING);
		str_puts(s, i != SIZE_MAX ? "The log warns, and no message says that it failed."
					  : "No message says what failed.");
	}
	if (i == SIZE_MAX)
		i = first_of(e, MESSAGE_CONTEXT, MESSAGE_CONTEXT);
	if (i == SIZE_MAX)
		return;
	e->verdict.message = i;
	str_printf(s, " %s", e->messages[i].meaning);
	say_what_was_before(e, MESSAGE_NOT_MEMORY, s);
	if (e->messages[i].kind == MESSAGE_WARNING && e->messages[i].known->cause_count) {
		e->verdict.runner_up = e->messages[i].known->causes[0].cause;
		e->verdict.runner_up_confidence = e->messages[i].known->causes[0].confidence;
		str_printf(s, " Should it fail, %s is the likeliest cause.",
		    cause_name(e->verdict.runner_up));
	}
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

/* A message of the same group may say that it is no lack of memory. */
static bool any_unexplained_hint(const struct explanation *e)
{
	for (size_t i = 0; i < e->count; i++) {
		const struct explain_message *m = &e->messages[i];
		bool explained = false;

		for (size_t k = 0; k < e->count && *m->known->group && !explained; k++)
			explained = e->messages[k].kind == MESSAGE_NOT_MEMORY &&
				    strcmp(e->messages[k].known->group, m->known->group) == 0;
		if (m->kind == MESSAGE_HINT && !explained)
			return true;
	}
	return false;
}

static void no_failure(struct explanation *e, struct str *s)
{
	bool doubt = any_unexplained_hint(e) || story_has(e, MESSAGE_CONSEQUENCE);

	e->verdict.cause = CAUSE_UNKNOWN;
	e->verdict.message = SIZE_MAX;
	if (story_has(e, MESSAGE_NOT_MEMORY) && !doubt && !story_has(e, MESSAGE_WARNING)) {
		e->verdict.message = first_of(e, MESSAGE_NOT_MEMORY, MESSAGE_NOT_MEMORY);
		e->verdict.cause = CAUSE_HEALTHY;
		e->verdict.confidence = NOT_MEMORY;
		str_printf(s, "No memory ran out. %s", e->messages[e->verdict.message].meaning);
	} else if (story_has(e, MESSAGE_RETRY) && !doubt) {
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
	kill->meaning = advice_keep(e, &words);
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
			kill->meaning = advice_keep(e, &words);
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
int judge_log(struct explanation *e, const struct knowledge *knowledge)
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
	if (!story_has(e, MESSAGE_FAILURE))
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
	if (advice_collect(e, knowledge, &all))
		return -ENOMEM;
	e->verdict.summary = advice_keep(e, &summary);
	str_free(&summary);
	return e->verdict.summary ? 0 : -ENOMEM;
}
