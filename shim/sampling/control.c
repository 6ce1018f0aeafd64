/*
 * control.c - see control.h. A pause is a sample that chooses no block: releases of recorded blocks
 * are still recorded, and malloc costs one subtraction.
 */
#include "sampling/control.h"

#include <string.h>

#include "sampling/sampler.h"

#define NO_BLOCK (1ull << 56) /* bytes: more than any program acquires */

uint32_t control_seen __attribute__((visibility("hidden")));

static struct {
	bool known, paused, on;
	uint64_t mean, exact_from;
	unsigned shift; /* doublings of both, for --max-rate */
	/* doublings of the mean because live blocks did not fit into a checkpoint */
	unsigned thinned;
} requested; /* what is recorded when nothing is paused */

static int busy; /* one thread at a time; another one tries again later */

/* Show the present settings in the header, for `whyoom ctl` without a command. */
void control_publish(void)
{
	struct trace_control *c = &trace_file_header->control;
	bool on = requested.known ? requested.on : sampler.on;
	uint64_t mean = requested.known ? requested.mean : sampler.mean;
	uint64_t exact_from = requested.known ? requested.exact_from : sampler.exact_from;

	c->mode = on ? TRACE_MODE_SAMPLED : TRACE_MODE_FULL;
	c->paused = requested.paused;
	c->every_now = mean << (requested.shift + requested.thinned);
	c->exact_from_now = exact_from << requested.shift;
}

static bool try_lock(void)
{
	if (__atomic_exchange_n(&busy, 1, __ATOMIC_ACQUIRE))
		return false;
	if (!requested.known) {
		requested.known = true;
		requested.on = sampler.on;
		requested.mean = sampler.mean;
		requested.exact_from = sampler.exact_from;
	}
	return true;
}

static void unlock(void)
{
	__atomic_store_n(&busy, 0, __ATOMIC_RELEASE);
}

/* The most doublings whose result a reader still accepts. */
static unsigned most_shift(void)
{
	uint64_t mean = requested.mean << requested.thinned;
	uint64_t larger = mean > requested.exact_from ? mean : requested.exact_from;
	unsigned shift = 0;

	while (shift < 32 && larger << (shift + 1) < 1ull << 40)
		shift++;
	return shift;
}

static void apply(void)
{
	unsigned most = most_shift();

	if (requested.shift > most)
		requested.shift = most;
	sampler.paused = requested.paused;
	if (requested.paused)
		sampler_set(true, NO_BLOCK, NO_BLOCK);
	else if (requested.on)
		sampler_set(true, requested.mean << (requested.shift + requested.thinned),
		    requested.exact_from << requested.shift);
	else
		sampler_set(false, requested.mean, requested.exact_from);
	control_publish();
}

bool control_scale(unsigned *shift)
{
	bool done;

	if (!try_lock())
		return false;
	done = requested.on && !requested.paused;
	if (done) {
		requested.shift = *shift;
		apply();
		*shift = requested.shift;
	}
	unlock();
	return done;
}

uint64_t control_mean(uint64_t *exact_from)
{
	*exact_from = (requested.known ? requested.exact_from : sampler.exact_from)
		      << requested.shift;
	return requested.known ? requested.mean << (requested.shift + requested.thinned)
			       : sampler.mean;
}

bool control_coarsen(unsigned shift)
{
	if (!try_lock())
		return false;
	requested.thinned += shift;
	apply();
	unlock();
	return true;
}

bool control_follow(void)
{
	struct trace_control *c = &trace_file_header->control;
	uint32_t asked = __atomic_load_n(&c->asked, __ATOMIC_ACQUIRE);
	uint32_t seen = __atomic_load_n(&control_seen, __ATOMIC_RELAXED);
	bool changed = true;

	if (asked == seen || !try_lock())
		return false;
	if (!__atomic_compare_exchange_n(
		&control_seen, &seen, asked, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED)) {
		unlock();
		return false;
	}
	switch (c->command) {
	case TRACE_CONTROL_PAUSE:
		changed = !requested.paused;
		requested.paused = true;
		break;
	case TRACE_CONTROL_RESUME:
		changed = requested.paused;
		requested.paused = false;
		break;
	case TRACE_CONTROL_FULL:
		requested.on = false;
		break;
	case TRACE_CONTROL_SAMPLED:
		requested.on = true;
		requested.mean = c->every && c->every < NO_BLOCK ? c->every : requested.mean;
		requested.exact_from = c->exact_from && c->exact_from < NO_BLOCK
					   ? c->exact_from
					   : requested.exact_from;
		break;
	default: /* TRACE_CONTROL_STATUS and unknown commands */
		changed = false;
		break;
	}
	if (changed)
		apply();
	if (changed && requested.on)
		trace_file_set_mode(TRACE_MODE_SAMPLED);
	control_publish();
	__atomic_store_n(&c->answered, asked, __ATOMIC_RELEASE);
	unlock();
	return changed;
}

bool control_paused(void)
{
	return requested.paused;
}

void control_attach(void)
{
	memset(&requested, 0, sizeof(requested));
	control_forked();
}

void control_forked(void)
{
	control_seen = 0;
	busy = 0;
}
