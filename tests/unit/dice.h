/* dice.h - numbers for tests that try many cases. */
#ifndef TESTS_UNIT_DICE_H
#define TESTS_UNIT_DICE_H

#include <stdint.h>

/* xorshift: the same numbers in every run. */
static inline uint64_t dice(uint64_t *seed, uint64_t below)
{
	*seed ^= *seed << 13;
	*seed ^= *seed >> 7;
	*seed ^= *seed << 17;
	return *seed % below;
}

#endif
