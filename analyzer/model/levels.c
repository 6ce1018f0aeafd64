/* levels.c - the newest value of each level. */
#include "model/model.h"

bool levels_get(const struct levels *l, uint32_t key, uint64_t *out)
{
	if (key >= MODEL_LEVELS || !l->known[key])
		return false;
	*out = l->value[key];
	return true;
}

void levels_set(struct levels *l, uint32_t key, uint64_t value, uint64_t time_ns)
{
	if (key >= MODEL_LEVELS)
		return;
	l->value[key] = value;
	l->time_ns[key] = time_ns;
	l->known[key] = true;
}
