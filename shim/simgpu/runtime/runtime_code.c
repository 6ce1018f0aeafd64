/*
 * runtime_code.c - the runtime's entry points for code: registrations by the compiler's start-up
 * code, launches, which do nothing, and variables on the device.
 */
#include <string.h>

#include "simgpu/device/heap.h"
#include "simgpu/runtime/runtime.h"

struct dim3 {
	unsigned x, y, z;
};

/* A variable that start-up code registered. Its memory is part of the program's code on the device,
 * not of any allocation, so no recorder sees it. */
static struct variable {
	struct variable *next;
	const void *host;
	size_t size;
	struct block *blocks[SIMGPU_DEVICES];
} * variables;

static __thread struct {
	struct dim3 grid, block;
	size_t shared;
	gpu_stream stream;
} configuration __attribute__((tls_model("initial-exec")));

EXPORTED(void **, __cudaRegisterFatBinary, (void *binary))
{
	static void *handle[2];

	return handle;
}

EXPORTED(void, __cudaRegisterFatBinaryEnd, (void **handle))
{
}

EXPORTED(void, __cudaUnregisterFatBinary, (void **handle))
{
}

EXPORTED(char, __cudaInitModule, (void **handle))
{
	return 0;
}

EXPORTED(void, __cudaRegisterFunction,
    (void **handle, const char *host, char *device, const char *name, int limit, void *tid,
	void *bid, void *block, void *grid, int *size))
{
}

EXPORTED(void, __cudaRegisterVar,
    (void **handle, char *host, char *device, const char *name, int ext, size_t size, int constant,
	int global))
{
	struct variable *v = heap_new(sizeof(*v));

	if (!v)
		return;
	v->host = host;
	v->size = size;
	model_lock();
	v->next = variables;
	variables = v;
	model_unlock();
}

EXPORTED(void, __cudaRegisterManagedVar,
    (void **handle, void **host, char *device, const char *name, int ext, size_t size, int constant,
	int global))
{
}

EXPORTED(unsigned, __cudaPushCallConfiguration,
    (struct dim3 grid, struct dim3 block, size_t shared, gpu_stream stream))
{
	configuration.grid = grid;
	configuration.block = block;
	configuration.shared = shared;
	configuration.stream = stream;
	return 0;
}

API(__cudaPopCallConfiguration,
    (struct dim3 * grid, struct dim3 *block, size_t *shared, void *stream))
{
	*grid = configuration.grid;
	*block = configuration.block;
	*shared = configuration.shared;
	*(gpu_stream *)stream = configuration.stream;
	return SIM_OK;
}

API(__cudaGetKernel, (gpu_object * out, const void *function))
{
	*out = (void *)function;
	return SIM_OK;
}

static int launch(gpu_stream stream)
{
	int rc = runtime_enter();

	return runtime_end(rc ? rc : cuLaunchKernel(NULL, 1, 1, 1, 1, 1, 1, 0, stream, NULL, NULL));
}

API_RETURNS(__cudaLaunchKernel,
    (gpu_object kernel, struct dim3 grid, struct dim3 block, void **arguments, size_t shared,
	gpu_stream stream),
    launch(stream))
API_RETURNS(__cudaLaunchKernel_ptsz,
    (gpu_object kernel, struct dim3 grid, struct dim3 block, void **arguments, size_t shared,
	gpu_stream stream),
    launch(stream))
API_PTSZ_RETURNS(cudaLaunchKernel,
    (const void *function, struct dim3 grid, struct dim3 block, void **arguments, size_t shared,
	gpu_stream stream),
    launch(stream))
API_PTSZ_RETURNS(cudaLaunchCooperativeKernel,
    (const void *function, struct dim3 grid, struct dim3 block, void **arguments, size_t shared,
	gpu_stream stream),
    launch(stream))

struct launch_config { /* the beginning of cudaLaunchConfig_t */
	struct dim3 grid, block;
	size_t shared;
	gpu_stream stream;
};

API_PTSZ_RETURNS(cudaLaunchKernelExC,
    (const struct launch_config *config, const void *function, void **arguments),
    config ? launch(config->stream) : runtime_end(SIM_INVALID_VALUE))

