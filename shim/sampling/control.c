/*
 * control.c - see control.h. A pause is a sample that chooses no block: releases of recorded blocks
 * are still recorded, and malloc costs one subtraction.
 */
#include "sampling/control.h"

#include "sampling/sampler.h"

#define NOBODY (1ull << 56) /* bytes: more than any program acquires */

uint32_t control_seen __attribute__((visibility("hidden")));

static struct {
	bool known, paused, on;
	uint64_t mean, exact_from;
	unsigned shift; /* doublings of both, for --max-rate */
	/* doublings of the mean because live blocks did not fit into a checkpoint */
	unsigned thinned;
} wish; /* what is recorded when nothing is paused */

static int busy; /* one thread at a time; another one tries again later */

/* Show the present settings in the header, for `whyoom ctl` without a command. */
static void publish(void)
{
	struct trace_control *c = &trace_file_header->control;
	bool on = wish.known ? wish.on : sampler.on;
	uint64_t mean = wish.known ? wish.mean : sampler.mean;
	uint64_t exact_from = wish.known ? wish.exact_from : sampler.exact_from;

	c->mode = on ? TRACE_MODE_SAMPLED : TRACE_MODE_FULL;
	c->paused = wish.paused;
	c->every_now = mean << (wish.shift + wish.thinned);
	c->exact_from_now = exact_from << wish.shift;
}

static bool begin(void)
{
	if (__atomic_exchange_n(&busy, 1, __ATOMIC_ACQUIRE))
		return false;
	if (!wish.known) {
		wish.known = true;
		wish.on = sampler.on;
		wish.mean = sampler.mean;
		wish.exact_from = sampler.exact_from;
	}
	return true;
}

static void end(void)
{
	__atomic_store_n(&busy, 0, __ATOMIC_RELEASE);
}

/* The most doublings whose result a reader still accepts. */
static unsigned most_shift(void)
{
	uint64_t mean = wish.mean << wish.thinned;
	uint64_t larger = mean > wish.exact_from ? mean : wish.exact_from;
	unsigned shift = 0;

	while (shift < 32 && larger << (shift + 1) < 1ull << 40)
		shift++;
	return shift;
}

static void apply(void)
{
	unsigned most = most_shift();

	if (wish.shift > most)
		wish.shift = most;
	sampler.paused = wish.paused;
	if (wish.paused)
		sampler_set(true, NOBODY, NOBODY);
	else if (wish.on)
		sampler_set(
		    true, wish.mean << (wish.shift + wish.thinned), wish.exact_from << wish.shift);
	else
		sampler_set(false, wish.mean, wish.exact_from);
	publish();
}

bool control_scale(unsigned *shift)
{
	bool done;

	if (!begin())
		return false;
	done = wish.on && !wish.paused;
	if (done) {
		wish.shift = *shift;
		apply();
		*shift = wish.shift;
	}
	end();
	return done;
}

uint64_t control_mean(uint64_t *exact_from)
{
	*exact_from = (wish.known ? wish.exact_from : sampler.exact_from) << wish.shift;
	return wish.known ? wish.mean << (wish.shift + wish.thinned) : sampler.mean;
}

bool control_thin(unsigned shift)
{
	if (!begin())
		return false;
	wish.thinned += shift;
	apply();
	end();
	return true;
}

bool control_follow(void)
{
	struct trace_control *c = &trace_file_header->control;
	uint32_t asked = __atomic_load_n(&c->asked, __ATOMIC_ACQUIRE);
	uint32_t seen = __atomic_load_n(&control_seen, __ATOMIC_RELAXED);
	bool changed = true;

	if (asked == seen || !begin())
		return false;
	if (!__atomic_compare_exchange_n(
		&control_seen, &seen, asked, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED)) {
		end();
		return false;
	}
	switch (c->command) {
	case TRACE_CONTROL_PAUSE:
		changed = !wish.paused;
		wish.paused = true;
		break;
	case TRACE_CONTROL_RESUME:
		changed = wish.paused;
		wish.paused = false;
		break;
	case TRACE_CONTROL_FULL:
		wish.on = false;
		break;
	case TRACE_CONTROL_SAMPLED:
		wish.on = true;
		wish.mean = c->every && c->every < NOBODY ? c->every : wish.mean;
		wish.exact_from =
		    c->exact_from && c->exact_from < NOBODY ? c->exact_from : wish.exact_from;
		break;
	default: /* TRACE_CONTROL_NONE and unknown commands */
		changed = false;
		break;
	}
	if (changed)
		apply();
	if (changed && wish.on)
		trace_file_set_mode(TRACE_MODE_SAMPLED);
	publish();
	__atomic_store_n(&c->answered, asked, __ATOMIC_RELEASE);
	end();
	return changed;
}

void control_begin(void)
{
	publish();
}

bool control_paused(void)
{
	return wish.paused;
}

void control_forked(void)
{
	control_seen = 0;
	busy = 0;
}
