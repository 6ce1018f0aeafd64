/* still.c - a world that stands still, so that an input does the same at each reading: in the
 * fuzz build these are the analyzer's clock_gettime() and getrandom() (meson.build), but not
 * libFuzzer's. The clock moves a little at each reading, so that waits for a deadline end. */
#include "target.h"

#include <string.h>
#include <sys/random.h>
#include <time.h>

#undef clock_gettime
#undef getrandom

#define LOOK_NS 2000000u /* reduce reads it before each trial */

int fuzz_clock_gettime(clockid_t clock, struct timespec *out);
ssize_t fuzz_getrandom(void *buffer, size_t bytes, unsigned flags);

static uint64_t ns;

void still_begin(void)
{
	ns = 5000000000000u; /* later than all times in the golden traces */
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