struct function { /* the beginning of cudaFuncAttributes, the same in all majors */
	size_t shared, constant, local;
	int threads, registers, ptx, binary, cache, shared_dynamic, carveout;
};

API(cudaFuncGetAttributes, (struct function * out, const void *function))
{
	int device, rc = runtime_enter();

	if (rc || !out)
		return runtime_end(rc ? rc : SIM_INVALID_VALUE);
	device = device_of(thread_state.device);
	rc = state_config()->devices[device < 0 ? 0 : device].major * 10 +
	     state_config()->devices[device < 0 ? 0 : device].minor;
	*out = (struct function){
	    .threads = 1024, .registers = 32, .ptx = rc, .binary = rc, .shared_dynamic = 49152};
	return SIM_OK;
}

FORWARD(cudaFuncSetAttribute, (const void *function, int attribute, int value), SIM_OK)
FORWARD(cudaFuncSetCacheConfig, (const void *function, int config), SIM_OK)
FORWARD(cudaFuncSetSharedMemConfig, (const void *function, int config), SIM_OK)
FORWARD(cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags,
    (int *blocks, const void *function, int threads, size_t shared, unsigned flags),
    cuOccupancyMaxActiveBlocksPerMultiprocessor(blocks, NULL, threads, shared))
FORWARD(cudaOccupancyMaxActiveBlocksPerMultiprocessor,
    (int *blocks, const void *function, int threads, size_t shared),
    cuOccupancyMaxActiveBlocksPerMultiprocessor(blocks, NULL, threads, shared))
FORWARD(cudaOccupancyMaxActiveClusters, (int *clusters, const void *function, const void *config),
    cuOccupancyMaxActiveClusters(clusters, NULL, config))

/* Returns the variable's memory on the current device; 0: it is not registered, or no memory. */
static uint64_t variable(const void *host, size_t *size)
{
	struct context *context = context_current();
	struct variable *v;
	uint64_t address = 0;

	model_lock();
	for (v = variables; v && v->host != host; v = v->next)
		;
	if (v && context) {
		struct block **block = &v->blocks[context->head.device];

		if (*block || !memory_alloc(context->head.device, v->size ? v->size : 1, block)) {
			address = (*block)->span.start;
			*size = v->size;
		}
	}
	model_unlock();
	return address;
}

API(cudaGetSymbolAddress, (void **out, const void *symbol))
{
	size_t size;
	int rc = runtime_enter();

	if (rc || !out)
		return runtime_end(rc ? rc : SIM_INVALID_VALUE);
	*out = (void *)variable(symbol, &size);
	return runtime_end(*out ? SIM_OK : SIM_NOT_FOUND);
}

API(cudaGetSymbolSize, (size_t * out, const void *symbol))
{
	int rc = runtime_enter();

	if (rc || !out)
		return runtime_end(rc ? rc : SIM_INVALID_VALUE);
	return runtime_end(variable(symbol, out) ? SIM_OK : SIM_NOT_FOUND);
}

/* Enters the runtime and finds the n bytes at an offset in a variable. */
static int enter_variable(const void *symbol, size_t n, size_t offset, gpu_ptr *at)
{
	size_t size;
	int rc = runtime_enter();

	if (rc)
		return rc;
	*at = variable(symbol, &size);
	if (!*at || offset > size || n > size - offset)
		return *at ? SIM_INVALID_VALUE : SIM_NOT_FOUND;
	*at += offset;
	return SIM_OK;
}

API_PTDS(
    cudaMemcpyToSymbol, (const void *symbol, const void *from, size_t n, size_t offset, int kind))
{
	gpu_ptr to;
	int rc = enter_variable(symbol, n, offset, &to);

	return runtime_end(rc ? rc : cuMemcpy(to, (gpu_ptr)from, n));
}

API_PTSZ_RETURNS(cudaMemcpyToSymbolAsync,
    (const void *symbol, const void *from, size_t n, size_t offset, int kind, gpu_stream stream),
    cudaMemcpyToSymbol(symbol, from, n, offset, kind))

API_PTDS(cudaMemcpyFromSymbol, (void *to, const void *symbol, size_t n, size_t offset, int kind))
{
	gpu_ptr from;
	int rc = enter_variable(symbol, n, offset, &from);

	return runtime_end(rc ? rc : cuMemcpy((gpu_ptr)to, from, n));
}
