/*
 * driver.c - a stand-in for libcuda.so.1: no device, but the driver's calls, look-up and rules.
 * Memory is a number (STAND_BYTES, 1 GiB by default); addresses are counted up and never reused. It
 * counts violations of its rules: a query at a forbidden moment, a lock taken twice, a wrong
 * argument; stand_violations() returns them. Queries change errno, and failing calls leave garbage
 * in their out-parameters.
 *
 * With STAND_SPLIT=1 cuGetProcAddress returns other functions than those exported.
 */
#include "driver.h"

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define BLOCKS 65536

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct {
	uint64_t address, size;
	int kind; /* 'd'evice, 'h'andle, 'p'inned, 'v'a, 'm'anaged, 'a'sync */
	int references, maps;
} blocks[BLOCKS];
static unsigned count;
static uint64_t used, next_address = 0x7f0000000000ull, next_handle = 0x100000;
static uint64_t pool_reserved, pool_used;
static int initialised, capturing, deinitialised, early;
static pid_t owner; /* the process that called cuInit: its children cannot use CUDA */
static int violations, calls, asked;
static void *volatile inner;
__thread struct stand_thread stand_self;
static int contexts[STAND_DEVICES]; /* references of the primary contexts */

/* true while a framework's lock is held: no call may come */
EXPORT int stand_forbid;
EXPORT int stand_violations(void)
{
	return violations;
}
EXPORT int stand_calls(void)
{
	return calls;
}
EXPORT int stand_asked(void)
{
	return asked;
}
/* queries before cuInit */
EXPORT int stand_early(void)
{
	return early;
}
EXPORT unsigned stand_live(void)
{
	unsigned n = 0;

	for (unsigned i = 0; i < count; i++)
		n += blocks[i].address != 0;
	return n;
}
EXPORT uint64_t stand_used(void)
{
	return used;
}

void stand_violation(const char *what)
{
	violations++;
	fprintf(stderr, "stand-in driver: %s\n", what);
	if (deinitialised)
		_exit(4); /* nobody is left to query the violations */
}

void stand_question(const char *what)
{
	const char *when = stand_forbid			? "under a lock"
			   : deinitialised		? "after the end"
			   : stand_self.callback	? "in a callback"
			   : owner && owner != getpid() ? "in a child"
							: NULL;
	char words[128];

	early += !initialised;
	if (when) {
		snprintf(words, sizeof(words), "%s %s", what, when);
		stand_violation(words);
	}
	errno = EDOM; /* the caller must keep its own */
}

static uint64_t capacity(void)
{
	static uint64_t bytes;

	if (!bytes)
		bytes =
		    getenv("STAND_BYTES") ? strtoull(getenv("STAND_BYTES"), NULL, 0) : 1ull << 30;
	return bytes;
}

uint64_t stand_context(void)
{
	return stand_self.depth ? stand_self.contexts[stand_self.depth - 1] : 0;
}

int stand_device(void)
{
	return (int)((stand_context() - STAND_CONTEXT) % STAND_DEVICES);
}

int stand_ready(void)
{
	return initialised && !deinitialised;
}

gpu_result stand_enter(void)
{
	__atomic_add_fetch(&calls, 1, __ATOMIC_RELAXED);
	return deinitialised	     ? GPU_ERROR_DEINITIALIZED
	       : !initialised	     ? GPU_ERROR_NOT_INITIALIZED
	       : stand_self.callback ? GPU_ERROR_NOT_PERMITTED
	       : !stand_context()    ? GPU_ERROR_INVALID_CONTEXT
				     : GPU_SUCCESS;
}

/* if set, called at each allocation, with no lock held */
EXPORT void (*stand_inside)(void);

