/*
 * cuda_device.c - see cuda_device.h. Owns the count of captures and a small table of contexts.
 */
#include "cuda/cuda_device.h"

#include <errno.h>
#include <stddef.h>

#include "base/filter.h"
#include "base/shim_state.h"
#include "cuda/cuda_call.h"
#include "loaded/symbols.h"
#include "shim.h"

#define CONTEXTS 32

/* The driver's functions for queries. */
static struct {
	gpu_result (*ctx_current)(gpu_context *);
	gpu_result (*ctx_device)(gpu_device *);
	gpu_result (*memory)(size_t *, size_t *);
	gpu_result (*capturing)(gpu_stream, int *);
	gpu_result (*pool_of)(gpu_pool *, gpu_device);
	gpu_result (*pool_attribute)(gpu_pool, int, void *);
	gpu_result (*graph_attribute)(gpu_device, int, void *);
	gpu_result (*primary_state)(gpu_device, unsigned *, int *);
	gpu_result (*ctx_push)(gpu_context);
	gpu_result (*ctx_pop)(gpu_context *);
} driver;
static bool functions_found; /* `driver` is filled in */

static int captures; /* streams that may be capturing, in the whole process */

/* If the parent had a context, its child cannot use the driver. */
static bool had_context, inherited;

static struct {
	uint64_t context;
	int device;
} contexts[CONTEXTS];

static struct {
	uint64_t available, total;
} last_memory[SPACE_DEVICES];

void cuda_device_find_functions(const void *function)
{
	static const char *const names[] = {"cuCtxGetCurrent", "cuCtxGetDevice", "cuMemGetInfo_v2",
	    "cuStreamIsCapturing", "cuDeviceGetMemPool", "cuMemPoolGetAttribute",
	    "cuDeviceGetGraphMemAttribute", "cuDevicePrimaryCtxGetState", "cuCtxPushCurrent_v2",
	    "cuCtxPopCurrent_v2"};
	void *addresses[sizeof(names) / sizeof(names[0])] = {NULL};
	void **slot = (void **)&driver;

	_Static_assert(sizeof(driver) == sizeof(addresses), "one name for each");
	if (__atomic_load_n(&functions_found, __ATOMIC_ACQUIRE))
		return;
	symbols_in(function, names, addresses, sizeof(names) / sizeof(names[0]));
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		__atomic_store_n(&slot[i], addresses[i], __ATOMIC_RELAXED);
	__atomic_store_n(&functions_found, true, __ATOMIC_RELEASE);
}

static bool may_query(void)
{
	return __atomic_load_n(&functions_found, __ATOMIC_ACQUIRE) && !shim.ending && !inherited &&
	       !shim_is_copy();
}

/* Calls a function of the driver. If that calls a wrapper, the wrapper records nothing. Keeps
 * errno.
 */
#define QUERY(function, ...)                                                                       \
	__extension__({                                                                            \
		gpu_result result_ = GPU_ERROR_NOT_INITIALIZED;                                    \
		if (may_query() && driver.function) {                                              \
			bool querying_ = cuda_self.querying;                                       \
			int errno_ = errno;                                                        \
			cuda_self.querying = true;                                                 \
			result_ = driver.function(__VA_ARGS__);                                    \
			cuda_self.querying = querying_;                                            \
			errno = errno_;                                                            \
		}                                                                                  \
		result_;                                                                           \
	})

static uint64_t current_context(void)
{
	gpu_context context = NULL;

	if (QUERY(ctx_current, &context) != GPU_SUCCESS || !context)
		return 0;
	if (SHIM_UNLIKELY(!had_context))
		had_context = true;
	return (uintptr_t)context;
}

int cuda_device_now(uint64_t *context)
{
	uint64_t now = current_context(), expected = 0;
	gpu_device device = -1;

	*context = now;
	if (!now)
		return -1;
	for (unsigned i = 0; i < CONTEXTS; i++)
		if (__atomic_load_n(&contexts[i].context, __ATOMIC_ACQUIRE) == now)
			return __atomic_load_n(&contexts[i].device, __ATOMIC_RELAXED) - 1;
	if (QUERY(ctx_device, &device) != GPU_SUCCESS || device < 0 || device >= SPACE_DEVICES)
		return -1;
	for (unsigned i = 0; i < CONTEXTS; i++, expected = 0) {
		/* the device first: a reader sees 0, not stored yet, as -1 */
		if (__atomic_load_n(&contexts[i].context, __ATOMIC_RELAXED) == 0 &&
		    __atomic_compare_exchange_n(&contexts[i].device, &(int){0}, device + 1, false,
			__ATOMIC_ACQ_REL, __ATOMIC_RELAXED)) {
			__atomic_compare_exchange_n(&contexts[i].context, &expected, now, false,
			    __ATOMIC_RELEASE, __ATOMIC_RELAXED);
			break;
		}
	}
	return device;
}

