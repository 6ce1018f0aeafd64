/*
 * driver.c - the driver's entry points for initialisation, devices, contexts and errors.
 */
#include <stdio.h>
#include <string.h>

#include "simgpu/driver/driver.h"
#include "simgpu/driver/errors.h"

API_RETURNS(cuInit, (unsigned flags), flags ? SIM_INVALID_VALUE : state_init())

API(cuDriverGetVersion, (int *version))
{
	if (!version)
		return SIM_INVALID_VALUE;
	*version = SIM_DRIVER_VERSION;
	return SIM_OK;
}

API(cuGetErrorName, (int error, const char **text))
{
	if (!text)
		return SIM_INVALID_VALUE;
	*text = error_name(error, ERROR_DRIVER);
	return *text ? SIM_OK : SIM_INVALID_VALUE;
}

API(cuGetErrorString, (int error, const char **text))
{
	if (!text)
		return SIM_INVALID_VALUE;
	*text = error_text(error);
	return *text ? SIM_OK : SIM_INVALID_VALUE;
}

API(cuDeviceGetCount, (int *count))
{
	int rc = state_enter();

	if (!rc && !count)
		rc = SIM_INVALID_VALUE;
	if (!rc)
		*count = state_count();
	return rc;
}

API(cuDeviceGet, (gpu_device * device, int ordinal))
{
	int rc = state_enter();

	if (rc || !device)
		return rc ? rc : SIM_INVALID_VALUE;
	if (device_of(ordinal) < 0)
		return SIM_INVALID_DEVICE;
	*device = ordinal;
	return SIM_OK;
}

/* Begins a query about a device: checks its ordinal and `out`. */
static int find_spec(gpu_device device, const void *out, const struct device_spec **spec)
{
	int rc = state_enter();

	if (rc)
		return rc;
	if (device_of(device) < 0)
		return SIM_INVALID_DEVICE;
	*spec = &state_config()->devices[device_of(device)];
	return out ? SIM_OK : SIM_INVALID_VALUE;
}

API(cuDeviceGetName, (char *name, int size, gpu_device device))
{
	const struct device_spec *spec;
	int rc = find_spec(device, name, &spec);

	if (rc || size <= 0)
		return rc ? rc : SIM_INVALID_VALUE;
	snprintf(name, (size_t)size, "%s", spec->name);
	return SIM_OK;
}

void device_uuid(int device, uint8_t out[16])
{
	memcpy(out, "whyoom simgpu 00", 16);
	out[14] = (uint8_t)('0' + device / 10);
	out[15] = (uint8_t)('0' + device % 10);
}

API(cuDeviceGetUuid_v2, (struct gpu_uuid * uuid, gpu_device device))
{
	const struct device_spec *spec;
	int rc = find_spec(device, uuid, &spec);

	if (!rc)
		device_uuid(device_of(device), uuid->bytes);
	return rc;
}

API_RETURNS(cuDeviceGetUuid, (struct gpu_uuid * uuid, gpu_device device),
    self_cuDeviceGetUuid_v2(uuid, device))

API(cuDeviceTotalMem_v2, (size_t * bytes, gpu_device device))
{
	const struct device_spec *spec;
	int rc = find_spec(device, bytes, &spec);

	if (!rc)
		*bytes = spec->bytes;
	return rc;
}

API(cuDeviceComputeCapability, (int *major, int *minor, gpu_device device))
{
	const struct device_spec *spec;
	int rc = find_spec(device, major && minor ? major : NULL, &spec);

	if (rc)
		return rc;
	*major = spec->major;
	*minor = spec->minor;
	return SIM_OK;
}

