/*
 * c10.c - a stand-in for libc10.so (and, with CUDA_PART, libc10_cuda.so): the two functions by
 * which PyTorch's allocator reports, of the version that NAMES chooses, and an allocator that calls
 * them under its mutex. Any call of the driver meanwhile is counted by the stand-in driver.
 */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>

struct c10_device {
	int8_t type, index;
};

#if NAMES == 1
#define USAGE "_ZN3c1027reportMemoryUsageToProfilerEPvlllNS_6DeviceE"
#define FAILURE "_ZN3c1027reportOutOfMemoryToProfilerElllNS_6DeviceE"
#elif NAMES == 2
#define USAGE "_ZN3c1027reportMemoryUsageToProfilerEPvlmmNS_6DeviceE"
#define FAILURE "_ZN3c1027reportOutOfMemoryToProfilerEmmmNS_6DeviceE"
#elif NAMES == 3 /* too old: no known name */
#define USAGE "_ZN3c1027reportMemoryUsageToProfilerENS_6DeviceEl"
#define FAILURE "_ZN3c1027reportOutOfMemoryToProfilerENS_6DeviceEl"
#else
#define USAGE "_ZN3c1027reportMemoryUsageToProfilerEPvlmmNS_6DeviceE"
#define FAILURE "_ZN3c1027reportOutOfMemoryToProfilerElmmNS_6DeviceE"
#endif

#define EXPORT __attribute__((visibility("default")))

void report_usage(void *, int64_t, uint64_t, uint64_t, struct c10_device) __asm__(USAGE);
void report_failure(int64_t, uint64_t, uint64_t, struct c10_device) __asm__(FAILURE);

#ifdef CUDA_PART
extern int stand_forbid;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static uint64_t allocated, reserved = 1 << 21;
static char segment[1 << 21];

EXPORT void block_take(unsigned at, int64_t size, int type)
{
	pthread_mutex_lock(&mutex);
	stand_forbid++;
	allocated += (uint64_t)size;
	report_usage(segment + at, size, allocated, reserved, (struct c10_device){(int8_t)type, 0});
	stand_forbid--;
	pthread_mutex_unlock(&mutex);
}

EXPORT void block_give(unsigned at, int64_t size)
{
	pthread_mutex_lock(&mutex);
	stand_forbid++;
	allocated -= (uint64_t)size;
	report_usage(segment + at, -size, allocated, reserved, (struct c10_device){1, 0});
	stand_forbid--;
	pthread_mutex_unlock(&mutex);
}

EXPORT void block_failure(int64_t size)
{
	pthread_mutex_lock(&mutex);
	stand_forbid++;
	report_failure(size, allocated, reserved, (struct c10_device){1, 0});
	stand_forbid--;
	pthread_mutex_unlock(&mutex);
}
#else
static uint64_t usages, failures, sum;

/* the arguments that arrived, to be compared with those sent */
EXPORT void received(uint64_t *out)
{
	out[0] = usages;
	out[1] = failures;
	out[2] = sum;
}

EXPORT void report_usage(void *p, int64_t size, uint64_t all, uint64_t held, struct c10_device d)
{
	usages++;
	sum += (uint64_t)(size + d.type * 3 + d.index) + all * 5 + held * 7;
}

EXPORT void report_failure(int64_t size, uint64_t all, uint64_t held, struct c10_device d)
{
	failures++;
	sum += (uint64_t)(size + d.type * 3 + d.index) + all * 5 + held * 7;
}
#endif
