/*
 * runtime.c - the runtime's entry points for errors, devices and versions. One library serves major
 * versions 11 to 13: where an entry point differs, the caller's version decides.
 */
#include "simgpu/runtime/runtime.h"

#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include <string.h>

#include "simgpu/driver/driver.h"
#include "simgpu/driver/errors.h"

static bool retained_contexts[SIMGPU_DEVICES]; /* primary contexts that the runtime holds */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

int runtime_end(int rc)
{
	if (rc)
		thread_state.last_error = rc;
	return rc;
}

int runtime_up(void)
{
	int rc = state_enter();

	/* initialises in a fresh process, but not in a forked child */
	return rc == SIM_NOT_INITIALIZED ? cuInit(0) : rc;
}

int runtime_enter(void)
{
	struct context *context;
	gpu_context made;
	int device, rc = runtime_up();

	if (rc)
		return rc;
	context = context_current();
	if (context && object_get(context, OBJECT_CONTEXT))
		return SIM_OK;
	device = device_of(thread_state.device);
	if (device < 0)
		return state_count() ? SIM_INVALID_DEVICE : SIM_NO_DEVICE;
	pthread_mutex_lock(&lock);
	made = primary_of(device);
	if (!retained_contexts[device] || !primary_of(device)->retained)
		rc = cuDevicePrimaryCtxRetain(&made, thread_state.device);
	retained_contexts[device] = retained_contexts[device] || !rc;
	pthread_mutex_unlock(&lock);
	return rc ? rc : cuCtxSetCurrent(made);
}

/* Returns the digits after libcudart.so. in the libraries that the object needs; 0: none. */
static int major_of(const struct link_map *map)
{
	const char *strings = NULL;

	for (const ElfW(Dyn) *d = map->l_ld; d && d->d_tag; d++)
		if (d->d_tag == DT_STRTAB)
			strings = (const char *)d->d_un.d_ptr;
	/* some loaders leave this address relative */
	if (strings && (ElfW(Addr))strings < map->l_addr)
		strings += map->l_addr;
	for (const ElfW(Dyn) *d = map->l_ld; strings && d && d->d_tag; d++) {
		const char *name = strings + d->d_un.d_val;

		if (d->d_tag == DT_NEEDED && !strncmp(name, "libcudart.so.", 13))
			return (name[13] - '0') * 10 + (name[14] - '0');
	}
	return 0;
}

int runtime_major(const void *caller)
{
	static struct {
		const void *map;
		int major;
	} seen[32];
	static unsigned count;
	struct link_map *map = NULL;
	Dl_info info;
	int major;
	unsigned n = __atomic_load_n(&count, __ATOMIC_ACQUIRE);

	if (!dladdr1(caller, &info, (void **)&map, RTLD_DL_LINKMAP) || !map)
		return 13;
	for (unsigned i = 0; i < n; i++)
		if (seen[i].map == map)
			return seen[i].major;
	major = major_of(map);
	if (!major) {
		/* called through a wrapper: use the version that any object of the program has */
		while (map->l_prev)
			map = map->l_prev;
		for (; map && !major; map = map->l_next)
			major = major_of(map);
		return major ? major : 13;
	}
	pthread_mutex_lock(&lock);
	if (count < sizeof(seen) / sizeof(*seen)) {
		seen[count].map = map;
		seen[count].major = major;
		__atomic_store_n(&count, count + 1, __ATOMIC_RELEASE);
	}
	pthread_mutex_unlock(&lock);
	return major;
}

API(cudaGetLastError, (void))
{
	int rc = thread_state.last_error;

	thread_state.last_error = 0;
	return rc;
}

API_RETURNS(cudaPeekAtLastError, (void), thread_state.last_error)

EXPORTED(const char *, cudaGetErrorName, (int error))
{
	const char *name = error_name(error, ERROR_RUNTIME);

	return name ? name : "unrecognized error code";
}

EXPORTED(const char *, cudaGetErrorString, (int error))
{
	const char *text = error_text(error);

	return text ? text : "unrecognized error code";
}

API_RETURNS(cudaDriverGetVersion, (int *version), runtime_end(cuDriverGetVersion(version)))

API(cudaRuntimeGetVersion, (int *version))
{
	if (!version)
		return runtime_end(SIM_INVALID_VALUE);
	switch (CALLER_MAJOR()) {
	case 11:
		*version = 11080;
		break;
	case 12:
		*version = 12080;
		break;
	default:
		*version = SIM_DRIVER_VERSION;
		break;
	}
	return SIM_OK;
}

API(cudaGetDeviceCount, (int *count))
{
	int rc = runtime_up();

	if (!count)
		return runtime_end(SIM_INVALID_VALUE);
	*count = rc ? 0 : state_count();
	return runtime_end(rc);
}