/* By CUdevice_attribute, the values of a device of compute capability 8.0; the others are 0. */
static const int attributes[160] = {
    [1 ... 3] = 1024,
    [4] = 64,
    [5] = 2147483647,
    [6 ... 7] = 65535,
    [8] = 49152,
    [9] = 65536,
    [10] = 32,
    [11] = 2147483647,
    [12] = 65536,
    [13] = 1410000,
    [14] = 512,
    [15] = 1,
    [19] = 1,
    [31] = 1,
    [36] = 1215000,
    [37] = 5120,
    [38] = 41943040,
    [39] = 2048,
    [40] = 3,
    [41] = 1,
    [42] = 32768,
    [78 ... 80] = 1,
    [81] = 167936,
    [82] = 65536,
    [83] = 1,
    [86] = 1,
    [87] = 2,
    [89 ... 93] = 1,
    [95] = 1,
    [97] = 166912,
    [98] = 1,
    [102 ... 103] = 1,
    [106] = 32,
    [109] = 1,
    [111] = 1024,
    [113 ... 115] = 1,
    [119] = 1,
    [121] = 1,
};

API(cuDeviceGetAttribute, (int *value, int attribute, gpu_device device))
{
	const struct device_spec *spec;
	int rc = find_spec(device, value, &spec);

	if (rc)
		return rc;
	switch (attribute) {
	case 16:
		*value = spec->multiprocessors;
		return SIM_OK;
	case 33: /* PCI bus, device, domain */
		*value = device_of(device) + 1;
		return SIM_OK;
	case 75:
		*value = spec->major;
		return SIM_OK;
	case 76:
		*value = spec->minor;
		return SIM_OK;
	case 120: /* clusters */
		*value = spec->major >= 9;
		return SIM_OK;
	default:
		*value = attribute > 0 && attribute < 160 ? attributes[attribute] : 0;
		return attribute > 0 && attribute < 160 ? SIM_OK : SIM_INVALID_VALUE;
	}
}

API(cuDeviceCanAccessPeer, (int *can, gpu_device device, gpu_device peer))
{
	const struct device_spec *spec;
	int rc = find_spec(device, can, &spec);

	if (rc || device_of(peer) < 0)
		return rc ? rc : SIM_INVALID_DEVICE;
	*can = device != peer;
	return SIM_OK;
}

API(cuDeviceGetP2PAttribute, (int *value, int attribute, gpu_device device, gpu_device peer))
{
	const struct device_spec *spec;
	int rc = find_spec(device, value, &spec);

	if (rc || device_of(peer) < 0 || device == peer)
		return rc ? rc : SIM_INVALID_DEVICE;
	*value = attribute == 2; /* access is supported */
	return SIM_OK;
}

API(cuDeviceGetPCIBusId, (char *id, int size, gpu_device device))
{
	const struct device_spec *spec;
	int rc = find_spec(device, id, &spec);

	if (rc || size < 13)
		return rc ? rc : SIM_INVALID_VALUE;
	snprintf(id, (size_t)size, "0000:%02X:00.0", device_of(device) + 1);
	return SIM_OK;
}

API(cuDeviceGetByPCIBusId, (gpu_device * device, const char *id))
{
	unsigned domain, bus;
	int rc = state_enter();

	if (rc || !device || !id || sscanf(id, "%x:%x", &domain, &bus) != 2)
		return rc ? rc : SIM_INVALID_VALUE;
	if (!bus || ordinal_of((int)bus - 1) < 0)
		return SIM_INVALID_DEVICE;
	*device = ordinal_of((int)bus - 1);
	return SIM_OK;
}

API(cuDevicePrimaryCtxRetain, (gpu_context * out, gpu_device ordinal))
{
	struct context *context;
	int device, rc = driver_begin_device(ordinal, &device);

	if (rc)
		return rc;
	if (!out)
		return driver_end(SIM_INVALID_VALUE);
	rc = inject_failure("cuDevicePrimaryCtxRetain", state_config()->devices[device].context)
		 ? SIM_OUT_OF_MEMORY
		 : primary_retain(device, &context);
	if (!rc)
		*out = context;
	return driver_end(rc);
}

static int primary_end(gpu_device ordinal, enum primary_end how)
{
	int device, rc = driver_begin_device(ordinal, &device);

	return rc ? rc : driver_end(primary_release(device, how));
}

API_RETURNS(cuDevicePrimaryCtxRelease_v2, (gpu_device device), primary_end(device, PRIMARY_RELEASE))
API_RETURNS(cuDevicePrimaryCtxRelease, (gpu_device device), primary_end(device, PRIMARY_RELEASE))
API_RETURNS(cuDevicePrimaryCtxReset_v2, (gpu_device device), primary_end(device, PRIMARY_RESET))
API_RETURNS(cuDevicePrimaryCtxReset, (gpu_device device), primary_end(device, PRIMARY_RESET))

