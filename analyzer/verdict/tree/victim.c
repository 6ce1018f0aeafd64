#include "verdict/tree/victim.h"

#include <signal.h>
#include <string.h>

#define COMM_BYTES 15 /* TASK_COMM_LEN without its NUL */

static bool may_be_killed(const struct trace_facts *f)
{
	return (f->end_how == TRACE_END_SIGNAL && f->end_code == SIGKILL) ||
	       (f->end_how == TRACE_END_NONE && !f->running);
}

static bool has_name(const char *path, const char *comm)
{
	const char *slash = path ? strrchr(path, '/') : NULL;
	const char *name = slash ? slash + 1 : path;

	return name && *comm && strncmp(name, comm, COMM_BYTES) == 0;
}

static bool is_named(const struct trace_facts *f, const struct log_victim *v)
{
	return has_name(f->exe, v->comm) || (f->argv && has_name(f->argv[0], v->comm));
}

static bool by_pid(const struct trace_set *set, const struct verdict_hints *hints, bool *victim)
{
	bool any = false;

	for (size_t i = 0; i < set->count; i++) {
		const struct trace_facts *f = trace_facts(set->images[i]);

		for (size_t k = 0; k < hints->victim_count; k++)
			victim[i] |= hints->victims[k].pid == f->pid && may_be_killed(f);
		any |= victim[i];
	}
	return any;
}

void victim_find(const struct trace_set *set, const struct verdict_hints *hints, bool *victim)
{
	size_t killed = 0, only = 0;

	if (!hints || by_pid(set, hints, victim))
		return;
	for (size_t i = 0; i < set->count; i++)
		if (may_be_killed(trace_facts(set->images[i]))) {
			only = i;
			killed++;
		}
	if (killed != 1)
		return;
	for (size_t k = 0; k < hints->victim_count; k++)
		victim[only] |= is_named(trace_facts(set->images[only]), &hints->victims[k]);
}
