/*
 * libraries.c - functions of cuBLAS, cuDNN, cuFFT and CUPTI that must return more than a number.
 * Functions that compute do nothing (standins.def). So tensors have their real shapes, and PyTorch
 * allocates memory for them as on a device; workspace sizes are chosen here.
 */
#include <string.h>

#include "simgpu/device/heap.h"
#include "simgpu/standins/libraries.h"

/* Makes a handle without content. `wrong` is the library's "bad parameter". */
static int handle_new(void **out, int wrong)
{
	static char handle[64];

	if (!out)
		return wrong;
	*out = handle;
	return 0;
}

static int put_number(int *out, int value, int wrong)
{
	if (!out)
		return wrong;
	*out = value;
	return 0;
}

#define CUBLAS_WRONG 7
#define CUDNN_WRONG 2000
#define CUDNN_NO_MEMORY 4000
#define CUFFT_WRONG 4

LIBRARY_RETURNS(cublasCreate_v2, (void **out), handle_new(out, CUBLAS_WRONG))
LIBRARY_RETURNS(cublasGetVersion_v2, (void *h, int *out), put_number(out, 130000, CUBLAS_WRONG))
LIBRARY_RETURNS(cublasGetMathMode, (void *h, int *out), put_number(out, 0, CUBLAS_WRONG))
LIBRARY_RETURNS(cublasGetPointerMode_v2, (void *h, int *out), put_number(out, 0, CUBLAS_WRONG))
LIBRARY_RETURNS(cublasLtCreate, (void **out), handle_new(out, CUBLAS_WRONG))

EXPORTED(size_t, cublasLtGetVersion, (void))
{
	return 130000;
}

LIBRARY_RETURNS(
    cublasLtMatmulDescCreate, (void **out, int compute, int scale), handle_new(out, CUBLAS_WRONG))
LIBRARY_RETURNS(cublasLtMatrixLayoutCreate,
    (void **out, int type, uint64_t rows, uint64_t columns, int64_t ld),
    handle_new(out, CUBLAS_WRONG))
LIBRARY_RETURNS(cublasLtMatmulPreferenceCreate, (void **out), handle_new(out, CUBLAS_WRONG))

struct heuristic { /* cublasLtMatmulHeuristicResult_t */
	uint64_t algorithm[8];
	size_t workspace;
	int state;
	float waves;
	int reserved[4];
};

LIBRARY(cublasLtMatmulAlgoGetHeuristic,
    (void *lt, void *operation, void *a, void *b, void *c, void *d, void *preference, int wanted,
	struct heuristic *out, int *count))
{
	if (wanted < 1 || !out || !count)
		return CUBLAS_WRONG;
	memset(out, 0, sizeof(*out));
	*count = 1;
	return 0;
}

/* Versions newer than any that a program was built with, so that none complains. */
EXPORTED(size_t, cudnnGetVersion, (void))
{
	return 99900;
}

LIBRARY(cudnnGetProperty, (int which, int *out))
{
	static const int parts[] = {9, 99, 0};

	if (!out || which < 0 || which > 2)
		return CUDNN_WRONG;
	*out = parts[which];
	return 0;
}

EXPORTED(size_t, cudnnGetCudartVersion, (void))
{
	return 13000;
}

/* Returns the program's own stream: copies of parameters go there, and it may be capturing. */
struct cudnn {
	gpu_stream stream;
};

LIBRARY(cudnnCreate, (struct cudnn * *out))
{
	if (!out)
		return CUDNN_WRONG;
	*out = heap_new(sizeof(**out));
	return *out ? 0 : CUDNN_NO_MEMORY;
}

LIBRARY(cudnnDestroy, (struct cudnn * dnn))
{
	heap_free(dnn, sizeof(*dnn));
	return 0;
}

LIBRARY(cudnnSetStream, (struct cudnn * dnn, gpu_stream stream))
{
	if (!dnn)
		return CUDNN_WRONG;
	dnn->stream = stream;
	return 0;
}

