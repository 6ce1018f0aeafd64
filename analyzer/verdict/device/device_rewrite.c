#include "verdict/device/device_rewrite.h"

#include <errno.h>
#include <stdlib.h>

#include "util/num.h"

struct device_rule {
	bool set;
	enum rule rule;
	uint64_t value;
	bool beyond_first; /* the value does not include the call site's first block */
	uint64_t first, live; /* in the replay */
};

int device_rewrite_init(
    struct device_rewrite *w, const struct callsites *callsites, const struct caching_settings *as)
{
	*w = (struct device_rewrite){.callsites = callsites, .settings = *as};
	w->rules = calloc(callsites->count + 1u, sizeof(*w->rules));
	return w->rules ? 0 : -ENOMEM;
}

void device_rewrite_fini(struct device_rewrite *w)
{
	free(w->rules);
}

void device_rewrite_rule(
    struct device_rewrite *w, uint32_t callsite, enum rule rule, uint64_t value)
{
	struct device_rule *r = &w->rules[callsite];

	if (r->set && r->rule == RULE_KEEP_BYTES && rule == RULE_KEEP_BYTES && r->value < value)
		return;
	*r = (struct device_rule){.set = true, .rule = rule, .value = value};
}

void device_rewrite_cap(struct device_rewrite *w, uint32_t callsite, uint64_t growth)
{
	struct device_rule *r = &w->rules[callsite];

	if (!r->set)
		*r = (struct device_rule){
		    .set = true, .rule = RULE_KEEP_BYTES, .value = growth, .beyond_first = true};
}

static struct device_rule *rule_of(const struct device_rewrite *w, uint32_t stack)
{
	uint32_t callsite = callsites_of_stack(w->callsites, STACK_STATS_HEAP, stack);

	return callsite == CALLSITE_NONE || !w->rules[callsite].set ? NULL : &w->rules[callsite];
}

static uint64_t kept(struct device_rule *rule, uint64_t size)
{
	uint64_t most = rule->value;

	if (rule->beyond_first) {
		if (!rule->first)
			rule->first = size;
		most = num_sum(rule->first, rule->value);
	}
	if (rule->live >= most)
		return 0;
	return num_least(size, most - rule->live);
}

/* True for the refused request. Where other threads go on until the process ends, the same stack
 * may be refused again: the cause made that request, too. */
static bool is_failed(struct device_rewrite *w, const struct torch_block *b)
{
	if (!b->refused || !w->failed.time_ns || b->time_ns < w->failed.time_ns)
		return false;
	if (b->time_ns == w->failed.time_ns)
		w->failed.stack = b->stack;
	return b->time_ns == w->failed.time_ns || (b->stack && b->stack == w->failed.stack);
}

static uint64_t size_of(void *arg, const struct torch_block *b)
{
	struct device_rewrite *w = arg;
	struct device_rule *rule = rule_of(w, b->stack);
	size_t at = w->lengths ? lengths_find(w->lengths, b->serial) : SIZE_MAX;
	uint64_t size = at == SIZE_MAX ? b->size : lengths_size(w->lengths, at, w->most);

	/* The finding changes the refused request; no rule does. */
	if (is_failed(w, b))
		return num_less(size, w->failed.less);
	if (!rule)
		return size;
	switch (rule->rule) {
	case RULE_KEEP_BYTES:
		size = kept(rule, size);
		break;
	case RULE_CAP_SIZE:
	case RULE_STREAM:
		size = num_least(size, rule->value);
		break;
	case RULE_EXPIRE:
		break;
	}
	if (!b->refused)
		rule->live += size;
	return size;
}

static uint64_t life_of(void *arg, const struct torch_block *b)
{
	const struct device_rule *rule = rule_of(arg, b->stack);

	return rule && rule->rule == RULE_EXPIRE ? rule->value : UINT64_MAX;
}

static uint64_t further(void *arg, const struct torch_block *b)
{
	const struct device_rewrite *w = arg;
	const struct lengths *l = w->lengths;

	return l && l->refused && l->blocks.items[l->refused - 1].serial == b->serial
		   ? lengths_further(l, w->most)
		   : 0;
}

static void released(void *arg, uint32_t stack, uint64_t size)
{
	struct device_rule *rule = rule_of(arg, stack);

	if (rule)
		rule->live = num_less(rule->live, size);
}

void device_rewrite_change(struct device_rewrite *w, struct torch_change *out)
{
	out->settings = &w->settings;
	out->rewrite = (struct torch_rewrite){
	    .arg = w, .size = size_of, .life = life_of, .further = further, .released = released};
}
