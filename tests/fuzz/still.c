/* still.c - a world that stands still, so that an input does the same each time that it is read:
 * the analyzer's clock_gettime() and getrandom() are these in the fuzz build (meson.build).
 * libFuzzer's own are not. The clock goes on by a little with each look, so that what waits for
 * a deadline ends. */
#include "target.h"

#include <string.h>
#include <sys/random.h>
#include <time.h>

#undef clock_gettime
#undef getrandom

#define LOOK_NS 2000000u /* reduce looks before each trial */

int fuzz_clock_gettime(clockid_t clock, struct timespec *out);
ssize_t fuzz_getrandom(void *buffer, size_t bytes, unsigned flags);

static uint64_t ns;

void still_begin(void)
{
	ns = 5000000000000u; /* later than all that the golden traces are of */
}

int fuzz_clock_gettime(clockid_t clock, struct timespec *out)
{
	ns += LOOK_NS;
	*out = (struct timespec){(time_t)(ns / 1000000000u), (long)(ns % 1000000000u)};
	return 0;
}

ssize_t fuzz_getrandom(void *buffer, size_t bytes, unsigned flags)
{
	memset(buffer, 0x5a, bytes);
	return (ssize_t)bytes;
}
