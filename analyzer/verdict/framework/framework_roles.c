#include "verdict/framework/framework_roles.h"

#include <errno.h>
#include <stdlib.h>

#include "util/tuned.h"

TUNED(uint64_t, STACK_PART, 64,
    "what smaller stacks hold cannot change the role of most bytes of a call site");

#define FRAMEWORKS_MAX 3u /* give advice at a time: more would be no advice */

static enum role role_of(const struct verdict_result *r, uint32_t stack)
{
	return (enum role)framework_stack(r->frameworks.frames, &r->model->feed, stack).role;
}

/* Return a store's role for blocks that are made elsewhere and handed to it: all tables that grew
 * with them belong to stores. */
static enum role role_by_tables(const struct verdict_result *r, const struct callsite *p)
{
	enum role role = p->holders.remembered ? ROLE_CACHE : ROLE_NONE;

	for (uint32_t i = 0; i < p->holders.table_count && !p->holders.remembered; i++) {
		role = role_of(r, p->holders.tables[i]);
		if (!role_is_store(role))
			return ROLE_NONE;
	}
	return role;
}

/* Weigh roles by live bytes: one line may ask for a state and for its snapshots' store. */
static int weigh_roles(const struct verdict_result *r, const struct model *m,
    const struct callsites *callsites, enum role *roles)
{
	uint64_t(*held)[ROLE_COUNT] = calloc(callsites->count + 1u, sizeof(*held));

	if (!held)
		return -ENOMEM;
	for (size_t i = 0; i < m->stacks.count; i++) {
		const struct stack_stats *s = stack_table_number(&m->stacks, i);
		uint64_t live, count;
		uint32_t at = callsites_of_stack(callsites, s->kind, s->stack);

		if (at == CALLSITE_NONE)
			continue;
		model_stack_stats(m, s, callsites->moment, &live, &count);
		if (live > callsites->list[at].facts.live_bytes / STACK_PART)
			held[at][role_of(r, s->stack)] += live;
	}
	for (uint32_t i = 0; i < callsites->count; i++) {
		enum role most = ROLE_NONE, holder;

		for (int role = 0; role < ROLE_COUNT; role++)
			if (held[i][role] > held[i][most])
				most = (enum role)role;
		roles[i] = held[i][most] ? most : role_of(r, callsites->list[i].stack);
		holder =
		    role_is_store(roles[i]) ? ROLE_NONE : role_by_tables(r, &callsites->list[i]);
		if (holder != ROLE_NONE)
			roles[i] = holder;
	}
	free(held);
	return 0;
}

enum role *framework_roles(
    const struct verdict_result *r, const struct model *m, const struct callsites *callsites)
{
	enum role *roles = calloc(callsites->count + 1u, sizeof(*roles));

	if (roles && r->frameworks.frames && weigh_roles(r, m, callsites, roles)) {
		free(roles);
		return NULL;
	}
	return roles;
}

/* Return the first role among the framework's frames from `i` outwards. A frame without a role may
 * be of the user's own folder of the framework's name. */
static enum role role_in(const struct verdict_result *r,
    const struct knowledge_framework *framework, const struct stack_view *stack, size_t i)
{
	for (i++; i-- > 0;) {
		struct knowledge_place callsite =
		    framework_lookup(r->frameworks.knowledge, &stack->symbols[i]);

		if (callsite.framework == framework && callsite.role != ROLE_NONE &&
		    callsite.role != ROLE_ALLOCATOR)
			return callsite.role;
	}
	return ROLE_NONE;
}

/* True unless one thread made all blocks. */
static bool has_threads(const struct verdict_result *r)
{
	const struct requests *all = r->flow.requests;

	for (size_t i = 2; all && i < all->lanes.count; i++)
		if (all->lanes.items[i].thread != all->lanes.items[1].thread)
			return true;
	return !all;
}

/* Pages that were given back still count against these limits. */
static bool counts_addresses(enum limit_kind limit)
{
	return limit == LIMIT_AS || limit == LIMIT_DATA;
}

