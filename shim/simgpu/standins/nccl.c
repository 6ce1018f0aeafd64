/*
 * nccl.c - NCCL's communicators. They connect nothing: a collective succeeds at once, moves nothing
 * and waits for no other rank, as kernels do nothing (standins.def). The device memory of a real
 * communicator's channels is not simulated.
 */
#include <string.h>

#include "simgpu/device/heap.h"
#include "simgpu/device/state.h"
#include "simgpu/standins/libraries.h"

enum { NCCL_OK = 0, NCCL_CUDA_ERROR = 1, NCCL_SYSTEM_ERROR = 2, NCCL_WRONG = 4 };

struct nccl_id { /* ncclUniqueId; passed by value */
	char bytes[128];
};

struct communicator {
	int ranks, rank, device;
};

LIBRARY(ncclGetVersion, (int *out))
{
	if (!out)
		return NCCL_WRONG;
	*out = 22800;
	return NCCL_OK;
}

EXPORTED(const char *, ncclGetLastError, (void *communicator))
{
	return "not simulated";
}

LIBRARY(ncclGetUniqueId, (struct nccl_id * out))
{
	if (!out)
		return NCCL_WRONG;
	memset(out, 0, sizeof(*out));
	strcpy(out->bytes, "whyoom simgpu");
	return NCCL_OK;
}

static int connect(struct communicator **out, int ranks, int rank)
{
	struct communicator *made;

	if (!out || ranks < 1 || rank < 0 || rank >= ranks)
		return NCCL_WRONG;
	made = heap_new(sizeof(*made));
	if (!made)
		return NCCL_SYSTEM_ERROR;
	*made = (struct communicator){ranks, rank, thread_state.device};
	*out = made;
	return NCCL_OK;
}

LIBRARY_RETURNS(ncclCommInitRank,
    (struct communicator * *out, int ranks, struct nccl_id id, int rank), connect(out, ranks, rank))
LIBRARY_RETURNS(ncclCommInitRankConfig,
    (struct communicator * *out, int ranks, struct nccl_id id, int rank, void *config),
    connect(out, ranks, rank))
LIBRARY_RETURNS(ncclCommInitRankScalable,
    (struct communicator * *out, int ranks, int rank, int id_count, struct nccl_id *ids,
	void *config),
    connect(out, ranks, rank))

LIBRARY(ncclCommInitAll, (struct communicator * *out, int count, const int *devices))
{
	int rc = out && count > 0 ? NCCL_OK : NCCL_WRONG;

	for (int i = 0; i < count && !rc; i++) {
		rc = connect(&out[i], count, i);
		if (!rc)
			out[i]->device = devices ? devices[i] : i;
	}
	return rc;
}

static int disconnect(struct communicator *communicator)
{
	if (!communicator)
		return NCCL_WRONG;
	heap_free(communicator, sizeof(*communicator));
	return NCCL_OK;
}

LIBRARY_RETURNS(ncclCommDestroy, (struct communicator * communicator), disconnect(communicator))
LIBRARY_RETURNS(ncclCommAbort, (struct communicator * communicator), disconnect(communicator))

static int return_value(const struct communicator *communicator, const int *value, int *out)
{
	if (!communicator || !out)
		return NCCL_WRONG;
	*out = *value;
	return NCCL_OK;
}

LIBRARY_RETURNS(ncclCommCount, (struct communicator * communicator, int *out),
    return_value(communicator, &communicator->ranks, out))
LIBRARY_RETURNS(ncclCommUserRank, (struct communicator * communicator, int *out),
    return_value(communicator, &communicator->rank, out))
LIBRARY_RETURNS(ncclCommCuDevice, (struct communicator * communicator, int *out),
    return_value(communicator, &communicator->device, out))

LIBRARY(ncclCommGetAsyncError, (struct communicator * communicator, int *out))
{
	static const int none = NCCL_OK;

	return return_value(communicator, &none, out);
}

LIBRARY(ncclMemAlloc, (void **out, size_t size))
{
	gpu_ptr address;

	if (!out)
		return NCCL_WRONG;
	if (cuMemAlloc_v2(&address, size))
		return NCCL_CUDA_ERROR;
	*out = (void *)address;
	return NCCL_OK;
}

LIBRARY_RETURNS(
    ncclMemFree, (void *address), cuMemFree_v2((gpu_ptr)address) ? NCCL_CUDA_ERROR : NCCL_OK)

LIBRARY(
    ncclCommRegister, (struct communicator * communicator, void *buffer, size_t size, void **out))
{
	if (!communicator || !out)
		return NCCL_WRONG;
	*out = buffer;
	return NCCL_OK;
}
