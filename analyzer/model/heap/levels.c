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

/* How large one thread's stack is, with its guard, where all of them are `size`. Those of `each`
 * bytes tell their number themselves: a thread that has ended may leave one behind. */
static uint64_t one_stack(uint64_t size, uint64_t threads, uint64_t each)
{
	uint64_t count = each ? (size + each / 2) / each : 0;

	if (count && size >= count * each && size - count * each <= count * (each / 64))
		return size / count;
	return threads >= 2 ? size / (threads - 1) : 0; /* the main thread's is not among them */
}

void levels_carry_stacks(struct levels *l, uint64_t threads, uint64_t each)
{
	uint64_t before, size, carried, one;

	if (!levels_get(l, TRACE_LEVEL_THREADS, &before) || threads < 1 ||
	    !levels_get(l, TRACE_LEVEL_VIRT_THREADS, &size))
		return;
	one = one_stack(size, before, each);
	if (!one || threads > UINT64_MAX / one)
		return;
	carried = one * (threads - 1);
	if (carried < size && carried < STACKS_KEPT)
		carried = num_least(size, STACKS_KEPT);
	l->value[TRACE_LEVEL_VIRT_THREADS] = carried;
}
