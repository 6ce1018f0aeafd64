/* unit.h - what every test here includes, in the order that cmocka asks for. */
#ifndef TESTS_UNIT_MODEL_UNIT_H
#define TESTS_UNIT_MODEL_UNIT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
/* after those */
#include <cmocka.h>

#define KiB 1024ull
#define MiB (1024ull * 1024)
#define GiB (1024ull * 1024 * 1024)

/* xorshift: the same numbers in every run. */
static inline uint64_t dice(uint64_t *seed, uint64_t below)
{
	*seed ^= *seed << 13;
	*seed ^= *seed >> 7;
	*seed ^= *seed << 17;
	return *seed % below;
}

#endif