API(cudaGetDevice, (gpu_device * device))
{
	int rc = runtime_up();

	if (!device)
		return runtime_end(SIM_INVALID_VALUE);
	if (!rc) {
		struct context *context = context_current();

		*device = context ? ordinal_of(context->head.device) : thread_state.device;
	}
	return runtime_end(rc);
}

/* From 12 on it also creates the device's context. */
API(cudaSetDevice, (gpu_device device))
{
	int rc = runtime_up();

	if (rc)
		return runtime_end(rc);
	if (device_of(device) < 0)
		return runtime_end(SIM_INVALID_DEVICE);
	thread_state.device = device;
	if (context_current() && ordinal_of(context_current()->head.device) != device)
		cuCtxSetCurrent(NULL);
	return runtime_end(CALLER_MAJOR() >= 12 ? runtime_enter() : SIM_OK);
}

API(cudaInitDevice, (gpu_device device, unsigned device_flags, unsigned flags))
{
	int before = thread_state.device, rc = cudaSetDevice(device);

	if (!rc)
		rc = runtime_enter();
	if (before != device && !rc)
		rc = cudaSetDevice(before);
	return runtime_end(rc);
}

API_RETURNS(cudaSetDeviceFlags, (unsigned flags), runtime_end(runtime_up()))

API(cudaGetDeviceFlags, (unsigned *flags))
{
	if (!flags)
		return runtime_end(SIM_INVALID_VALUE);
	*flags = 0;
	return runtime_end(runtime_up());
}

API_RETURNS(cudaSetValidDevices, (int *devices, int count), runtime_end(runtime_up()))
FORWARD_AS(API, runtime_up, cudaDeviceGetAttribute, (int *value, int attribute, gpu_device device),
    cuDeviceGetAttribute(value, attribute, device))
FORWARD_AS(API, runtime_up, cudaDeviceGetPCIBusId, (char *id, int size, gpu_device device),
    cuDeviceGetPCIBusId(id, size, device))
FORWARD_AS(API, runtime_up, cudaDeviceGetByPCIBusId, (gpu_device * device, const char *id),
    cuDeviceGetByPCIBusId(device, id))
FORWARD_AS(API, runtime_up, cudaDeviceCanAccessPeer, (int *can, gpu_device device, gpu_device peer),
    cuDeviceCanAccessPeer(can, device, peer))
FORWARD_AS(API, runtime_up, cudaDeviceGetP2PAttribute,
    (int *value, int attribute, gpu_device device, gpu_device peer),
    cuDeviceGetP2PAttribute(value, attribute, device, peer))

static int peer_access(gpu_device peer, bool enable)
{
	gpu_context context;
	int rc = runtime_enter();

	if (!rc)
		rc = cuDevicePrimaryCtxRetain(&context, peer);
	if (!rc)
		rc = enable ? cuCtxEnablePeerAccess(context, 0) : cuCtxDisablePeerAccess(context);
	return runtime_end(rc);
}

API_RETURNS(cudaDeviceEnablePeerAccess, (gpu_device peer, unsigned flags), peer_access(peer, true))
API_RETURNS(cudaDeviceDisablePeerAccess, (gpu_device peer), peer_access(peer, false))

/* Offsets of cudaDeviceProp's fields, from 13 on and before: 13 removed some. */
static const struct layout {
	size_t size, multiprocessors, integrated, map_host, concurrent, bus, engines, unified,
	    bus_width, l2, threads, priorities, shared_multiprocessor, regs_multiprocessor, managed,
	    managed_concurrent, cooperative, shared_optin, blocks, shared_reserved;
} layouts[] = {
    {728, 388, 396, 400, 576, 584, 600, 604, 612, 616, 624, 628, 640, 648, 652, 676, 688, 696, 712,
	720},
    {1008, 384, 388, 392, 560, 568, 584, 588, 592, 596, 604, 608, 624, 632, 636, 656, 668, 672, 688,
	696},
};

static void put_field(void *out, size_t at, uint64_t value, size_t width)
{
	memcpy((char *)out + at, &value, width);
}

