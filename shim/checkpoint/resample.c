/* resample.c - see resample.h. */
#include "checkpoint/resample.h"

#include "base/clock.h"
#include "base/options.h"
#include "base/sys.h"
#include "sampling/control.h"
#include "sampling/sampler.h"

#define MEAN_MAX (1ull << 40) /* bytes; readers reject more */

static struct {
	int pending;
	uint64_t blocks;
} notice;

/* Returns how many sampled blocks are left. */
static uint64_t raise_mean(
    struct resampling *t, struct resample_block *blocks, uint64_t count, uint64_t mean)
{
	uint64_t left = 0;

	for (uint64_t i = 0; i < count; i++) {
		struct live_block *info = &blocks[i].info;

		if (!info->mean || info->mean == RESAMPLE_DROPPED)
			continue;
		if (info->mean < mean && !sampler_stays(info->size, info->mean, mean)) {
			info->mean = RESAMPLE_DROPPED;
			t->dropped++;
			continue;
		}
		if (info->mean < mean)
			info->mean = mean;
		left++;
	}
	t->mean = mean;
	return left;
}

bool resample_fit(struct resampling *t, struct resample_block *blocks, uint64_t count,
    const struct resample_limit *limit)
{
	uint64_t sampled = 0, exact, least, wanted, exact_from, mean = control_mean(&exact_from);

	for (uint64_t i = 0; i < count; i++)
		sampled += blocks[i].info.mean != 0;
	exact = count - sampled;
	if (!limit->exceeded && limit->estimate(exact, sampled) <= limit->most)
		return true;
	least = limit->estimate(exact, 0);
	/* with less room than this the rest of the sample would say nothing */
	if (!sampled || least + options.max_trace / 64 > limit->most)
		return false;
	wanted = least + (limit->most - least) / 4 * 3;
	do {
		t->shift++;
		if (mean << t->shift > MEAN_MAX)
			return false;
		sampled = raise_mean(t, blocks, count, mean << t->shift);
	} while (limit->estimate(exact, sampled) > wanted);
	return true;
}

void resample_live_blocks(
    const struct resampling *t, const struct resample_block *blocks, uint64_t count)
{
	uint64_t until = clock_ticks() + tick_clock.ticks_100ms;

	if (!t->mean)
		return;
	for (uint64_t i = 0; i < count; i++) {
		const struct resample_block *b = &blocks[i];

		if (b->info.mean)
			live_blocks_resample(b->address, b->info.birth,
			    b->info.mean == RESAMPLE_DROPPED ? 0 : b->info.mean);
	}
	while (!control_coarsen(t->shift) && clock_ticks() < until)
		sys_yield();
	__atomic_fetch_add(&notice.blocks, t->dropped, __ATOMIC_RELAXED);
	__atomic_store_n(&notice.pending, 1, __ATOMIC_RELEASE);
}

bool resample_notice_take(struct resample_notice *out)
{
	if (__builtin_expect(!__atomic_load_n(&notice.pending, __ATOMIC_RELAXED), 1) ||
	    !__atomic_exchange_n(&notice.pending, 0, __ATOMIC_ACQUIRE))
		return false;
	out->blocks = __atomic_exchange_n(&notice.blocks, 0, __ATOMIC_RELAXED);
	out->mean = control_mean(&out->exact_from);
	return true;
}

void resample_forked(void)
{
	notice.pending = 0;
	notice.blocks = 0;
}
