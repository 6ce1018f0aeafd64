/*
 * driver_code.c - the driver's entry points for modules, functions and launches. Code is neither
 * read nor run; a launch on a capturing stream becomes a node.
 */
#include <string.h>

#include "simgpu/driver/driver.h"

struct module {
	struct object head;
	struct block *globals; /* memory of its variables; allocated at the first request */
};

#define GLOBALS (1ull << 20)

static int module_new(gpu_module *out)
{
	struct context *context;
	struct module *module;
	int rc = driver_begin();

	if (rc)
		return rc;
	rc = out ? context_need(&context) : SIM_INVALID_VALUE;
	if (rc)
		return driver_end(rc);
	module = object_new(OBJECT_MODULE, context->head.device, sizeof(*module));
	*out = module;
	return driver_end(module ? SIM_OK : SIM_OUT_OF_MEMORY);
}

static int module_drop(void *value)
{
	int rc;
	struct module *module = driver_begin_object(value, OBJECT_MODULE, &rc);

	if (!module)
		return rc;
	if (module->globals)
		memory_free(module->globals);
	object_free(module, sizeof(*module));
	return driver_end(SIM_OK);
}

API_RETURNS(
    cuModuleLoad, (gpu_module * out, const char *name), name ? module_new(out) : SIM_INVALID_VALUE)
API_RETURNS(cuModuleLoadData, (gpu_module * out, const void *image),
    image ? module_new(out) : SIM_INVALID_VALUE)
API_RETURNS(cuModuleLoadDataEx,
    (gpu_module * out, const void *image, unsigned count, int *options, void **values),
    image ? module_new(out) : SIM_INVALID_VALUE)
API_RETURNS(cuModuleLoadFatBinary, (gpu_module * out, const void *image),
    image ? module_new(out) : SIM_INVALID_VALUE)
API_RETURNS(cuModuleUnload, (gpu_module module), module_drop(module))
API_RETURNS(cuLibraryLoadData,
    (gpu_object * out, const void *what, int *jit_options, void **jit_values, unsigned jit_count,
	int *options, void **values, unsigned count),
    what ? module_new(out) : SIM_INVALID_VALUE)
API_RETURNS(cuLibraryLoadFromFile,
    (gpu_object * out, const char *what, int *jit_options, void **jit_values, unsigned jit_count,
	int *options, void **values, unsigned count),
    what ? module_new(out) : SIM_INVALID_VALUE)
API_RETURNS(cuLibraryUnload, (gpu_object library), module_drop(library))

API(cuLibraryGetModule, (gpu_module * out, gpu_object library))
{
	if (!out || !object_get(library, OBJECT_MODULE))
		return SIM_INVALID_VALUE;
	*out = library;
	return SIM_OK;
}

API(cuModuleGetFunction, (gpu_object * out, gpu_module module, const char *name))
{
	struct object *function;
	int rc = driver_begin();

	if (rc)
		return rc;
	if (!out || !name || !object_get(module, OBJECT_MODULE))
		return driver_end(SIM_INVALID_VALUE);
	function = object_new(OBJECT_FUNCTION, 0, sizeof(*function));
	*out = function;
	return driver_end(function ? SIM_OK : SIM_OUT_OF_MEMORY);
}

API_RETURNS(cuLibraryGetKernel, (gpu_object * out, gpu_object library, const char *name),
    self_cuModuleGetFunction(out, library, name))

API(cuKernelGetFunction, (gpu_object * out, gpu_object kernel))
{
	if (!out || !object_get(kernel, OBJECT_FUNCTION))
		return SIM_INVALID_VALUE;
	*out = kernel;
	return SIM_OK;
}

API_RETURNS(cuFuncGetModule, (gpu_module * out, gpu_object function), SIM_NOT_SUPPORTED)
API_RETURNS(cuFuncLoad, (gpu_object function), SIM_OK)

/* The code is not read, so the size of a variable is unknown: all of a module share 1 MiB. */
API(cuModuleGetGlobal_v2, (gpu_ptr * out, size_t *size, gpu_module value, const char *name))
{
	struct module *module;
	int rc = driver_begin();

	if (rc)
		return rc;
	module = object_get(value, OBJECT_MODULE);
	if (!module || !name)
		return driver_end(SIM_INVALID_VALUE);
	if (!module->globals)
		rc = memory_alloc(module->head.device, GLOBALS, &module->globals);
	if (!rc && out)
		*out = module->globals->span.start;
	if (!rc && size)
		*size = GLOBALS;
	return driver_end(rc);
}

API(cuModuleGetLoadingMode, (int *mode))
{
	if (!mode)
		return SIM_INVALID_VALUE;
	*mode = 2; /* lazy */
	return SIM_OK;
}

API(cuFuncGetAttribute, (int *value, int attribute, gpu_object function))
{
	static const int values[] = {1024, 0, 0, 0, 32, 80, 80, 0, 49152};

	if (!value || attribute < 0)
		return SIM_INVALID_VALUE;
	*value = attribute < (int)(sizeof(values) / sizeof(*values)) ? values[attribute] : 0;
	return SIM_OK;
}

API_RETURNS(cuFuncSetAttribute, (gpu_object function, int attribute, int value), SIM_OK)
API_RETURNS(cuFuncSetCacheConfig, (gpu_object function, int config), SIM_OK)

static int launch(gpu_stream handle)
{
	struct stream *stream;
	int rc = driver_begin_stream(handle, &stream);

	if (rc)
		return rc;
	if (stream->capture)
		return driver_end_captured(stream, &(struct node){.type = NODE_KERNEL});
	return driver_end(SIM_OK);
}

API_PTSZ_RETURNS(cuLaunchKernel,
    (gpu_object function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
	unsigned bz, unsigned shared, gpu_stream stream, void **arguments, void **extra),
    launch(stream))
API_PTSZ_RETURNS(cuLaunchCooperativeKernel,
    (gpu_object function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
	unsigned bz, unsigned shared, gpu_stream stream, void **arguments),
    launch(stream))

struct launch_config { /* the beginning of CUlaunchConfig */
	unsigned grid[3], block[3], shared;
	gpu_stream stream;
};

API_PTSZ_RETURNS(cuLaunchKernelEx,
    (const void *config, gpu_object function, void **arguments, void **extra),
    config ? launch(((const struct launch_config *)config)->stream) : SIM_INVALID_VALUE)

API(cuOccupancyMaxActiveBlocksPerMultiprocessor,
    (int *blocks, gpu_object function, int threads, size_t shared))
{
	if (!blocks || threads <= 0)
		return SIM_INVALID_VALUE;
	*blocks = 2048 / threads ? 2048 / threads : 1;
	return SIM_OK;
}

API_RETURNS(cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags,
    (int *blocks, gpu_object function, int threads, size_t shared, unsigned flags),
    self_cuOccupancyMaxActiveBlocksPerMultiprocessor(blocks, function, threads, shared))

API(cuOccupancyMaxActiveClusters, (int *clusters, gpu_object function, const void *config))
{
	if (!clusters)
		return SIM_INVALID_VALUE;
	*clusters = 1;
	return SIM_OK;
}

API(cuTensorMapEncodeTiled,
    (void *map, int type, unsigned rank, void *address, const uint64_t *sizes,
	const uint64_t *strides, const unsigned *box, const unsigned *steps, int interleave,
	int swizzle, int promotion, int fill))
{
	if (!map)
		return SIM_INVALID_VALUE;
	memset(map, 0, 128);
	return SIM_OK;
}
