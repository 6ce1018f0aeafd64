/*
 * state.c - see state.h.
 */
#include "simgpu/device/state.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/sys.h"
#include "simgpu/device/heap.h"
#include "simgpu/device/machine.h"
#include "simgpu/standins/standins.h"

__thread struct thread_state thread_state __attribute__((tls_model("initial-exec")));

static struct config config;
static struct context primaries[SIMGPU_DEVICES];
static int visible_devices[SIMGPU_DEVICES], visible_count;
static uint64_t context_ids;
static enum { DOWN, UP, FORKED, OVER } phase;
static bool machine_joined, announcement_made;
static pthread_mutex_t init_lock = PTHREAD_MUTEX_INITIALIZER;

void *object_new(enum object_kind kind, int device, size_t size)
{
	struct object *object = heap_new(size);

	if (object) {
		object->kind = kind;
		object->device = device;
	}
	return object;
}

void *object_get(void *handle, enum object_kind kind)
{
	struct object *object = handle;

	return (uintptr_t)handle > 4096 && object->kind == (uint32_t)kind ? object : NULL;
}

void object_free(void *object, size_t size)
{
	((struct object *)object)->kind = 0;
	heap_free(object, size);
}

static void after_fork(void)
{
	model_after_fork();
	pthread_mutex_init(&init_lock, NULL);
	machine_after_fork();
	standins_after_fork();
	machine_joined = false;
	if (phase == UP)
		phase = FORKED;
	memset(&thread_state, 0, sizeof(thread_state));
}

static void __attribute__((constructor)) begin(void)
{
	sys_say_init(false);
	pthread_atfork(NULL, NULL, after_fork);
}

static void __attribute__((destructor)) end(void)
{
	machine_leave();
	phase = OVER;
}

/* Reads CUDA_VISIBLE_DEVICES like the driver: numbers, up to the first that makes no sense. */
static void read_visible_devices(void)
{
	const char *text = getenv("CUDA_VISIBLE_DEVICES");

	visible_count = 0;
	if (!text) {
		for (int i = 0; i < config.count; i++)
			visible_devices[visible_count++] = i;
		return;
	}
	while (*text && visible_count < SIMGPU_DEVICES) {
		char *end;
		long n = strtol(text, &end, 10);

		if (end == text || n < 0 || n >= config.count)
			return;
		visible_devices[visible_count++] = (int)n;
		text = end + (*end == ',');
	}
}

/* Says it if the user wants to hear, and not again in the child of a fork. */
static void tell(const char *line)
{
	if (line[0] && !config.quiet && !announcement_made)
		sys_say(line);
}

static void announce(void)
{
	char line[200];

	snprintf(line, sizeof(line),
	    "simulated GPU: %d x %s, %.2f GiB; kernels do nothing, results are not real",
	    config.count, config.devices[0].name,
	    (double)config.devices[0].bytes / (double)(1ull << 30));
	tell(line);
}

/* Pre: init_lock is held. */
static void join_machine_once(void)
{
	char why[160];

	if (machine_joined)
		return;
	machine_joined = true;
	config_read(&config, why);
	tell(why);
	if (!config.count)
		return;
	machine_join(&config, why);
	tell(why);
	announce();
	announcement_made = true;
}

int state_discover(void)
{
	pthread_mutex_lock(&init_lock);
	join_machine_once();
	pthread_mutex_unlock(&init_lock);
	return config.count ? SIM_OK : SIM_NO_DEVICE;
}

int state_init(void)
{
	pthread_mutex_lock(&init_lock);
	if (phase == DOWN) {
		join_machine_once();
		read_visible_devices();
		backing_init(config.backing);
		phase = UP;
	}
	pthread_mutex_unlock(&init_lock);
	if (phase != UP)
		return phase == FORKED ? SIM_NOT_INITIALIZED : SIM_DEINITIALIZED;
	return visible_count ? SIM_OK : SIM_NO_DEVICE;
}

int state_enter(void)
{
	switch (phase) {
	case UP:
		return SIM_OK;
	case OVER:
		return SIM_DEINITIALIZED;
	default:
		return SIM_NOT_INITIALIZED;
	}
}

const struct config *state_config(void)
{
	return &config;
}

int state_count(void)
{
	return visible_count;
}

int device_of(int ordinal)
{
	return ordinal >= 0 && ordinal < visible_count ? visible_devices[ordinal] : -1;
}

int ordinal_of(int device)
{
	for (int i = 0; i < visible_count; i++)
		if (visible_devices[i] == device)
			return i;
	return -1;
}

struct context *context_current(void)
{
	struct thread_state *t = &thread_state;

	return t->depth ? t->stack[t->depth - 1] : NULL;
}

int context_need(struct context **out)
{
	struct context *context = context_current();

	if (!context || !object_get(context, OBJECT_CONTEXT))
		return context ? SIM_CONTEXT_IS_DESTROYED : SIM_INVALID_CONTEXT;
	*out = context;
	return SIM_OK;
}

struct context *primary_of(int device)
{
	return &primaries[device];
}

static int open_context(struct context *context, int device)
{
	uint64_t bytes = config.devices[device].context;

	if (bytes && phys_new(device, bytes, &context->overhead))
		return SIM_OUT_OF_MEMORY;
	context->head.device = device;
	context->head.kind = OBJECT_CONTEXT;
	context->id = ++context_ids;
	return SIM_OK;
}

static void close_context(struct context *context)
{
	if (context->overhead)
		phys_free(context->overhead);
	context->overhead = NULL;
}

int primary_retain(int device, struct context **out)
{
	struct context *context = &primaries[device];
	int rc;

	if (!context->retained) {
		rc = open_context(context, device);
		if (rc)
			return rc;
		context->primary = true;
	}
	context->retained++;
	*out = context;
	return SIM_OK;
}

int primary_release(int device, enum primary_end how)
{
	struct context *context = &primaries[device];

	if (!context->retained)
		return how == PRIMARY_RESET ? SIM_OK : SIM_INVALID_CONTEXT;
	if (how == PRIMARY_RELEASE && --context->retained)
		return SIM_OK;
	memory_reset(device);
	close_context(context);
	/* after a reset, callers that retained it get a new context at its next use */
	context->retained = 0;
	context->head.kind = 0;
	return SIM_OK;
}

int context_new(int device, unsigned flags, struct context **out)
{
	struct context *context = object_new(OBJECT_CONTEXT, device, sizeof(*context));

	if (!context || open_context(context, device)) {
		if (context)
			object_free(context, sizeof(*context));
		return SIM_OUT_OF_MEMORY;
	}
	context->flags = flags;
	*out = context;
	return SIM_OK;
}

int context_destroy(struct context *context)
{
	if (context->primary)
		return SIM_INVALID_CONTEXT;
	if (context_current() == context)
		thread_state.depth--;
	close_context(context);
	object_free(context, sizeof(*context));
	return SIM_OK;
}

bool inject_failure(const char *call, uint64_t bytes)
{
	static uint64_t calls, random;
	uint64_t n;

	if (config.fail.call[0] && strcmp(config.fail.call, call))
		return false;
	n = ++calls;
	if (n == config.fail.nth || (config.fail.from && n >= config.fail.from) ||
	    (config.fail.size && bytes >= config.fail.size))
		return true;
	if (!config.fail.rate)
		return false;
	if (!random)
		random = config.fail.seed * 2 + 1;
	random = random * 6364136223846793005ull + 1442695040888963407ull;
	return (random >> 33) % 1000000 < config.fail.rate;
}
