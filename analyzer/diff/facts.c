/* facts.c - settings, versions, limits, ledgers, requests and phases of both sides, side by side.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "diff/compare.h"
#include "util/num.h"
#include "verdict/device/device.h"

typedef VEC(struct diff_fact) facts_t;

static const char *const kinds[] = {"limit", "setting", "version", "ledger", "requests", "phase"};

const char *diff_fact_kind_name(enum diff_fact_kind kind)
{
	return kinds[kind];
}

/* Return the kind of an INFO; -1: it describes one run alone, as a path does, and is left out. */
static int kind_of_info(const char *key)
{
	static const char *const versions[] = {
	    "python", "libc", "kernel", "whyoom.version", "cuda.driver"};
	static const char *const settings[] = {"malloc.owner", "options", "torch.blocks",
	    "cgroup.version", "python.tasks", "sampled.every", "sampled.exact_from"};

	if (strncmp(key, "limit.", 6) == 0 || strcmp(key, "cgroup.max") == 0)
		return DIFF_LIMIT;
	/* How we are loaded ourselves. */
	if (strncmp(key, "env.", 4) == 0)
		return strcmp(key, "env.LD_PRELOAD") ? DIFF_SETTING : -1;
	for (size_t i = 0; i < sizeof(versions) / sizeof(*versions); i++)
		if (strcmp(key, versions[i]) == 0)
			return DIFF_VERSION;
	for (size_t i = 0; i < sizeof(settings) / sizeof(*settings); i++)
		if (strcmp(key, settings[i]) == 0)
			return DIFF_SETTING;
	return -1;
}

/* Return the recorder's options without the folder and the number of the run. NULL: no memory. */
static const char *lasting(const char *key, const char *value, struct arena *arena)
{
	struct str text = {0};

	if (!value || strcmp(key, "options") != 0)
		return value;
	for (const char *p = value; *p;) {
		size_t n = strcspn(p, " ");

		if (strncmp(p, "WHYOOM_DIR=", 11) != 0 && strncmp(p, "WHYOOM_TREE=", 12) != 0) {
			str_puts(&text, text.length ? " " : "");
			str_add(&text, p, n);
		}
		p += n + (p[n] == ' ');
	}
	value = text.failed ? NULL : arena_copy(arena, str_text(&text), text.length);
	str_free(&text);
	return value;
}

static int infos_read(const struct diff_sides *sides, struct arena *arena, facts_t *out)
{
	const struct trace *a = sides->a.trace, *b = sides->b.trace;
	const char *key, *value;

	for (size_t i = 0; trace_info_at(b, i, &key, &value); i++) {
		int kind = kind_of_info(key);

		if (kind >= 0 && vec_push(out, (struct diff_fact){.kind = (enum diff_fact_kind)kind,
						   .name = key,
						   .a = lasting(key, trace_info(a, key), arena),
						   .b = lasting(key, value, arena)}))
			return -ENOMEM;
	}
	for (size_t i = 0; trace_info_at(a, i, &key, &value); i++) {
		int kind = kind_of_info(key);

		if (kind >= 0 && !trace_info(b, key) &&
		    vec_push(out, (struct diff_fact){
				      .kind = (enum diff_fact_kind)kind, .name = key, .a = value}))
			return -ENOMEM;
	}
	return 0;
}

/* Set one side's number of a fact, which may be there already. */
static int number(facts_t *out, struct diff_fact like, bool second, int64_t value)
{
	struct diff_fact *f = NULL;

	for (size_t i = 0; i < out->count && !f; i++)
		if (out->items[i].number && out->items[i].kind == like.kind &&
		    str_same(out->items[i].name, like.name) &&
		    str_same(out->items[i].space, like.space))
			f = &out->items[i];
	if (!f) {
		like.number = true;
		if (vec_push(out, like))
			return -ENOMEM;
		f = &out->items[out->count - 1];
	}
	*(second ? &f->b_known : &f->a_known) = true;
	*(second ? &f->b_value : &f->a_value) = value;
	return 0;
}