API(cuDevicePrimaryCtxGetState, (gpu_device ordinal, unsigned *flags, int *active))
{
	int device, rc = driver_begin_device(ordinal, &device);

	if (rc)
		return rc;
	if (flags)
		*flags = primary_of(device)->flags;
	if (active)
		*active = primary_of(device)->retained > 0;
	return driver_end(SIM_OK);
}

API(cuDevicePrimaryCtxSetFlags_v2, (gpu_device ordinal, unsigned flags))
{
	int device, rc = driver_begin_device(ordinal, &device);

	if (rc)
		return rc;
	primary_of(device)->flags = flags;
	return driver_end(SIM_OK);
}

static int context_push(struct context *context)
{
	struct thread_state *t = &thread_state;

	if (t->depth == (int)(sizeof(t->stack) / sizeof(*t->stack)))
		return SIM_OUT_OF_MEMORY;
	t->stack[t->depth++] = context;
	return SIM_OK;
}

static int create(gpu_context *out, unsigned flags, gpu_device ordinal)
{
	struct context *context;
	int device, rc = driver_begin_device(ordinal, &device);

	if (rc)
		return rc;
	if (!out)
		return driver_end(SIM_INVALID_VALUE);
	rc = inject_failure("cuCtxCreate", state_config()->devices[device].context)
		 ? SIM_OUT_OF_MEMORY
		 : context_new(device, flags, &context);
	if (!rc) {
		*out = context;
		rc = context_push(context);
	}
	return driver_end(rc);
}

API_RETURNS(cuCtxCreate_v2, (gpu_context * out, unsigned flags, gpu_device device),
    create(out, flags, device))
API_RETURNS(cuCtxCreate_v3,
    (gpu_context * out, void *affinity, int count, unsigned flags, gpu_device device),
    create(out, flags, device))
API_RETURNS(cuCtxCreate_v4, (gpu_context * out, void *params, unsigned flags, gpu_device device),
    create(out, flags, device))

API(cuCtxDestroy_v2, (gpu_context handle))
{
	int rc;
	struct context *context = driver_begin_object(handle, OBJECT_CONTEXT, &rc);

	return context ? driver_end(context_destroy(context)) : rc;
}

API(cuCtxGetCurrent, (gpu_context * out))
{
	int rc = state_enter();

	if (rc || !out)
		return rc ? rc : SIM_INVALID_VALUE;
	*out = context_current();
	return SIM_OK;
}

API(cuCtxSetCurrent, (gpu_context handle))
{
	struct thread_state *t = &thread_state;
	int rc = state_enter();

	if (rc)
		return rc;
	if (!handle) {
		t->depth -= t->depth > 0;
		return SIM_OK;
	}
	if (!object_get(handle, OBJECT_CONTEXT))
		return SIM_INVALID_CONTEXT;
	if (!t->depth)
		return context_push(handle);
	t->stack[t->depth - 1] = handle;
	return SIM_OK;
}

API(cuCtxPushCurrent_v2, (gpu_context handle))
{
	int rc = state_enter();

	if (rc)
		return rc;
	return object_get(handle, OBJECT_CONTEXT) ? context_push(handle) : SIM_INVALID_CONTEXT;
}

API(cuCtxPopCurrent_v2, (gpu_context * out))
{
	int rc = state_enter();

	if (rc)
		return rc;
	if (!thread_state.depth)
		return SIM_INVALID_CONTEXT;
	if (out)
		*out = context_current();
	thread_state.depth--;
	return SIM_OK;
}

API(cuCtxGetDevice, (gpu_device * device))
{
	struct context *context;
	int rc = state_enter();

	if (!rc)
		rc = device ? context_need(&context) : SIM_INVALID_VALUE;
	if (!rc)
		*device = ordinal_of(context->head.device);
	return rc;
}

