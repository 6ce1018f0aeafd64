/*
 * nvml.c - the management library's entry points: devices, their memory, the processes that use it.
 * Results are NVML's numbers. Nothing here needs or initialises CUDA.
 */
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "simgpu/device/machine.h"
#include "simgpu/device/state.h"
#include "simgpu/driver/driver.h"
#include "simgpu/standins/libraries.h"

enum { NVML_OK = 0, NVML_INVALID = 2, NVML_UNSUPPORTED = 3, NVML_NOT_FOUND = 6, NVML_SIZE = 7 };

static int count(void)
{
	state_discover();
	return state_config()->count;
}

/* A handle is the device's number plus 1, as a pointer. */
static int device_at(void *handle)
{
	intptr_t n = (intptr_t)handle - 1;

	return n >= 0 && n < count() ? (int)n : -1;
}

LIBRARY_RETURNS(nvmlInit_v2, (void), NVML_OK)
LIBRARY_RETURNS(nvmlInit, (void), NVML_OK)
LIBRARY_RETURNS(nvmlInitWithFlags, (unsigned flags), NVML_OK)
LIBRARY_RETURNS(nvmlShutdown, (void), NVML_OK)

EXPORTED(const char *, nvmlErrorString, (int result))
{
	switch (result) {
	case NVML_OK:
		return "Success";
	case NVML_INVALID:
		return "Invalid Argument";
	case NVML_UNSUPPORTED:
		return "Not Supported";
	case NVML_NOT_FOUND:
		return "Not Found";
	default:
		return "Unknown Error";
	}
}

static int put_text(char *out, unsigned size, const char *text)
{
	if (!out || !size)
		return NVML_INVALID;
	snprintf(out, size, "%s", text);
	return NVML_OK;
}

LIBRARY_RETURNS(
    nvmlSystemGetDriverVersion, (char *out, unsigned size), put_text(out, size, "580.00.00"))
LIBRARY_RETURNS(
    nvmlSystemGetNVMLVersion, (char *out, unsigned size), put_text(out, size, "13.580.00.00"))

LIBRARY(nvmlSystemGetCudaDriverVersion_v2, (int *out))
{
	if (!out)
		return NVML_INVALID;
	*out = SIM_DRIVER_VERSION;
	return NVML_OK;
}

LIBRARY_RETURNS(nvmlSystemGetCudaDriverVersion, (int *out), nvmlSystemGetCudaDriverVersion_v2(out))

LIBRARY(nvmlDeviceGetCount_v2, (unsigned *out))
{
	if (!out)
		return NVML_INVALID;
	*out = (unsigned)count();
	return NVML_OK;
}

LIBRARY_RETURNS(nvmlDeviceGetCount, (unsigned *out), nvmlDeviceGetCount_v2(out))

LIBRARY(nvmlDeviceGetHandleByIndex_v2, (unsigned index, void **out))
{
	if (!out || index >= (unsigned)count())
		return NVML_INVALID;
	*out = (void *)(uintptr_t)(index + 1);
	return NVML_OK;
}

LIBRARY_RETURNS(nvmlDeviceGetHandleByIndex, (unsigned index, void **out),
    nvmlDeviceGetHandleByIndex_v2(index, out))

/* "domain:bus:device.function"; the bus is the device's number plus 1 */
LIBRARY(nvmlDeviceGetHandleByPciBusId_v2, (const char *id, void **out))
{
	unsigned domain, bus;

	if (!id || !out || sscanf(id, "%x:%x", &domain, &bus) != 2)
		return NVML_INVALID;
	if (!bus || bus > (unsigned)count())
		return NVML_NOT_FOUND;
	*out = (void *)(uintptr_t)bus;
	return NVML_OK;
}

LIBRARY_RETURNS(nvmlDeviceGetHandleByPciBusId, (const char *id, void **out),
    nvmlDeviceGetHandleByPciBusId_v2(id, out))

static void uuid_text(int device, char out[48])
{
	uint8_t u[16];
	char *at = out;

	device_uuid(device, u);
	at += sprintf(at, "GPU-");
	for (int i = 0; i < 16; i++)
		at += sprintf(at, "%s%02x", i == 4 || i == 6 || i == 8 || i == 10 ? "-" : "", u[i]);
}

LIBRARY(nvmlDeviceGetUUID, (void *handle, char *out, unsigned size))
{
	char text[48];
	int device = device_at(handle);

	if (device < 0 || !out)
		return NVML_INVALID;
	uuid_text(device, text);
	if (size <= strlen(text))
		return NVML_SIZE;
	memcpy(out, text, strlen(text) + 1);
	return NVML_OK;
}

LIBRARY(nvmlDeviceGetHandleByUUID, (const char *uuid, void **out))
{
	char text[48];

	if (!uuid || !out)
		return NVML_INVALID;
	for (int i = 0; i < count(); i++) {
		uuid_text(i, text);
		if (!strcmp(text, uuid)) {
			*out = (void *)(uintptr_t)(i + 1);
			return NVML_OK;
		}
	}
	return NVML_NOT_FOUND;
}

