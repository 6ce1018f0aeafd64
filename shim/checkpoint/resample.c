/* resample.c - see resample.h. */
#include "checkpoint/resample.h"

#include "base/clock.h"
#include "base/options.h"
#include "base/sys.h"
#include "sampling/control.h"
#include "sampling/sampler.h"

#define MEAN_MOST (1ull << 40) /* bytes: one that readers believe */

static struct {
	int unsaid;
	uint64_t blocks;
} news;

/* Those of the sample that are left. */
static uint64_t thin_to(
    struct resampling *t, struct resample_block *blocks, uint64_t count, uint64_t mean)
{
	uint64_t left = 0;

	for (uint64_t i = 0; i < count; i++) {
		struct live_block *how = &blocks[i].how;

		if (!how->mean || how->mean == RESAMPLE_GONE)
			continue;
		if (how->mean < mean && !sampler_stays(how->size, how->mean, mean)) {
			how->mean = RESAMPLE_GONE;
			t->gone++;
			continue;
		}
		if (how->mean < mean)
			how->mean = mean;
		left++;
	}
	t->mean = mean;
	return left;
}

bool resample_fit(struct resampling *t, struct resample_block *blocks, uint64_t count,
    uint64_t most, bool tight, uint64_t (*room)(uint64_t exact, uint64_t sampled))
{
	uint64_t sampled = 0, exact, least, wanted, exact_from, mean = control_mean(&exact_from);

	for (uint64_t i = 0; i < count; i++)
		sampled += blocks[i].how.mean != 0;
	exact = count - sampled;
	if (!tight && room(exact, sampled) <= most)
		return true;
	least = room(exact, 0);
	/* what is left of the sample is to be worth something */
	if (!sampled || least + options.max_trace / 64 > most)
		return false;
	wanted = least + (most - least) / 4 * 3;
	do {
		t->shift++;
		if (mean << t->shift > MEAN_MOST)
			return false;
		sampled = thin_to(t, blocks, count, mean << t->shift);
	} while (room(exact, sampled) > wanted);
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

		if (b->how.mean)
			live_blocks_thin(b->address, b->how.birth,
			    b->how.mean == RESAMPLE_GONE ? 0 : b->how.mean);
	}
	while (!control_thin(t->shift) && clock_ticks() < until)
		sys_yield();
	__atomic_fetch_add(&news.blocks, t->gone, __ATOMIC_RELAXED);
	__atomic_store_n(&news.unsaid, 1, __ATOMIC_RELEASE);
}

bool resample_notice_take(struct resample_notice *out)
{
	if (__builtin_expect(!__atomic_load_n(&news.unsaid, __ATOMIC_RELAXED), 1) ||
	    !__atomic_exchange_n(&news.unsaid, 0, __ATOMIC_ACQUIRE))
		return false;
	out->blocks = __atomic_exchange_n(&news.blocks, 0, __ATOMIC_RELAXED);
	out->mean = control_mean(&out->exact_from);
	return true;
}

void resample_forked(void)
{
	news.unsaid = 0;
	news.blocks = 0;
}