gpu_result stand_take(gpu_ptr *out, size_t size, int kind, uint64_t address)
{
	gpu_result result = stand_enter();
	int saved;

	if (result)
		return result;
	/* a very small address is none, and is not written to */
	if ((uintptr_t)out < 4096 || !size)
		return GPU_ERROR_INVALID_VALUE;
	/* its own allocation is the host's and must be recorded once */
	inner = malloc(77);
	free(inner);
	if (stand_inside)
		stand_inside();
	pthread_mutex_lock(&lock);
	saved = kind != 'v' && kind != 'p' && used + size > capacity();
	if (saved || count == BLOCKS) {
		pthread_mutex_unlock(&lock);
		*out = 0xdeadbeef; /* garbage, that nobody may read */
		return GPU_ERROR_OUT_OF_MEMORY;
	}
	if (kind != 'v' && kind != 'p')
		used += size;
	blocks[count].address = address ? address : next_address;
	blocks[count].size = size;
	blocks[count].kind = kind;
	blocks[count].references = 1;
	blocks[count].maps = 0;
	*out = blocks[count++].address;
	if (!address)
		next_address += (size + 511) & ~(size_t)511;
	pthread_mutex_unlock(&lock);
	return GPU_SUCCESS;
}

gpu_result stand_take_handle(gpu_handle *out, size_t size, int kind)
{
	struct stand_thread before = stand_self;
	uint64_t handle;
	gpu_result result;

	stand_self.contexts[0] = STAND_CONTEXT;
	stand_self.depth = 1;
	handle = __atomic_add_fetch(&next_handle, 16, __ATOMIC_RELAXED);
	result = stand_take(out, size, kind, handle);
	stand_self = before;
	return result;
}

gpu_result stand_refer(uint64_t handle, int references, int maps)
{
	gpu_result result = GPU_ERROR_INVALID_VALUE;

	pthread_mutex_lock(&lock);
	for (unsigned i = 0; i < count; i++) {
		if (blocks[i].address != handle)
			continue;
		blocks[i].references += references;
		blocks[i].maps += maps;
		if (!blocks[i].references && !blocks[i].maps) {
			if (blocks[i].kind != 'v' && blocks[i].kind != 'p')
				used -= blocks[i].size;
			blocks[i].address = 0;
		}
		result = GPU_SUCCESS;
		break;
	}
	pthread_mutex_unlock(&lock);
	return result;
}

gpu_result stand_give(gpu_ptr address)
{
	gpu_result result = stand_enter();

	return result ? result : stand_refer(address, -1, 0);
}

void stand_by_the_way(int64_t bytes)
{
	pthread_mutex_lock(&lock);
	used += (uint64_t)bytes;
	pthread_mutex_unlock(&lock);
}

EXPORT gpu_result cuInit(unsigned flags)
{
	initialised = 1;
	if (!owner)
		owner = getpid();
	return GPU_SUCCESS;
}

EXPORT gpu_result cuDriverGetVersion(int *version)
{
	*version = 13050;
	return GPU_SUCCESS;
}

/* behaves as the real driver after exit() has begun */
static __attribute__((destructor)) void gone(void)
{
	deinitialised = 1;
}

EXPORT gpu_result cuCtxGetCurrent(gpu_context *out)
{
	stand_question("cuCtxGetCurrent");
	if (!initialised)
		return GPU_ERROR_NOT_INITIALIZED;
	*out = (gpu_context)(uintptr_t)stand_context();
	return GPU_SUCCESS;
}

EXPORT gpu_result cuCtxGetDevice(gpu_device *out)
{
	stand_question("cuCtxGetDevice");
	if (!stand_context()) {
		stand_violation("cuCtxGetDevice without a context");
		return GPU_ERROR_INVALID_CONTEXT;
	}
	*out = stand_device();
	return GPU_SUCCESS;
}

EXPORT gpu_result cuCtxSetCurrent(gpu_context context)
{
	if (!context)
		stand_self.depth -= stand_self.depth > 0;
	else
		stand_self.contexts[stand_self.depth ? stand_self.depth - 1 : stand_self.depth++] =
		    (uintptr_t)context;
	return GPU_SUCCESS;
}

