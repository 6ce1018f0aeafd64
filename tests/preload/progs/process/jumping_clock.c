/* jumping_clock.c - preloaded before the recorder: the time of day leaps back and forth by hours
 * and years, and the monotonic clock stands still, as on a machine that is suspended, restored
 * from a snapshot, or corrected by hand. */
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static const long leaps[] = {0, 3600, -7200, 86400L * 900, -86400L * 900, 5, -1000000000};

int clock_gettime(clockid_t clock, struct timespec *out)
{
	static _Atomic unsigned asked;
	unsigned n = asked++;
	int rc = (int)syscall(SYS_clock_gettime, clock, out);

	if (clock == CLOCK_REALTIME)
		out->tv_sec += leaps[n % 7];
	else if (clock == CLOCK_MONOTONIC || clock == CLOCK_MONOTONIC_COARSE ||
		 clock == CLOCK_MONOTONIC_RAW)
		*out = (struct timespec){1000 + n / 1000, 0};
	return rc;
}

int gettimeofday(struct timeval *out, void *zone)
{
	struct timespec t;

	clock_gettime(CLOCK_REALTIME, &t);
	*out = (struct timeval){t.tv_sec, t.tv_nsec / 1000};
	return 0;
}