LIBRARY(nvmlDeviceGetIndex, (void *handle, unsigned *out))
{
	if (device_at(handle) < 0 || !out)
		return NVML_INVALID;
	*out = (unsigned)device_at(handle);
	return NVML_OK;
}

LIBRARY_RETURNS(
    nvmlDeviceGetMinorNumber, (void *handle, unsigned *out), nvmlDeviceGetIndex(handle, out))

LIBRARY(nvmlDeviceGetName, (void *handle, char *out, unsigned size))
{
	int device = device_at(handle);

	return device < 0 ? NVML_INVALID
			  : put_text(out, size, state_config()->devices[device].name);
}

LIBRARY(nvmlDeviceGetCudaComputeCapability, (void *handle, int *major, int *minor))
{
	int device = device_at(handle);

	if (device < 0 || !major || !minor)
		return NVML_INVALID;
	*major = state_config()->devices[device].major;
	*minor = state_config()->devices[device].minor;
	return NVML_OK;
}

struct memory {
	unsigned long long total, free, used;
};

LIBRARY(nvmlDeviceGetMemoryInfo, (void *handle, struct memory *out))
{
	int device = device_at(handle);
	uint64_t free, total;

	if (device < 0 || !out)
		return NVML_INVALID;
	machine_level(device, &free, &total);
	*out = (struct memory){total, free, total - free};
	return NVML_OK;
}

struct memory_v2 {
	unsigned version;
	unsigned long long total, reserved, free, used;
};

LIBRARY(nvmlDeviceGetMemoryInfo_v2, (void *handle, struct memory_v2 *out))
{
	int device = device_at(handle);
	uint64_t free, total;

	if (device < 0 || !out)
		return NVML_INVALID;
	machine_level(device, &free, &total);
	out->total = total;
	out->reserved = 0;
	out->free = free;
	out->used = total - free;
	return NVML_OK;
}

struct process { /* of versions 2 and 3 of the call; version 1 has only two fields */
	unsigned pid;
	unsigned long long bytes;
	unsigned instance, compute;
};

struct process_v1 {
	unsigned pid;
	unsigned long long bytes;
};

enum process_version { PROCESS_V1, PROCESS_V2 };

static int processes(void *handle, unsigned *count, void *out, enum process_version version)
{
	struct machine_process list[MACHINE_PROCESSES];
	int n, device = device_at(handle);
	unsigned room;

	if (device < 0 || !count)
		return NVML_INVALID;
	room = out ? *count : 0;
	n = machine_processes(device, list, MACHINE_PROCESSES);
	*count = (unsigned)n;
	if ((unsigned)n > room)
		return NVML_SIZE;
	for (int i = 0; i < n; i++) {
		if (version == PROCESS_V1)
			((struct process_v1 *)out)[i] =
			    (struct process_v1){(unsigned)list[i].pid, list[i].bytes};
		else
			((struct process *)out)[i] =
			    (struct process){(unsigned)list[i].pid, list[i].bytes, ~0u, ~0u};
	}
	return NVML_OK;
}

LIBRARY_RETURNS(nvmlDeviceGetComputeRunningProcesses, (void *handle, unsigned *count, void *out),
    processes(handle, count, out, PROCESS_V1))
LIBRARY_RETURNS(nvmlDeviceGetComputeRunningProcesses_v2, (void *handle, unsigned *count, void *out),
    processes(handle, count, out, PROCESS_V2))
LIBRARY_RETURNS(nvmlDeviceGetComputeRunningProcesses_v3, (void *handle, unsigned *count, void *out),
    processes(handle, count, out, PROCESS_V2))

LIBRARY(nvmlDeviceGetGraphicsRunningProcesses_v3, (void *handle, unsigned *count, void *out))
{
	if (device_at(handle) < 0 || !count)
		return NVML_INVALID;
	*count = 0;
	return NVML_OK;
}

struct utilization {
	unsigned gpu, memory;
};

LIBRARY(nvmlDeviceGetUtilizationRates, (void *handle, struct utilization *out))
{
	if (device_at(handle) < 0 || !out)
		return NVML_INVALID;
	*out = (struct utilization){0, 0};
	return NVML_OK;
}

LIBRARY_RETURNS(
    nvmlDeviceGetNvLinkRemoteDeviceType, (void *handle, unsigned link, int *out), NVML_UNSUPPORTED)
LIBRARY_RETURNS(
    nvmlDeviceGetNvLinkRemotePciInfo_v2, (void *handle, unsigned link, void *out), NVML_UNSUPPORTED)
LIBRARY_RETURNS(nvmlDeviceGetGpuFabricInfoV, (void *handle, void *out), NVML_UNSUPPORTED)

LIBRARY(nvmlDeviceGetP2PStatus, (void *handle, void *peer, int index, int *out))
{
	if (device_at(handle) < 0 || device_at(peer) < 0 || !out)
		return NVML_INVALID;
	*out = index == 2 ? 1 : 0; /* not over NVLink */
	return NVML_OK;
}

LIBRARY_RETURNS(
    nvmlDeviceGetMigMode, (void *handle, unsigned *current, unsigned *pending), NVML_UNSUPPORTED)