static void add_fixes(struct verdict_result *r, struct knowledge_place callsite)
{
	const struct knowledge_fix *found[FIXES_MAX];
	const char *space = r->failure.kind == FAILURE_CUDA_OOM ? "device"
			    : r->failure.kind == FAILURE_NONE	? ""
								: "host";
	struct verdict *v = &r->verdict;
	size_t n = knowledge_fixes(
	    r->frameworks.knowledge, callsite.framework, v->cause, callsite.role, found, FIXES_MAX);

	for (size_t k = 0; k < n && v->fix_count < FIXES_MAX; k++)
		if (knowledge_fix_applies(found[k], space) &&
		    (!found[k]->threads || has_threads(r)) &&
		    (!found[k]->resident || !counts_addresses(r->failure.limit)))
			v->fixes[v->fix_count++] =
			    (struct fix){callsite.framework->name, found[k]->text};
}

void framework_malloc_fixes(struct verdict_result *r)
{
	struct symbol malloc_of = {.function = "malloc", .module = r->coverage.malloc_owner};
	struct knowledge_place callsite;

	if (!r->frameworks.knowledge || !malloc_of.module)
		return;
	callsite = framework_lookup(r->frameworks.knowledge, &malloc_of);
	if (callsite.framework)
		add_fixes(r, callsite);
}

/* Add advice for the interpreter's own store; its function may have no name. */
static void remembered_fixes(struct verdict_result *r)
{
	const struct knowledge_framework *python =
	    r->frameworks.knowledge ? knowledge_framework(r->frameworks.knowledge, "python") : NULL;
	uint32_t blame = r->ranking.count ? r->ranking.list[0].finding.blame : CALLSITE_NONE;

	if (python && blame != CALLSITE_NONE && r->callsites->list[blame].holders.remembered)
		add_fixes(r, (struct knowledge_place){ROLE_CACHE, python});
}

struct advice {
	const struct knowledge_framework *given[FRAMEWORKS_MAX];
	size_t count;
};

static bool can_advise(const struct advice *a, const struct knowledge_framework *framework)
{
	for (size_t i = 0; i < a->count; i++)
		if (a->given[i] == framework)
			return false;
	return framework && a->count < FRAMEWORKS_MAX;
}

/* Add advice of the frameworks that serve the process's requests, even without a frame on the
 * stack: they called the program's function, or left the task to the event loop. */
static void serving_fixes(struct verdict_result *r, struct advice *a)
{
	for (size_t i = 0; r->frameworks.frames && i < r->frameworks.frames->symbols.count; i++) {
		struct knowledge_place callsite = framework_looked_at(r->frameworks.frames, i);

		if (!can_advise(a, callsite.framework) || !callsite.framework->serves)
			continue;
		a->given[a->count++] = callsite.framework;
		callsite.role = ROLE_NONE;
		add_fixes(r, callsite);
	}
}

/* A library that merely computes gives advice for any use of it; that is `general`. Frameworks with
 * a role in the stack (the model's call, the history), and those that serve, know more. Innermost
 * first within each group. */
void framework_fixes(struct verdict_result *r, bool general)
{
	const struct stack_view *stack =
	    r->verdict.blame.stack.count ? &r->verdict.blame.stack : &r->failure.stack;
	struct advice advice = {.count = 0};
	size_t frames = r->frameworks.knowledge ? stack->count : 0;

	if (!general)
		remembered_fixes(r);
	for (size_t i = 2 * frames; i-- > 0;) {
		struct knowledge_place callsite =
		    framework_lookup(r->frameworks.knowledge, &stack->symbols[i % frames]);

		if (!can_advise(&advice, callsite.framework))
			continue;
		callsite.role = role_in(r, callsite.framework, stack, i % frames);
		if (callsite.role == ROLE_NONE && i >= frames)
			continue;
		advice.given[advice.count++] = callsite.framework;
		if (general == (callsite.role == ROLE_NONE && !callsite.framework->serves))
			add_fixes(r, callsite);
	}
	if (!general)
		serving_fixes(r, &advice);
}
