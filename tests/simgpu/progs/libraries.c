/* Results of CUDA's other libraries beyond a number, as PyTorch queries them. */
#include "simgpu/standins/libraries.h"

#include "check.h"

#define DECLARE(symbol, parameters) int symbol parameters;

DECLARE(cudnnCreate, (void **out))
DECLARE(cudnnDestroy, (void *dnn))
DECLARE(cudnnSetStream, (void *dnn, gpu_stream stream))
DECLARE(cudnnGetStream, (void *dnn, gpu_stream *out))
DECLARE(cudnnBackendCreateDescriptor, (int type, void **out))
DECLARE(cudnnBackendGetAttribute,
    (void *descriptor, int name, int type, int64_t wanted, int64_t *count, void *out))
DECLARE(cufftCreate, (int *plan))
DECLARE(cufftXtMakePlanMany,
    (int plan, int rank, const long long *n, const long long *in_embed, long long in_stride,
	long long in_distance, int in_type, const long long *out_embed, long long out_stride,
	long long out_distance, int out_type, long long batch, size_t *workspace, int type))
struct id {
	char bytes[128];
};
DECLARE(ncclGetUniqueId, (struct id * out))
DECLARE(ncclCommInitRank, (void **out, int ranks, struct id id, int rank))
DECLARE(ncclCommInitAll, (void **out, int count, const int *devices))
DECLARE(ncclCommCount, (void *communicator, int *out))
DECLARE(ncclCommUserRank, (void *communicator, int *out))
DECLARE(ncclCommCuDevice, (void *communicator, int *out))
DECLARE(ncclCommGetAsyncError, (void *communicator, int *out))
DECLARE(ncclCommDestroy, (void *communicator))
DECLARE(ncclMemAlloc, (void **out, size_t size))
DECLARE(ncclMemFree, (void *address))

static void dnn(void)
{
	void *dnn, *other, *heuristics, *configs[4] = {NULL};
	gpu_stream stream = NULL;
	int64_t count = -1, workspace = -1;
	int32_t shared = -1;

	SAME(cudnnCreate(NULL), 2000);
	SAME(cudnnCreate(&dnn), 0);
	SAME(cudnnCreate(&other), 0);
	SAME(cudnnSetStream(dnn, (gpu_stream)64), 0);
	SAME(cudnnGetStream(dnn, &stream), 0);
	SAME((uintptr_t)stream, 64);
	SAME(cudnnGetStream(other, &stream), 0);
	CHECK(!stream);
	/* one engine for a graph of operations, which needs no memory and has no notes (types 11,
	 * 19) */
	SAME(cudnnBackendCreateDescriptor(8, &heuristics), 0);
	SAME(cudnnBackendGetAttribute(heuristics, 202, 15, 0, &count, NULL), 0);
	SAME(count, 1);
	SAME(cudnnBackendGetAttribute(heuristics, 202, 15, 4, &count, configs), 0);
	SAME(count, 1);
	SAME(cudnnBackendGetAttribute(heuristics, 402, 3, 1, NULL, &workspace), 0);
	SAME(workspace, 0);
	SAME(cudnnBackendGetAttribute(heuristics, 304, 23, 1, &count, &shared), 0);
	SAME(shared, 0);
	SAME(cudnnBackendGetAttribute(heuristics, 1303, 11, 4, &count, configs), 0);
	SAME(count, 0);
	CHECK(!configs[0]);
	SAME(cudnnDestroy(dnn), 0);
	SAME(cudnnDestroy(other), 0);
}

static void fft(void)
{
	long long n[] = {64, 100};
	size_t workspace = 0;
	int plan = 0;

	SAME(cufftCreate(&plan), 0);
	SAME(cufftXtMakePlanMany(plan, 2, n, NULL, 1, 1, 4, NULL, 1, 1, 4, 3, &workspace, 4), 0);
	SAME(workspace, 64 * 100 * 3 * 8);
	SAME(cufftXtMakePlanMany(plan, 1, n, NULL, 1, 1, 5, NULL, 1, 1, 5, 1, &workspace, 5), 0);
	SAME(workspace, 64 * 16);
	SAME(cufftXtMakePlanMany(plan, 0, n, NULL, 1, 1, 5, NULL, 1, 1, 5, 1, &workspace, 5), 4);
}

static void nccl(void)
{
	int devices[] = {0, 0}, n = -1;
	void *one, *all[2], *memory;
	size_t before = level();
	struct id id;

	SAME(ncclGetUniqueId(&id), 0);
	SAME(ncclCommInitRank(&one, 4, id, 4), 4);
	SAME(ncclCommInitRank(&one, 4, id, 3), 0);
	SAME(ncclCommCount(one, &n), 0);
	SAME(n, 4);
	SAME(ncclCommUserRank(one, &n), 0);
	SAME(n, 3);
	SAME(ncclCommGetAsyncError(one, &n), 0);
	SAME(n, 0);
	SAME(ncclCommCount(NULL, &n), 4);
	SAME(ncclCommDestroy(one), 0);
	SAME(ncclCommInitAll(all, 2, devices), 0);
	SAME(ncclCommUserRank(all[1], &n), 0);
	SAME(n, 1);
	SAME(ncclCommCuDevice(all[1], &n), 0);
	SAME(n, 0);
	SAME(ncclCommDestroy(all[0]) + ncclCommDestroy(all[1]), 0);
	SAME(ncclMemAlloc(&memory, 8 * MIB), 0);
	SAME(before - level(), 8 * MIB);
	SAME(ncclMemFree(memory), 0);
	SAME(ncclMemAlloc(&memory, 1 << 30), 1);
}

int main(void)
{
	up();
	dnn();
	fft();
	nccl();
	return done();
}
