/*
 * libraries.c - the few functions of cuBLAS, cuDNN, NCCL and CUPTI that have to answer something
 * more than a number. What computes is in nobody's hands: see standins.def.
 */
#include <string.h>

#include "simgpu/api.h"

#define LIBRARY(symbol, parameters)                                                                \
	EXPORT int symbol parameters;                                                              \
	int symbol parameters

/* A handle needs no more than to be one. */
static char handle[64];

LIBRARY(cublasCreate_v2, (void **out))
{
	if (!out)
		return 7; /* invalid value */
	*out = handle;
	return 0;
}

LIBRARY(cublasGetVersion_v2, (void *h, int *out))
{
	if (!out)
		return 7;
	*out = 130000;
	return 0;
}

LIBRARY(cublasGetMathMode, (void *h, int *out))
{
	*out = 0;
	return 0;
}

LIBRARY(cublasGetPointerMode_v2, (void *h, int *out))
{
	*out = 0;
	return 0;
}

LIBRARY(cublasLtCreate, (void **out))
{
	*out = handle;
	return 0;
}

EXPORT size_t cublasLtGetVersion(void);
size_t cublasLtGetVersion(void)
{
	return 130000;
}

LIBRARY(cublasLtMatmulDescCreate, (void **out, int compute, int scale))
{
	*out = handle;
	return 0;
}

LIBRARY(
    cublasLtMatrixLayoutCreate, (void **out, int type, uint64_t rows, uint64_t columns, int64_t ld))
{
	*out = handle;
	return 0;
}

LIBRARY(cublasLtMatmulPreferenceCreate, (void **out))
{
	*out = handle;
	return 0;
}

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
		return 7;
	memset(out, 0, sizeof(*out));
	*count = 1;
	return 0;
}

/* Newer than any that a program was built with, so that none complains of its age. */
EXPORT size_t cudnnGetVersion(void);
size_t cudnnGetVersion(void)
{
	return 99900;
}

LIBRARY(cudnnGetProperty, (int which, int *out))
{
	static const int parts[] = {9, 99, 0};

	if (!out || which < 0 || which > 2)
		return 2000; /* bad parameter */
	*out = parts[which];
	return 0;
}

EXPORT size_t cudnnGetCudartVersion(void);
size_t cudnnGetCudartVersion(void)
{
	return 13000;
}

LIBRARY(ncclGetVersion, (int *out))
{
	if (!out)
		return 4;
	*out = 22800;
	return 0;
}

EXPORT const char *ncclGetLastError(void *communicator);
const char *ncclGetLastError(void *communicator)
{
	return "not simulated";
}

/* A profiler says why it cannot trace, and goes on without. */
LIBRARY(cuptiGetResultString, (int result, const char **out))
{
	if (!out)
		return 1;
	*out = "CUPTI is not simulated";
	return 0;
}
