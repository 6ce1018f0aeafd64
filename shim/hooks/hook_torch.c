/*
 * hook_torch.c - libc10_cuda.so reports each block that its caching allocator hands out or takes
 * back, and each failure, by two exported functions of libc10.so; ours precede them. They run under
 * the allocator's mutex: no CUDA call, no Python, no waiting.
 *
 * The blocks are a second level, inside segments that the driver's wrappers record.
 */
#include "hooks/hook_torch.h"

#include <errno.h>
#include <link.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include "base/options.h"
#include "base/record_fields.h"
#include "cuda/cuda_call.h"
#include "cuda/cuda_device.h"
#include "cuda/space_record.h"
#include "lifecycle.h"
#include "loaded/symbols.h"
#include "stack/modules.h"
#include "trace/definitions.h"
#include "trace/trace_file.h"

/* c10::Device, passed by value in one register */
struct c10_device {
	int8_t type, index;
};
#define C10_CUDA 1
#define DEVICES 64
#define RECORD_MAX 96u
#define SMALL 65536 /* smaller blocks are dropped once the trace has reached its budget */

enum { USAGE, OUT_OF_MEMORY };
static const char *const c10_names[][3] = {
    {"_ZN3c1027reportMemoryUsageToProfilerEPvlmmNS_6DeviceE",
	"_ZN3c1027reportMemoryUsageToProfilerEPvlllNS_6DeviceE", NULL},
    {"_ZN3c1027reportOutOfMemoryToProfilerElmmNS_6DeviceE",
	"_ZN3c1027reportOutOfMemoryToProfilerElllNS_6DeviceE",
	"_ZN3c1027reportOutOfMemoryToProfilerEmmmNS_6DeviceE"},
};

typedef void usage_function(void *, int64_t, uint64_t, uint64_t, struct c10_device);
typedef void oom_function(int64_t, uint64_t, uint64_t, struct c10_device);

static uint64_t reserved_bytes[DEVICES]; /* as last recorded */

/* --- the real functions, of the caller's own PyTorch --- */

/* A thread's last results, valid while no module comes or goes. */
static __thread struct {
	uintptr_t caller;
	uint64_t generation;
	void *real;
} real_cache[4] __attribute__((tls_model("initial-exec")));

/* Searches the libraries that the caller needs first, as a process may hold two PyTorchs. */
static __attribute__((noinline)) void *find_real(const void *caller, const char *name)
{
	void *found = symbols_needed(caller, name);

	return found ? found : symbols_next(name);
}

static void *real_function(const void *caller, const char *name)
{
	uintptr_t at = (uintptr_t)caller;
	uint64_t generation = modules_generation();
	unsigned i = (unsigned)(at >> 3 ^ at >> 6) % 4;

	if (SHIM_UNLIKELY(real_cache[i].caller != at || real_cache[i].generation != generation)) {
		real_cache[i].real = find_real(caller, name);
		real_cache[i].caller = at;
		real_cache[i].generation = generation;
	}
	return real_cache[i].real;
}

/* --- records --- */

/* Records how much the allocator reserves, if that has changed. */
static void record_reserved(struct thread *t, int device, uint64_t allocated, uint64_t now)
{
	struct extended x;
	uint8_t *p;

	if (SHIM_LIKELY(__atomic_load_n(&reserved_bytes[device], __ATOMIC_RELAXED) == now))
		return;
	__atomic_store_n(&reserved_bytes[device], now, __ATOMIC_RELAXED);
	if (!extended_begin(t, &x, TRACE_LEVEL, RECORD_MAX, true, 0))
		return;
	p = FIELDS_PUT(extended_dt(t, &x), LEVEL,
	    ((const struct level[]){
		{TRACE_LEVEL_RESERVED, now}, {TRACE_LEVEL_ALLOCATED, allocated}}),
	    .space = cuda_space(CUDA_TORCH, device), .levels = 2);
	extended_end(t, &x, p);
}

static void record_usage(void *block, int64_t size, uint64_t allocated, uint64_t held,
    struct c10_device device, const struct stack_start *start)
{
	uint32_t space, name, stack;
	struct extended x;
	struct note n;
	uint8_t *p;

	if (device.type != C10_CUDA || device.index < 0 || device.index >= DEVICES || !block)
		return;
	if (!space_record_begin(&n, start))
		return;
	if (SHIM_UNLIKELY(shim.budget) && size < SMALL && size > -SMALL) {
		trace_file_dropped(TRACE_DROP_BUDGET, 1, size > 0 ? (uint64_t)size : 0);
		goto out;
	}
	if (!space_record_reserve(n.thread, RECORD_MAX, size > 0 ? (uint64_t)size : 0))
		goto out;
	space = cuda_space(CUDA_TORCH, device.index);
	name = cuda_name(CUDA_NOTHING);
	if (size > 0) {
		stack = capture(n, start);
		if (!extended_begin(
			n.thread, &x, TRACE_SPACE_ALLOC, RECORD_MAX, true, (uint64_t)size))
			goto out;
		p = FIELDS_PUT(extended_dt(n.thread, &x), SPACE_ALLOC, NULL, .space = space,
		    .api = name, .address = (uintptr_t)block, .size = (uint64_t)size,
		    .stack = stack);
		extended_end(n.thread, &x, p);
	} else {
		if (!extended_begin(n.thread, &x, TRACE_SPACE_FREE, RECORD_MAX, true, 0))
			goto out;
		p = FIELDS_PUT(extended_dt(n.thread, &x), SPACE_FREE, NULL, .space = space,
		    .api = name, .address = (uintptr_t)block);
		extended_end(n.thread, &x, p);
	}
	record_reserved(n.thread, device.index, allocated, held);
out:
	space_record_end(n);
}

