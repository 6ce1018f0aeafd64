/* levels.c - the newest value of each level. */
#include "model/model.h"

#include "util/num.h"

bool levels_get(const struct levels *l, uint32_t key, uint64_t *out)
{
	if (key >= MODEL_LEVELS || !l->known[key])
		return false;
	*out = l->value[key];
	return true;
}

uint64_t levels_value(const struct levels *l, uint32_t key)
{
	uint64_t value = 0;

	levels_get(l, key, &value);
	return value;
}

void levels_set(struct levels *l, uint32_t key, uint64_t value, uint64_t time_ns)
{
	if (key >= MODEL_LEVELS)
		return;
	l->value[key] = value;
	l->time_ns[key] = time_ns;
	l->known[key] = true;
}

/* Of stacks whose threads have ended glibc gives none back up to this. */
#define STACKS_KEPT (40u << 20)

void levels_carry_stacks(struct levels *l, uint64_t threads)
{
	uint64_t before, size, carried;

	/* The main thread's is not among them. */
	if (!levels_get(l, TRACE_LEVEL_THREADS, &before) || before < 2 || threads < 1 ||
	    !levels_get(l, TRACE_LEVEL_VIRT_THREADS, &size))
		return;
	carried = (uint64_t)((double)size / (double)(before - 1) * (double)(threads - 1));
	if (carried < size && carried < STACKS_KEPT)
		carried = num_least(size, STACKS_KEPT);
	l->value[TRACE_LEVEL_VIRT_THREADS] = carried;
}