EXPORT gpu_result cuCtxPushCurrent_v2(gpu_context context)
{
	stand_question("cuCtxPushCurrent");
	if (capturing)
		stand_violation("cuCtxPushCurrent during a capture");
	stand_self.contexts[stand_self.depth++] = (uintptr_t)context;
	return GPU_SUCCESS;
}

EXPORT gpu_result cuCtxPopCurrent_v2(gpu_context *out)
{
	*out = (gpu_context)(uintptr_t)stand_context();
	stand_self.depth--;
	return GPU_SUCCESS;
}

/* What a context takes: STAND_CONTEXT_BYTES, 0 by default. */
static int64_t context_bytes(void)
{
	const char *bytes = getenv("STAND_CONTEXT_BYTES");

	return bytes ? strtoll(bytes, NULL, 0) : 0;
}

EXPORT gpu_result cuDevicePrimaryCtxRetain(gpu_context *out, gpu_device device)
{
	if (!initialised)
		return GPU_ERROR_NOT_INITIALIZED;
	if (!contexts[device]++)
		stand_by_the_way(context_bytes());
	*out = (gpu_context)(uintptr_t)(STAND_CONTEXT + (unsigned)device);
	return GPU_SUCCESS;
}

/* Further contexts; their values differ by even numbers, so that they name the device */
EXPORT gpu_result cuCtxCreate_v2(gpu_context *out, unsigned flags, gpu_device device)
{
	static unsigned made;
	gpu_context context;

	if (!initialised)
		return GPU_ERROR_NOT_INITIALIZED;
	if ((uintptr_t)out < 4096)
		return GPU_ERROR_INVALID_VALUE;
	made += STAND_DEVICES;
	context = (gpu_context)(uintptr_t)(STAND_CONTEXT + made + (unsigned)device);
	stand_by_the_way(context_bytes());
	stand_self.contexts[stand_self.depth++] = (uintptr_t)context;
	*out = context;
	return GPU_SUCCESS;
}

EXPORT gpu_result cuCtxDestroy_v2(gpu_context context)
{
	stand_by_the_way(-context_bytes());
	if ((uintptr_t)context == stand_context())
		stand_self.depth--;
	return GPU_SUCCESS;
}

EXPORT gpu_result cuDevicePrimaryCtxRelease_v2(gpu_device device)
{
	if (!--contexts[device])
		stand_by_the_way(-context_bytes());
	return GPU_SUCCESS;
}

EXPORT gpu_result cuDevicePrimaryCtxReset_v2(gpu_device device)
{
	contexts[device] = 0;
	pthread_mutex_lock(&lock);
	memset(blocks, 0, sizeof(blocks));
	count = 0;
	used = 0;
	pthread_mutex_unlock(&lock);
	return GPU_SUCCESS;
}

/* by the older number, which runtimes up to the newest ask for */
EXPORT gpu_result cuDevicePrimaryCtxReset(gpu_device device)
{
	return cuDevicePrimaryCtxReset_v2(device);
}

EXPORT gpu_result cuDevicePrimaryCtxGetState(gpu_device device, unsigned *flags, int *active)
{
	stand_question("cuDevicePrimaryCtxGetState");
	*flags = 0;
	*active = contexts[device] > 0;
	return GPU_SUCCESS;
}

EXPORT gpu_result cuMemGetInfo_v2(size_t *available, size_t *total)
{
	__atomic_add_fetch(&asked, 1, __ATOMIC_RELAXED);
	stand_question("cuMemGetInfo");
	if (capturing)
		stand_violation("cuMemGetInfo during a capture");
	if (!stand_context()) {
		stand_violation("cuMemGetInfo without a context");
		return GPU_ERROR_INVALID_CONTEXT;
	}
	if ((available && (uintptr_t)available < 4096) || (total && (uintptr_t)total < 4096))
		return GPU_ERROR_INVALID_VALUE;
	if (available)
		*available = capacity() - used + (uint64_t)stand_device();
	if (total) /* identifies the device */
		*total = capacity() + (uint64_t)stand_device();
	return GPU_SUCCESS;
}

