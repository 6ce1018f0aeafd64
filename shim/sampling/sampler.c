/*
 * sampler.c - the rare part of sampler.h: the end of a countdown. Integers only: the flags of the
 * floating-point unit belong to the host.
 */
#include "sampling/sampler.h"

#include <sys/auxv.h>

#include "base/clock.h"
#include "base/shim_state.h"
#include "trace/trace_file.h"

/* Bytes: each countdown stops at least this often, to look for commands. */
#define LOOK_BYTES (1u << 20)

#define LN2_32 2977044472ull /* ln 2 * 2^32 */

struct sampler_state sampler __attribute__((visibility("hidden")));

__thread struct sampler_thread sampler_self
    __attribute__((tls_model("initial-exec"), visibility("hidden")));

uint64_t sampler_draw(uint64_t random, uint64_t mean)
{
	unsigned zeros = (unsigned)__builtin_clzll(random | 1);
	uint64_t m = (random | 1) << zeros, fraction = 0, nats;

	/* The binary logarithm of m / 2^63, which lies in [1, 2), one bit at a time: where the
	 * square is 2 or more, the next bit is set. */
	for (int i = 0; i < 32; i++) {
		unsigned __int128 square = (unsigned __int128)m * m;
		bool two = square >> 127;

		m = (uint64_t)(square >> (two ? 64 : 63));
		fraction = fraction << 1 | two;
	}
	/* -ln(random / 2^64), as 32.32 bits */
	nats = (uint64_t)(((unsigned __int128)(((uint64_t)zeros + 1) << 32) - fraction) * LN2_32 >>
			  32);
	return (uint64_t)((unsigned __int128)nats * mean >> 32) + 1;
}

/* exp(-x) as 0.32 bits, for x below 32 as 32.32 bits: the series at x / 32, then squared five
 * times. */
static uint64_t exp_minus(uint64_t x)
{
	uint64_t y = x >> 5, term = 1ull << 32, sum = 1ull << 32;

	for (uint64_t i = 1; i <= 10; i++) {
		term = (term * y >> 32) / i;
		sum = i % 2 ? sum - term : sum + term;
	}
	for (int i = 0; i < 5; i++)
		sum = (uint64_t)((unsigned __int128)sum * sum >> 32);
	return sum;
}

uint64_t sampler_stands_for(uint64_t size, uint64_t mean)
{
	uint64_t x;

	if (!mean || size / 16 >= mean || mean >> 48)
		return size;
	x = (uint64_t)(((unsigned __int128)size << 32) / mean);
	if (x >> 31) /* a half or more */
		return (uint64_t)(((unsigned __int128)size << 32) / ((1ull << 32) - exp_minus(x)));
	/* mean * (1 + x / 2 + x^2 / 12) */
	return mean + size / 2 + (uint64_t)((unsigned __int128)size * x / 12 >> 32);
}

static uint64_t mix(uint64_t x)
{
	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9ull;
	x = (x ^ x >> 27) * 0x94d049bb133111ebull;
	return x ^ x >> 31;
}

static uint64_t next_random(struct sampler_thread *s)
{
	s->random += 0x9e3779b97f4a7c15ull;
	return mix(s->random);
}

/* Mix the kernel's random bytes, the time, the pid and the address of the thread's own memory: no
 * two threads and no two processes share a sequence. */
static void seed(struct sampler_thread *s)
{
	const uint64_t *given = (const uint64_t *)getauxval(AT_RANDOM);

	s->random = mix(clock_ticks()) ^ (uintptr_t)s ^ mix((uint64_t)shim.pid);
	if (given)
		s->random ^= mix(given[1]);
}

bool sampler_stays(uint64_t size, uint64_t mean, uint64_t coarser)
{
	struct sampler_thread *s = &sampler_self;

	if (!s->random) /* a thread that has acquired nothing yet */
		seed(s);
	return (uint64_t)((unsigned __int128)next_random(s) * sampler_stands_for(size, coarser) >>
			  64) < sampler_stands_for(size, mean);
}

/* With an allocator other than the C library's each call is looked at, because it may call malloc
 * or mmap by name itself; the caller's state then tells whose call it is. */
static void count_down(struct sampler_thread *s, uint64_t bytes)
{
	uint64_t most = sampler.exact_from < LOOK_BYTES ? sampler.exact_from : LOOK_BYTES;

	if (!shim.owner_is_libc)
		most = 0;
	s->left = bytes < most ? bytes : most;
	s->more = bytes - s->left;
}

static void draw(struct sampler_thread *s)
{
	uint64_t bytes = sampler_draw(next_random(s), s->mean);

	s->drawn += bytes;
	count_down(s, bytes);
}

/* Add to the header what passed since the last look. */
static void tell_paused(struct sampler_thread *s)
{
	uint64_t counted = sampler_counted();

	if (s->paused && counted > s->counted)
		trace_file_count(&trace_file_header->paused_bytes, counted - s->counted);
	s->counted = counted;
}

enum sampler_take sampler_take(uint64_t size)
{
	struct sampler_thread *s = &sampler_self;
	uint32_t generation = __atomic_load_n(&sampler.generation, __ATOMIC_ACQUIRE);
	bool first = !s->generation;
	uint64_t left;

	if (s->paused)
		tell_paused(s);
	if (s->generation != generation) {
		if (first)
			seed(s);
		s->generation = generation;
		s->mean = sampler.mean;
		s->drawn -= s->left + s->more;
		draw(s);
		s->counted = sampler_counted();
		s->paused = sampler.paused;
	}
	/* A thread's first block is recorded whatever its size, with certainty, like a large one: a
	 * thread that acquires almost nothing is visibly watched. */
	if (first || size >= sampler.exact_from)
		return SAMPLER_EXACT;
	left = s->left + s->more;
	if (size < left) {
		count_down(s, left - size);
		return SAMPLER_PASS;
	}
	draw(s);
	return SAMPLER_CHOSEN;
}

void sampler_set(bool on, uint64_t mean, uint64_t exact_from)
{
	/* Where all blocks were recorded before, all releases are. */
	sampler.by_table = on && (sampler.by_table || !sampler.generation);
	trace_file_expect_checkpoints(sampler.by_table);
	sampler.pass_frees = sampler.by_table && shim.owner_is_libc;
	sampler.mean = mean ? mean : 1;
	sampler.exact_from = exact_from ? exact_from : 1;
	sampler.on = on;
	/* Blocks that a sample leaves out would look like earlier ones, for good. */
	sampler.before = sampler.before && !on;
	sampler.looks = on || sampler.before;
	sampler.checks = sampler.by_table || sampler.before;
	__atomic_add_fetch(&sampler.generation, 1, __ATOMIC_RELEASE);
}

void sampler_attach(bool on, uint64_t mean, uint64_t exact_from)
{
	sampler.by_table = on;
	sampler.before = !on;
	sampler.paused = false;
	sampler_set(on, mean, exact_from);
}

void sampler_detach(void)
{
	sampler.pass_frees = false;
	sampler.looks = sampler.checks = true;
}

void sampler_forked(void)
{
	/* the copied thread memory holds the parent's sequence */
	sampler_self.random ^= mix((uint64_t)shim.pid);
}