API(cuCtxGetDevice_v2, (gpu_device * device, gpu_context handle))
{
	struct context *context;
	int rc = state_enter();

	if (!handle)
		return self_cuCtxGetDevice(device);
	context = object_get(handle, OBJECT_CONTEXT);
	if (rc || !device || !context)
		return rc ? rc : context ? SIM_INVALID_VALUE : SIM_INVALID_CONTEXT;
	*device = ordinal_of(context->head.device);
	return SIM_OK;
}

API(cuCtxGetFlags, (unsigned *flags))
{
	struct context *context;
	int rc = state_enter();

	if (!rc)
		rc = flags ? context_need(&context) : SIM_INVALID_VALUE;
	if (!rc)
		*flags = context->flags;
	return rc;
}

API(cuCtxGetId, (gpu_context handle, unsigned long long *id))
{
	struct context *context = handle ? object_get(handle, OBJECT_CONTEXT) : context_current();

	if (state_enter() || !context || !id)
		return context ? SIM_INVALID_VALUE : SIM_INVALID_CONTEXT;
	*id = context->id;
	return SIM_OK;
}

API(cuCtxGetApiVersion, (gpu_context handle, unsigned *version))
{
	if (!version)
		return SIM_INVALID_VALUE;
	*version = 3020;
	return SIM_OK;
}

/* Applies the effects of a synchronisation of the current device. */
static int after_synchronise(void)
{
	struct context *context;
	int rc = driver_begin_unsafe(&context);

	return rc ? rc : driver_end_synchronised(context->head.device);
}

API_RETURNS(cuCtxSynchronize, (void), after_synchronise())
API_RETURNS(cuCtxSynchronize_v2, (gpu_context context), after_synchronise())

static size_t limits[16] = {1024, 1048576, 8388608, 2, 2048};

API(cuCtxGetLimit, (size_t * value, int limit))
{
	int rc = state_enter();

	if (rc || !value || limit < 0 || limit >= 16)
		return rc ? rc : SIM_INVALID_VALUE;
	*value = limits[limit];
	return SIM_OK;
}

API(cuCtxSetLimit, (int limit, size_t value))
{
	int rc = state_enter();

	if (rc || limit < 0 || limit >= 16)
		return rc ? rc : SIM_INVALID_VALUE;
	limits[limit] = value;
	return SIM_OK;
}

API(cuCtxGetCacheConfig, (int *config))
{
	if (!config)
		return SIM_INVALID_VALUE;
	*config = 0;
	return SIM_OK;
}

API_RETURNS(cuCtxSetCacheConfig, (int config), SIM_OK)

API(cuCtxGetStreamPriorityRange, (int *least, int *greatest))
{
	if (least)
		*least = 0;
	if (greatest)
		*greatest = -5;
	return SIM_OK;
}

/* Bits: [device][peer]. */
static uint32_t peers[SIMGPU_DEVICES];

API(cuCtxEnablePeerAccess, (gpu_context handle, unsigned flags))
{
	struct context *peer = object_get(handle, OBJECT_CONTEXT), *context;
	int rc = driver_begin();

	if (rc)
		return rc;
	rc = context_need(&context);
	if (rc || !peer || flags || peer->head.device == context->head.device)
		return driver_end(rc ? rc : peer ? SIM_INVALID_DEVICE : SIM_INVALID_CONTEXT);
	if (peers[context->head.device] >> peer->head.device & 1)
		return driver_end(SIM_PEER_ALREADY_ENABLED);
	peers[context->head.device] |= 1u << peer->head.device;
	return driver_end(SIM_OK);
}

API(cuCtxDisablePeerAccess, (gpu_context handle))
{
	struct context *peer = object_get(handle, OBJECT_CONTEXT), *context;
	int rc = driver_begin();

	if (rc)
		return rc;
	rc = context_need(&context);
	if (rc || !peer)
		return driver_end(rc ? rc : SIM_INVALID_CONTEXT);
	if (!(peers[context->head.device] >> peer->head.device & 1))
		return driver_end(SIM_PEER_NOT_ENABLED);
	peers[context->head.device] &= ~(1u << peer->head.device);
	return driver_end(SIM_OK);
}

API_RETURNS(cuProfilerStart, (void), state_enter())
API_RETURNS(cuProfilerStop, (void), state_enter())