void cuda_device_context_destroyed(uint64_t context)
{
	for (unsigned i = 0; i < CONTEXTS; i++)
		if (__atomic_load_n(&contexts[i].context, __ATOMIC_ACQUIRE) == context) {
			__atomic_store_n(&contexts[i].context, 0, __ATOMIC_RELAXED);
			__atomic_store_n(&contexts[i].device, 0, __ATOMIC_RELEASE);
		}
}

static bool is_safe_moment(void)
{
	/* under a seccomp filter a system call of the driver may kill the host */
	return shim.mode == SHIM_RECORDING && !shim.sandboxed && !filter_any() &&
	       !__atomic_load_n(&captures, __ATOMIC_ACQUIRE) && !cuda_self.querying;
}

bool cuda_device_may_ask(int device)
{
	uint64_t context;
	int now;

	/* without a context the driver may not be initialised */
	if (!had_context || !is_safe_moment())
		return false;
	now = cuda_device_now(&context);
	return context && (device < 0 || now == device);
}

bool cuda_device_memory(uint64_t *available, uint64_t *total)
{
	size_t now = 0, all = 0;

	if (QUERY(memory, &now, &all) != GPU_SUCCESS)
		return false;
	*available = now;
	*total = all;
	return true;
}

bool cuda_device_memory_in(int device, uint64_t context, uint64_t *available, uint64_t *total)
{
	gpu_context handle = (gpu_context)(uintptr_t)context, popped;
	bool answered;

	if (cuda_device_may_ask(device))
		return cuda_device_memory(available, total);
	if (!is_safe_moment() || device < 0 || device >= SPACE_DEVICES ||
	    last_memory[device].total || QUERY(ctx_push, handle) != GPU_SUCCESS)
		return false;
	had_context = true;
	answered = cuda_device_memory(available, total);
	QUERY(ctx_pop, &popped);
	return answered;
}

bool cuda_device_pool(int device, uint64_t pool, uint64_t *reserved, uint64_t *used)
{
	gpu_pool handle = (gpu_pool)(uintptr_t)pool;

	*reserved = *used = 0;
	if (!pool && QUERY(pool_of, &handle, device) != GPU_SUCCESS)
		return false;
	return QUERY(pool_attribute, handle, GPU_POOL_RESERVED_CURRENT, reserved) == GPU_SUCCESS &&
	       QUERY(pool_attribute, handle, GPU_POOL_USED_CURRENT, used) == GPU_SUCCESS;
}

bool cuda_device_graphs(int device, uint64_t *reserved, uint64_t *used)
{
	*reserved = *used = 0;
	return QUERY(graph_attribute, device, GPU_GRAPH_RESERVED_CURRENT, reserved) ==
		   GPU_SUCCESS &&
	       QUERY(graph_attribute, device, GPU_GRAPH_USED_CURRENT, used) == GPU_SUCCESS;
}

bool cuda_device_captures(uint64_t stream)
{
	int status = 0;

	return __atomic_load_n(&captures, __ATOMIC_ACQUIRE) > 0 &&
	       QUERY(capturing, (gpu_stream)(uintptr_t)stream, &status) == GPU_SUCCESS && status;
}

void cuda_device_capture(int change)
{
	int now = __atomic_add_fetch(&captures, change, __ATOMIC_ACQ_REL);

	/* we did not see this capture begin */
	if (now < 0)
		__atomic_compare_exchange_n(
		    &captures, &now, 0, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED);
}

bool cuda_device_primary_inactive(int device)
{
	unsigned flags;
	int active = 1;

	return QUERY(primary_state, device, &flags, &active) == GPU_SUCCESS && !active;
}

void cuda_device_set_last_memory(int device, uint64_t available, uint64_t total)
{
	if (device < 0 || device >= SPACE_DEVICES)
		return;
	__atomic_store_n(&last_memory[device].available, available, __ATOMIC_RELAXED);
	__atomic_store_n(&last_memory[device].total, total, __ATOMIC_RELAXED);
}

bool cuda_device_last_memory(int device, uint64_t *available, uint64_t *total)
{
	if (device < 0 || device >= SPACE_DEVICES || !last_memory[device].total)
		return false;
	*available = __atomic_load_n(&last_memory[device].available, __ATOMIC_RELAXED);
	*total = __atomic_load_n(&last_memory[device].total, __ATOMIC_RELAXED);
	return true;
}

void cuda_device_forked(void)
{
	inherited |= had_context;
	captures = 0;
	for (int i = 0; i < SPACE_DEVICES; i++)
		cuda_device_set_last_memory(i, 0, 0);
}
