/* advice.c - see advice.h. */
#include "explain/advice.h"

#include <errno.h>
#include <string.h>

#include "explain/meaning.h"
#include "explain/story.h"

/* An undecided verdict advises for the causes that it names, in few lines. */
#define LIKELY_CAUSES 2u
#define LIKELY_FIXES 2u

const char *advice_keep(struct explanation *e, const struct str *s)
{
	return s->failed ? NULL : arena_copy(&e->arena, str_text(s), s->length);
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

/* Adds what helps against a cause, behind words that say when it does. 0 or -ENOMEM. */
static int add_for_cause(struct explanation *e, const struct knowledge *knowledge, enum cause cause,
    const char *when, const char *which)
{
	const struct explain_message *m = &e->messages[e->verdict.message];
	const struct knowledge_message *known = m->known;
	const struct knowledge_framework *framework = m->traceback.framework.framework;
	const struct knowledge_fix *fixes[LIKELY_FIXES];
	size_t count = 0;

	/* The settings of the program that called come before those of the library. */
	if (framework)
		count =
		    knowledge_fixes(knowledge, framework, cause, ROLE_NONE, fixes, LIKELY_FIXES);
	if (!count) {
		framework = known->framework;
		count =
		    knowledge_fixes(knowledge, framework, cause, ROLE_NONE, fixes, LIKELY_FIXES);
	}
	for (size_t i = 0; i < count; i++) {
		struct str words = {0};
		const char *text;

		if (!knowledge_fix_applies(fixes[i], known->space) ||
		    is_overruled(e, fixes[i]->setting))
			continue;
		str_printf(&words, "%s%s: %s", when, which, fixes[i]->text);
		text = advice_keep(e, &words);
		str_free(&words);
		if (!text)
			return -ENOMEM;
		add_fix(e, framework->name, fixes[i]->setting, text);
	}
	return 0;
}

/* Where nothing decides between the likeliest causes: what would help against each, and against
 * which. */
static int collect_likely_fixes(
    struct explanation *e, const struct knowledge *knowledge, const struct votes *votes)
{
	for (size_t v = 0; v < votes->count && v < LIKELY_CAUSES; v++) {
		enum cause cause = votes->list[v].cause;
		int rc = add_for_cause(e, knowledge, cause, "If it is ", cause_name(cause));

		if (rc)
			return rc;
	}
	return 0;
}

/* Adds advice for a program that recovered, or whose memory was nearly full. 0 or -ENOMEM. */
static int collect_later_fixes(struct explanation *e, const struct knowledge *knowledge)
{
	const struct knowledge_message *known = e->messages[e->verdict.message].known;

	return known->cause_count ? add_for_cause(e, knowledge, known->causes[0].cause,
					"Where it happens often", "")
				  : 0;
}

/* What a claim itself says to change comes before anything else. 0 or -ENOMEM. */
static int add_named_settings(struct explanation *e, const struct explain_message *m)
{
	struct str words = {0};
	const char *kept;
	bool raise = fields_find(&m->fields, "raise"), lower = fields_find(&m->fields, "lower");

	if (!raise && !lower && !fields_find(&m->fields, "change"))
		return 0;
	meaning_write(&words,
	    raise && lower ? "As the message says, raise {raise}, or lower {lower}."
	    : raise	   ? "As the message says, raise {raise}."
	    : lower	   ? "As the message says, lower {lower}."
			   : "As the message says, change {change}.",
	    &m->fields);
	kept = advice_keep(e, &words);
	str_free(&words);
	if (!kept)
		return -ENOMEM;
	add_fix(e, m->known->from, "", kept);
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
	/* Advice for the cause is more specific than advice for the space that ran out. */
	if (decides && decides->known->claim && cause)
		add_framework_fixes(e, knowledge, decides, decides->known->framework, ROLE_NONE);
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

/* Adds the advice of the nearest earlier message about something else than memory: that fault may
 * have ended the process. */
static void add_fixes_before(struct explanation *e)
{
	for (size_t i = e->verdict.message; i-- > 0;) {
		const struct explain_message *m = &e->messages[i];

		if (m->kind != MESSAGE_NOT_MEMORY ||
		    !story_near(e, m, &e->messages[e->verdict.message]))
			continue;
		for (size_t n = 0; n < m->known->fix_count; n++)
			add_fix(e, m->known->from, "", m->known->fixes[n]);
		return;
	}
}

static bool is_of_host(const struct explanation *e)
{
	return strcmp(e->messages[e->verdict.message].known->space, "host") == 0;
}

int advice_collect(
    struct explanation *e, const struct knowledge *knowledge, const struct votes *votes)
{
	enum message_kind kind;
	int rc = 0;

	if (e->verdict.message != SIZE_MAX)
		rc = add_named_settings(e, &e->messages[e->verdict.message]);
	if (rc)
		return rc;
	collect_fixes(e, knowledge);
	if (e->verdict.fix_count || e->verdict.message == SIZE_MAX)
		return 0;
	kind = e->messages[e->verdict.message].kind;
	if (story_has(e, MESSAGE_FAILURE) && !e->verdict.cause)
		rc = collect_likely_fixes(e, knowledge, votes);
	else if (kind == MESSAGE_RETRY || kind == MESSAGE_WARNING || kind == MESSAGE_CONTEXT)
		rc = collect_later_fixes(e, knowledge);
	else if (kind == MESSAGE_CONSEQUENCE || kind == MESSAGE_HINT)
		add_fixes_before(e);
	if (!rc && !e->verdict.fix_count &&
	    (story_has(e, MESSAGE_FAILURE) || kind == MESSAGE_WARNING ||
		(kind == MESSAGE_HINT && is_of_host(e))))
		add_common_fixes(e, knowledge);
	return rc;
}