#define ALLOC(name) gpu_result name(gpu_ptr *out, size_t size)
/* if set, one driver call makes another by its exported name */
EXPORT gpu_result (*stand_inner)(gpu_ptr *, size_t);
EXPORT ALLOC(cuMemAlloc_v2)
{
	gpu_result (*inner_call)(gpu_ptr *, size_t) = stand_inner;
	gpu_result result;

	if (!inner_call)
		return stand_take(out, size, 'd', 0);
	stand_inner = NULL;
	result = inner_call(out, size);
	stand_inner = inner_call;
	return result;
}
/* the oldest version takes 32 bits and must not get the other's wrapper */
EXPORT gpu_result cuMemAlloc(unsigned *out, unsigned size)
{
	gpu_ptr wide;
	gpu_result result = stand_take(&wide, size, 'd', 0);

	if (!result)
		*out = (unsigned)wide;
	return result;
}
/* its name begins with another one's */
EXPORT int cuMemAlloc_v20(void);
EXPORT int cuMemAlloc_v20(void)
{
	return 20;
}
EXPORT gpu_result cuMemFree_v2(gpu_ptr address)
{
	return address ? stand_give(address) : stand_enter();
}
EXPORT gpu_result cuMemAllocPitch_v2(
    gpu_ptr *out, size_t *pitch, size_t width, size_t height, unsigned element)
{
	if ((uintptr_t)pitch < 4096)
		return GPU_ERROR_INVALID_VALUE;
	*pitch = (width + 511) & ~(size_t)511;
	return stand_take(out, *pitch * height, 'd', 0);
}
/* accepts a NULL out-parameter */
EXPORT gpu_result cuMemAllocManaged(gpu_ptr *out, size_t size, unsigned flags)
{
	gpu_ptr nowhere;

	if (!out)
		out = &nowhere;
	return stand_take(out, size, 'm', 0);
}
EXPORT gpu_result cuMemHostAlloc(void **out, size_t size, unsigned flags)
{
	gpu_ptr p = 0;
	gpu_result result;

	if ((uintptr_t)out < 4096)
		return GPU_ERROR_INVALID_VALUE;
	*out = aligned_alloc(4096, (size + 4095) & ~(size_t)4095);
	result = stand_take(&p, size, 'p', (uintptr_t)*out);
	return result;
}
EXPORT gpu_result cuMemAllocHost_v2(void **out, size_t size)
{
	return cuMemHostAlloc(out, size, 0);
}
EXPORT gpu_result cuMemFreeHost(void *p)
{
	gpu_result result = stand_give((uintptr_t)p);

	if (!result)
		free(p);
	return result;
}
EXPORT gpu_result cuMemHostRegister_v2(void *p, size_t size, unsigned flags)
{
	gpu_ptr out;

	return stand_take(&out, size, 'p', (uintptr_t)p);
}
EXPORT gpu_result cuMemHostUnregister(void *p)
{
	return stand_give((uintptr_t)p);
}

