/*
 * clocked.c - preloaded before the recorder: times each report of PyTorch's allocator, as its
 * caller sees it. cuda.py compares a recorded process with an unrecorded one; the clock's own time
 * is in both.
 *
 * The recorder passes a report on to what it takes for the real function, which may be this one:
 * the second call in one report goes to libc10.so.
 */
#include <dlfcn.h>
#include <stdint.h>
#include <time.h>

#define NAME "_ZN3c1027reportMemoryUsageToProfilerEPvlmmNS_6DeviceE"
#define EXPORT __attribute__((visibility("default")))
#define MOST (1u << 20)

struct c10_device {
	int8_t type, index;
};
typedef void usage_function(void *, int64_t, uint64_t, uint64_t, struct c10_device);

/* the program reads it: twice the ns, and 1 more for a release */
EXPORT uint32_t clocked_reports[MOST];
EXPORT uint32_t clocked_count;

static __thread int inside __attribute__((tls_model("initial-exec")));
static usage_function *next, *real;

static uint64_t now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

static void find(void)
{
	real = (usage_function *)dlsym(dlopen("libc10.so", RTLD_NOW | RTLD_NOLOAD), NAME);
	next = (usage_function *)dlsym(RTLD_NEXT, NAME);
	if (!next)
		next = real;
}

EXPORT usage_function clocked_usage __asm__(NAME);

void clocked_usage(
    void *block, int64_t size, uint64_t allocated, uint64_t reserved, struct c10_device device)
{
	uint64_t began;

	if (inside) {
		real(block, size, allocated, reserved, device);
		return;
	}
	if (!next)
		find();
	inside = 1;
	began = now();
	next(block, size, allocated, reserved, device);
	began = now() - began;
	inside = 0;
	if (clocked_count < MOST)
		clocked_reports[clocked_count++] = (uint32_t)began << 1 | (size < 0);
}