static int ledger_read(const struct ledger *l, bool second, facts_t *out)
{
	const char *space = l->space ? l->space : "host";
	struct diff_fact fact = {.kind = DIFF_LEDGER, .space = space, .is_bytes = true};
	int rc = 0;

	if (!l->row_count)
		return 0;
	if (l->limit_bytes && l->limit != LIMIT_NONE) {
		fact.kind = DIFF_LIMIT;
		fact.name = limit_kind_name(l->limit);
		rc = number(out, fact, second, (int64_t)l->limit_bytes);
		fact.kind = DIFF_LEDGER;
	}
	for (uint32_t i = 0; i < l->row_count && !rc; i++) {
		fact.name = l->rows[i].class;
		rc = number(out, fact, second, (int64_t)l->rows[i].bytes);
	}
	fact.name = "unaccounted";
	return rc ? rc : number(out, fact, second, l->unaccounted);
}

static int side_facts(const struct side *s, bool second, facts_t *out)
{
	const struct verdict_result *r = &s->verdict;
	struct diff_fact fact = {.kind = DIFF_REQUESTS};
	int rc = ledger_read(&r->ledger, second, out);

	for (size_t i = 0; i < r->devices.count && !rc; i++)
		if (&r->devices.list[i].ledger != &r->ledger &&
		    !str_same(r->devices.list[i].ledger.space, r->ledger.space))
			rc = ledger_read(&r->devices.list[i].ledger, second, out);
	if (!rc && s->requests.begun) {
		static const char *const names[] = {
		    "begun", "finished", "at once", "largest finished"};
		const uint64_t values[] = {s->requests.begun, s->requests.finished,
		    s->requests.at_once, s->requests.largest};

		for (size_t i = 0; i < 4 && !rc; i++) {
			fact.name = names[i];
			fact.is_bytes = i == 3;
			rc = number(out, fact, second, (int64_t)values[i]);
		}
		for (size_t i = 0; i < s->space_count && !rc && s->marks; i++) {
			const struct side_space *space = s->spaces[i];

			if (!space->requests)
				continue;
			fact.is_bytes = true;
			fact.space = space->name;
			fact.name = "acquired each";
			rc = number(
			    out, fact, second, (int64_t)(space->sum.then.total / space->requests));
		}
	}
	fact = (struct diff_fact){.kind = DIFF_PHASE, .is_bytes = true};
	for (uint32_t i = 0; i < r->flow.phases.count && !rc; i++) {
		fact.name = r->flow.phases.list[i].name;
		if (fact.name)
			rc = number(out, fact, second, (int64_t)r->flow.phases.list[i].live_bytes);
	}
	return rc;
}

int facts_read(const struct diff_sides *sides, struct diff_result *out)
{
	facts_t facts = {0};
	int rc = infos_read(sides, &out->arena, &facts);

	if (!rc)
		rc = side_facts(&sides->a, false, &facts);
	if (!rc)
		rc = side_facts(&sides->b, true, &facts);
	out->facts = facts.items;
	out->fact_count = facts.count;
	return rc;
}

/* A ledger's row moves with each run: by a hundredth of all at least. */
bool diff_fact_differs(const struct diff_result *r, const struct diff_fact *f)
{
	uint64_t apart, whole = 0;

	if (!f->number)
		return !str_same(f->a, f->b);
	if (f->a_known != f->b_known && f->kind != DIFF_LEDGER)
		return true;
	apart = (uint64_t)llabs(f->b_value - f->a_value);
	if (f->kind != DIFF_LEDGER)
		return apart != 0;
	for (size_t i = 0; i < r->space_count; i++)
		if (str_same(r->spaces[i].name, f->space ? f->space : "host"))
			whole = num_most(r->spaces[i].a.peak_bytes, r->spaces[i].b.peak_bytes);
	return apart > whole / 100 && apart > 0;
}