LIBRARY(cudnnGetStream, (struct cudnn * dnn, gpu_stream *out))
{
	if (!dnn || !out)
		return CUDNN_WRONG;
	*out = dnn->stream;
	return 0;
}

LIBRARY_RETURNS(cudnnCreateTensorDescriptor, (void **out), handle_new(out, CUDNN_WRONG))
LIBRARY_RETURNS(cudnnCreateFilterDescriptor, (void **out), handle_new(out, CUDNN_WRONG))
LIBRARY_RETURNS(cudnnCreateConvolutionDescriptor, (void **out), handle_new(out, CUDNN_WRONG))
LIBRARY_RETURNS(cudnnCreateActivationDescriptor, (void **out), handle_new(out, CUDNN_WRONG))
LIBRARY_RETURNS(cudnnBackendCreateDescriptor, (int type, void **out), handle_new(out, CUDNN_WRONG))

/* cudnnBackendAttributeName_t and cudnnBackendAttributeType_t */
enum { CUDNN_HEURISTIC_RESULTS = 202, CUDNN_CONFIG_ENGINE = 300 };
enum { CUDNN_TYPE_INT64 = 3, CUDNN_TYPE_INT32 = 23 };

/* One engine fits every graph of operations; it has no choices and no notes, and needs neither
 * shared memory nor a workspace. Descriptors were made by the caller and stay unchanged. */
LIBRARY(cudnnBackendGetAttribute,
    (void *descriptor, int name, int type, int64_t wanted, int64_t *count, void *out))
{
	size_t bytes = type == CUDNN_TYPE_INT64 ? 8 : type == CUDNN_TYPE_INT32 ? 4 : 0;

	if (bytes && wanted > 0 && out)
		memset(out, 0, bytes);
	if (count)
		*count = bytes || name == CUDNN_HEURISTIC_RESULTS || name == CUDNN_CONFIG_ENGINE;
	return 0;
}

static int no_workspace(size_t *size)
{
	if (!size)
		return CUDNN_WRONG;
	*size = 0;
	return 0;
}

LIBRARY_RETURNS(cudnnGetBatchNormalizationForwardTrainingExWorkspaceSize,
    (void *dnn, int mode, int operations, void *x, void *z, void *y, void *scale, void *activation,
	size_t *size),
    no_workspace(size))
LIBRARY_RETURNS(cudnnGetBatchNormalizationBackwardExWorkspaceSize,
    (void *dnn, int mode, int operations, void *x, void *y, void *dy, void *dz, void *dx,
	void *scale, void *activation, size_t *size),
    no_workspace(size))
LIBRARY_RETURNS(cudnnGetBatchNormalizationTrainingExReserveSpaceSize,
    (void *dnn, int mode, int operations, void *activation, void *x, size_t *size),
    no_workspace(size))
LIBRARY_RETURNS(cufftCreate, (int *plan), put_number(plan, 1, CUFFT_WRONG))

/* Assumes a workspace as large as the data. `type` is a cudaDataType: half, single or double
 * precision. */
LIBRARY(cufftXtMakePlanMany,
    (int plan, int rank, const long long *n, const long long *in_embed, long long in_stride,
	long long in_distance, int in_type, const long long *out_embed, long long out_stride,
	long long out_distance, int out_type, long long batch, size_t *workspace, int type))
{
	size_t size = type == 5 || type == 1 ? 16 : type == 6 || type == 2 ? 4 : 8;

	if (!workspace || !n || rank < 1 || batch < 1)
		return CUFFT_WRONG;
	for (int i = 0; i < rank; i++)
		size *= (size_t)n[i];
	*workspace = size * (size_t)batch;
	return 0;
}

/* A profiler prints this reason and goes on without tracing. */
LIBRARY(cuptiGetResultString, (int result, const char **out))
{
	if (!out)
		return 1;
	*out = "CUPTI is not simulated";
	return 0;
}