/* pools */
EXPORT gpu_result cuMemAllocFromPoolAsync(
    gpu_ptr *out, size_t size, gpu_pool pool, gpu_stream stream)
{
	gpu_result result = stand_take(out, size, 'a', 0);

	if (!result) {
		pool_used += size;
		if (pool_reserved < pool_used)
			pool_reserved = (pool_used + (32u << 20) - 1) & ~((32ull << 20) - 1);
	}
	return result;
}
EXPORT gpu_result cuMemAllocAsync(gpu_ptr *out, size_t size, gpu_stream stream)
{
	return cuMemAllocFromPoolAsync(out, size, NULL, stream);
}
EXPORT gpu_result cuMemAllocAsync_ptsz(gpu_ptr *out, size_t size, gpu_stream stream)
{
	return stand_take(out, size, 'a', 0);
}
EXPORT gpu_result cuMemFreeAsync(gpu_ptr address, gpu_stream stream)
{
	return stand_give(address);
}
EXPORT gpu_result cuMemFreeAsync_ptsz(gpu_ptr address, gpu_stream stream)
{
	return stand_give(address);
}
EXPORT gpu_result cuDeviceGetMemPool(gpu_pool *out, gpu_device device)
{
	stand_question("cuDeviceGetMemPool");
	*out = (gpu_pool)(uintptr_t)0x9001;
	return GPU_SUCCESS;
}
EXPORT gpu_result cuMemPoolGetAttribute(gpu_pool pool, int attribute, void *value)
{
	stand_question("cuMemPoolGetAttribute");
	*(uint64_t *)value = attribute == GPU_POOL_RESERVED_CURRENT ? pool_reserved : pool_used;
	return GPU_SUCCESS;
}
EXPORT gpu_result cuMemPoolTrimTo(gpu_pool pool, size_t keep)
{
	pool_reserved = pool_used;
	return stand_enter();
}

/* captures */
static gpu_stream captured;

EXPORT gpu_result cuStreamBeginCapture_v2(gpu_stream stream, int mode)
{
	if (mode < 0)
		return GPU_ERROR_INVALID_VALUE;
	capturing = 1;
	captured = stream;
	return GPU_SUCCESS;
}
EXPORT gpu_result cuStreamEndCapture(gpu_stream stream, gpu_graph *out)
{
	if (stream != captured)
		return GPU_ERROR_INVALID_VALUE;
	capturing = 0;
	/* a NULL out-parameter stands for an invalidated capture */
	return out ? GPU_SUCCESS : GPU_ERROR_CAPTURE_INVALIDATED;
}
EXPORT gpu_result cuStreamIsCapturing(gpu_stream stream, int *status)
{
	stand_question("cuStreamIsCapturing");
	*status = capturing;
	return GPU_SUCCESS;
}
EXPORT gpu_result cuMemAdvise(gpu_ptr address, size_t size, int advice, gpu_device device)
{
	return device == 1 ? GPU_SUCCESS : GPU_ERROR_INVALID_VALUE;
}
EXPORT gpu_result cuMemAdvise_v2(
    gpu_ptr address, size_t size, int advice, struct gpu_location where)
{
	return where.type == 1 && where.id == 1 ? GPU_SUCCESS : GPU_ERROR_INVALID_VALUE;
}
/* the prototype of a future version */
EXPORT gpu_result cuMemAdvise_v9(
    gpu_ptr address, size_t size, int advice, struct gpu_location where, uint64_t a, uint64_t b)
{
	return where.id == 1 && a == 5 && b == 6 ? GPU_SUCCESS : GPU_ERROR_INVALID_VALUE;
}
EXPORT gpu_result cuGetExportTable(const void **out, const struct gpu_uuid *id)
{
	*out = NULL;
	return GPU_ERROR_NOT_FOUND;
}

/* look-up */
static gpu_result split_alloc(gpu_ptr *out, size_t size)
{
	return stand_take(out, size, 'd', 0);
}