static int properties(void *out, gpu_device ordinal, const struct layout *l, size_t size)
{
	const struct device_spec *spec;
	int device, rc = runtime_up();

	if (rc)
		return rc;
	device = device_of(ordinal);
	if (!out || device < 0)
		return out ? SIM_INVALID_DEVICE : SIM_INVALID_VALUE;
	spec = &state_config()->devices[device];
	memset(out, 0, size);
	/* the name is the first field */
	memcpy(out, spec->name, strlen(spec->name) + 1);
	device_uuid(device, (uint8_t *)out + 256);
	put_field(out, 288, spec->bytes, 8);
	put_field(out, 296, 49152, 8); /* shared memory of a block */
	put_field(out, 304, 65536, 4); /* registers of a block */
	put_field(out, 308, 32, 4); /* warp */
	put_field(out, 312, 2147483647, 8);
	put_field(out, 320, 1024, 4); /* threads of a block */
	put_field(out, 324, 1024, 4);
	put_field(out, 328, 1024, 4);
	put_field(out, 332, 64, 4);
	put_field(out, 336, 2147483647, 4);
	put_field(out, 340, 65535, 4);
	put_field(out, 344, 65535, 4);
	put_field(out, 352, 65536, 8); /* constant memory */
	put_field(out, 360, (uint64_t)spec->major, 4);
	put_field(out, 364, (uint64_t)spec->minor, 4);
	put_field(out, 368, 512, 8);
	put_field(out, 376, 32, 8);
	put_field(out, l->multiprocessors, (uint64_t)spec->multiprocessors, 4);
	put_field(out, l->map_host, 1, 4);
	put_field(out, l->concurrent, 1, 4);
	put_field(out, l->bus, (uint64_t)device + 1, 4);
	put_field(out, l->engines, 3, 4);
	put_field(out, l->unified, 1, 4);
	put_field(out, l->bus_width, 5120, 4);
	put_field(out, l->l2, 40 << 20, 4);
	put_field(out, l->threads, 2048, 4);
	put_field(out, l->priorities, 1, 4);
	put_field(out, l->shared_multiprocessor, 167936, 8);
	put_field(out, l->regs_multiprocessor, 65536, 4);
	put_field(out, l->managed, 1, 4);
	put_field(out, l->managed_concurrent, 1, 4);
	put_field(out, l->cooperative, 1, 4);
	put_field(out, l->shared_optin, 166912, 8);
	put_field(out, l->blocks, 32, 4);
	put_field(out, l->shared_reserved, 1024, 8);
	return SIM_OK;
}

API(cudaGetDeviceProperties, (void *out, gpu_device device))
{
	const struct layout *l = &layouts[CALLER_MAJOR() >= 13];

	return runtime_end(properties(out, device, l, l->size));
}

API_RETURNS(cudaGetDeviceProperties_v2, (void *out, gpu_device device),
    runtime_end(properties(out, device, &layouts[0], 1032)))

API(cudaChooseDevice, (gpu_device * device, const void *like))
{
	if (!device)
		return runtime_end(SIM_INVALID_VALUE);
	*device = 0;
	return runtime_end(runtime_up());
}

FORWARD(cudaDeviceSynchronize, (void), cuCtxSynchronize())
API_RETURNS(cudaThreadSynchronize, (void), cudaDeviceSynchronize())

API(cudaDeviceReset, (void))
{
	int rc = runtime_up();

	if (!rc)
		rc = cuDevicePrimaryCtxReset_v2(thread_state.device);
	if (!rc && device_of(thread_state.device) >= 0)
		retained_contexts[device_of(thread_state.device)] = false;
	return runtime_end(rc);
}

FORWARD(cudaDeviceSetLimit, (int limit, size_t value), cuCtxSetLimit(limit, value))
FORWARD(cudaDeviceGetLimit, (size_t * value, int limit), cuCtxGetLimit(value, limit))
FORWARD(cudaDeviceGetStreamPriorityRange, (int *least, int *greatest),
    cuCtxGetStreamPriorityRange(least, greatest))
API_RETURNS(cudaDeviceGetCacheConfig, (int *config), runtime_end(cuCtxGetCacheConfig(config)))
API_RETURNS(cudaDeviceSetCacheConfig, (int config), SIM_OK)
API_RETURNS(cudaProfilerStart, (void), runtime_end(runtime_up()))
API_RETURNS(cudaProfilerStop, (void), runtime_end(runtime_up()))

/* Before 12 there is no fourth argument. */
static int entry_point(
    const char *name, void **out, unsigned version, unsigned long long flags, int *status)
{
	int found = 1, rc;

	if (!name || !out)
		return SIM_INVALID_VALUE;
	rc = cuGetProcAddress_v2(name, out, (int)version, flags, &found);
	if (status)
		*status = found;
	return rc == SIM_NOT_FOUND && status ? SIM_OK : rc;
}

API_PTSZ(
    cudaGetDriverEntryPoint, (const char *name, void **out, unsigned long long flags, int *status))
{
	int major = CALLER_MAJOR();

	return runtime_end(
	    entry_point(name, out, (unsigned)major * 1000, flags, major >= 12 ? status : NULL));
}

API_PTSZ_RETURNS(cudaGetDriverEntryPointByVersion,
    (const char *name, void **out, unsigned version, unsigned long long flags, int *status),
    runtime_end(entry_point(name, out, version, flags, status)))
API_RETURNS(cudaGetExportTable, (const void **out, const struct gpu_uuid *id),
    runtime_end(cuGetExportTable(out, id)))
