/*
 * file_gaps.c - see file_gaps.h. Adjacent gaps are joined, so that pieces serve large chunks again.
 */
#include "trace/file_gaps.h"

#include <string.h>

#include "base/sys.h"

#define GAPS_MAX 256u

struct range {
	uint64_t offset, bytes;
	bool punched;
};

static struct {
	int lock;
	uint32_t count;
	struct range ranges[GAPS_MAX];
} gaps;

void file_gaps_add(uint64_t offset, uint64_t bytes, bool punched)
{
	struct range add = {offset, bytes, punched};

	if (!bytes || !sys_try_lock(&gaps.lock))
		return;
	for (uint32_t i = 0; i < gaps.count;) {
		struct range *r = &gaps.ranges[i];

		if (r->punched != punched ||
		    (r->offset + r->bytes != add.offset && add.offset + add.bytes != r->offset)) {
			i++;
			continue;
		}
		add.offset = r->offset < add.offset ? r->offset : add.offset;
		add.bytes += r->bytes;
		*r = gaps.ranges[--gaps.count];
		i = 0; /* the larger gap may touch another one */
	}
	if (gaps.count < GAPS_MAX)
		gaps.ranges[gaps.count++] = add;
	sys_unlock(&gaps.lock);
}

bool file_gaps_take(uint64_t *offset, uint32_t bytes, bool *punched)
{
	struct range *best = NULL;

	if (!__atomic_load_n(&gaps.count, __ATOMIC_RELAXED) || !sys_try_lock(&gaps.lock))
		return false;
	/* the smallest that is large enough, so that large chunks find a gap, too */
	for (uint32_t i = 0; i < gaps.count; i++) {
		struct range *r = &gaps.ranges[i];

		if (r->bytes >= bytes && (!best || r->bytes < best->bytes))
			best = r;
	}
	if (best) {
		*offset = best->offset;
		*punched = best->punched;
		best->offset += bytes;
		best->bytes -= bytes;
		if (!best->bytes)
			*best = gaps.ranges[--gaps.count];
	}
	sys_unlock(&gaps.lock);
	return best;
}

void file_gaps_forget(void)
{
	memset(&gaps, 0, sizeof(gaps));
}