static const struct {
	const char *name;
	int from;
	void *function, *per_thread;
} entries[] = {
#define ONE(name, from, symbol) {#name, from, (void *)symbol, NULL},
#define TWO(name, from, symbol) {#name, from, (void *)symbol, (void *)symbol##_ptsz},
    ONE(cuInit, 2000, cuInit) ONE(cuMemAlloc, 3020, cuMemAlloc_v2) ONE(cuMemAlloc, 2000, cuMemAlloc)
	ONE(cuMemFree, 3020, cuMemFree_v2) ONE(cuMemAllocPitch, 3020, cuMemAllocPitch_v2) ONE(
	    cuMemAllocManaged, 6000, cuMemAllocManaged) ONE(cuMemHostAlloc, 2020,
	    cuMemHostAlloc) ONE(cuMemFreeHost, 2000, cuMemFreeHost) ONE(cuMemHostRegister, 6050,
	    cuMemHostRegister_v2) ONE(cuMemHostUnregister, 4000, cuMemHostUnregister)
	    TWO(cuMemAllocAsync, 11020, cuMemAllocAsync) TWO(cuMemFreeAsync, 11020, cuMemFreeAsync)
		ONE(cuMemCreate, 10020, cuMemCreate) ONE(cuMemRelease, 10020, cuMemRelease)
		    ONE(cuMemMap, 10020, cuMemMap) ONE(cuMemUnmap, 10020, cuMemUnmap) ONE(
			cuMemAdvise, 99000, cuMemAdvise_v9) ONE(cuMemAdvise, 12020, cuMemAdvise_v2)
			ONE(cuMemAdvise, 8000, cuMemAdvise) ONE(cuMemGetInfo, 3020, cuMemGetInfo_v2)
			    ONE(cuDevicePrimaryCtxRetain, 7000, cuDevicePrimaryCtxRetain)
				ONE(cuDevicePrimaryCtxReset, 11000, cuDevicePrimaryCtxReset_v2)
				    ONE(cuDevicePrimaryCtxReset, 7000, cuDevicePrimaryCtxReset)
					ONE(cuCtxSetCurrent, 4000, cuCtxSetCurrent)
					    ONE(cuCtxGetCurrent, 4000, cuCtxGetCurrent)
						ONE(cuGetExportTable, 3000, cuGetExportTable) ONE(
						    cuGetProcAddress, 12000, cuGetProcAddress_v2)
						    ONE(cuGetProcAddress, 11030, cuGetProcAddress)};

static gpu_result lookup(const char *name, void **out, int version, uint64_t flags)
{
	if (!name || !out)
		return GPU_ERROR_INVALID_VALUE;
	if (getenv("STAND_LOG"))
		fprintf(stderr, "asked %s %d %lu\n", name, version, (unsigned long)flags);
	*out = NULL;
	if (!*name)
		return GPU_SUCCESS; /* the probe of new runtimes */
	for (size_t i = 0; i < sizeof(entries) / sizeof(entries[0]); i++)
		if (!strcmp(entries[i].name, name) && version >= entries[i].from) {
			*out = (flags & 2) && entries[i].per_thread ? entries[i].per_thread
								    : entries[i].function;
			if (*out == (void *)cuMemAlloc_v2 && getenv("STAND_SPLIT"))
				*out = (void *)split_alloc;
			return GPU_SUCCESS;
		}
	return GPU_ERROR_NOT_FOUND;
}

EXPORT gpu_result cuGetProcAddress(const char *name, void **out, int version, uint64_t flags)
{
	return lookup(name, out, version, flags);
}

EXPORT gpu_result cuGetProcAddress_v2(
    const char *name, void **out, int version, uint64_t flags, int *status)
{
	gpu_result result = lookup(name, out, version, flags);

	if (status) /* four arguments would leave garbage here */
		*status = result ? 1 : 0;
	return result;
}

/* for a program that was compiled for per-thread streams */
EXPORT gpu_result cuGetProcAddress_v2_ptsz(
    const char *name, void **out, int version, uint64_t flags, int *status)
{
	return cuGetProcAddress_v2(name, out, version, flags & 1 ? flags : flags | 2, status);
}

EXPORT gpu_result cuGetProcAddress_ptsz(const char *name, void **out, int version, uint64_t flags)
{
	return cuGetProcAddress(name, out, version, flags & 1 ? flags : flags | 2);
}

/* as drivers for WSL do: they look their own functions up */
EXPORT void *stand_own(const char *name)
{
	void *handle = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD),
	     *function = dlsym(handle, name);

	dlclose(handle);
	return function;
}