static void record_out_of_memory(int64_t size, uint64_t allocated, uint64_t held,
    struct c10_device device, const struct stack_start *start)
{
	if (device.type != C10_CUDA || device.index < 0 || device.index >= DEVICES)
		return;
	/* the record of the failure holds it, so a later level is a change from there */
	__atomic_store_n(&reserved_bytes[device.index], held, __ATOMIC_RELAXED);
	cuda_framework_failed(device.index, (uint64_t)size, held, allocated, start);
}

/* --- the wrappers --- */

#define USAGE_WRAPPER(function, symbol)                                                            \
	SHIM_EXPORT usage_function function __asm__(symbol);                                       \
	SHIM_EXPORT void function(void *block, int64_t size, uint64_t allocated, uint64_t held,    \
	    struct c10_device device)                                                              \
	{                                                                                          \
		struct stack_start start = STACK_START();                                          \
		int saved = errno;                                                                 \
		usage_function *real_one;                                                          \
                                                                                                   \
		record_usage(block, size, allocated, held, device, &start);                        \
		real_one = (usage_function *)real_function(__builtin_return_address(0), symbol);   \
		errno = saved;                                                                     \
		if (real_one)                                                                      \
			real_one(block, size, allocated, held, device);                            \
	}
#define OOM_WRAPPER(function, symbol)                                                              \
	SHIM_EXPORT oom_function function __asm__(symbol);                                         \
	SHIM_EXPORT void function(                                                                 \
	    int64_t size, uint64_t allocated, uint64_t held, struct c10_device device)             \
	{                                                                                          \
		struct stack_start start = STACK_START();                                          \
		int saved = errno;                                                                 \
		oom_function *real_one;                                                            \
                                                                                                   \
		record_out_of_memory(size, allocated, held, device, &start);                       \
		real_one = (oom_function *)real_function(__builtin_return_address(0), symbol);     \
		errno = saved;                                                                     \
		if (real_one)                                                                      \
			real_one(size, allocated, held, device);                                   \
	}

/* PyTorch 2.0 and later; 1.10 to 1.13; one snapshot in between. All use the same registers. */
USAGE_WRAPPER(hook_usage, "_ZN3c1027reportMemoryUsageToProfilerEPvlmmNS_6DeviceE")
USAGE_WRAPPER(hook_usage_signed, "_ZN3c1027reportMemoryUsageToProfilerEPvlllNS_6DeviceE")
OOM_WRAPPER(hook_oom, "_ZN3c1027reportOutOfMemoryToProfilerElmmNS_6DeviceE")
OOM_WRAPPER(hook_oom_signed, "_ZN3c1027reportOutOfMemoryToProfilerElllNS_6DeviceE")
OOM_WRAPPER(hook_oom_unsigned, "_ZN3c1027reportOutOfMemoryToProfilerEmmmNS_6DeviceE")

/* --- facts for the trace --- */

static const char *blocks_fact, *segments_fact, *failures_fact; /* NULL: nothing to write */
static bool torch_seen;

static bool any_defined(int which)
{
	for (int i = 0; i < 3; i++)
		if (c10_names[which][i] && symbols_find(c10_names[which][i]))
			return true;
	return false;
}

static bool is_torch(const struct dl_phdr_info *info)
{
	const char *name = info->dlpi_name ? strrchr(info->dlpi_name, '/') : NULL;

	return name && !strcmp(name, "/libc10_cuda.so");
}

static const char *allocator_conf(void)
{
	const char *now = options_variable(environ, "PYTORCH_ALLOC_CONF");

	return now ? now : options_variable(environ, "PYTORCH_CUDA_ALLOC_CONF");
}

static void write_info(void)
{
	if (blocks_fact)
		definition_info("torch.blocks", blocks_fact);
	if (segments_fact)
		definition_info("torch.segments", segments_fact);
	if (failures_fact)
		definition_info("torch.failures", failures_fact);
}

bool hook_torch_visit(const struct dl_phdr_info *info)
{
	const char *conf;

	if (torch_seen || !is_torch(info))
		return true;
	torch_seen = true;
	conf = allocator_conf();
	if (options_variable(environ, "PYTORCH_NO_CUDA_MEMORY_CACHING"))
		blocks_fact =
		    "none: PYTORCH_NO_CUDA_MEMORY_CACHING is set, each block is a segment";
	else if (conf && strstr(conf, "backend:cudaMallocAsync"))
		blocks_fact = "none: the backend is cudaMallocAsync, blocks are the pool's";
	else if (!any_defined(USAGE))
		blocks_fact = "none: this version does not report them, only segments are seen";
	else
		blocks_fact = "recorded";
	if (conf && strstr(conf, "expandable_segments:True"))
		segments_fact = "expandable";
	if (!any_defined(OUT_OF_MEMORY))
		failures_fact = "not reported by this version";
	write_info();
	return true;
}

void hook_torch_forked(void)
{
	memset(reserved_bytes, 0, sizeof(reserved_bytes));
	write_info();
}
