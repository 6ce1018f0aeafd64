/*
 * state.h - state that driver and runtime share: whether the device is up, contexts, and each
 * thread's current context.
 */
#ifndef SIMGPU_STATE_H
#define SIMGPU_STATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "simgpu/device/config.h"
#include "simgpu/device/memory.h"

#define SIM_DRIVER_VERSION 13000

enum object_kind {
	OBJECT_CONTEXT = 0x53470001,
	OBJECT_STREAM,
	OBJECT_EVENT,
	OBJECT_GRAPH,
	OBJECT_NODE,
	OBJECT_EXEC,
	OBJECT_POOL,
	OBJECT_ARRAY,
	OBJECT_MODULE,
	OBJECT_FUNCTION,
	OBJECT_HANDLE,
	OBJECT_EXTERNAL,
};

/* The first member of every object that programs see as an opaque pointer. Its memory stays mapped,
 * so that a destroyed object is recognised. */
struct object {
	uint32_t kind; /* 0: destroyed */
	int32_t device;
};

void *object_new(enum object_kind kind, int device, size_t size);
void *object_get(void *handle, enum object_kind kind); /* NULL: not such an object, or destroyed */
void object_free(void *object, size_t size);

struct context {
	struct object head;
	struct phys *overhead;
	uint64_t id;
	unsigned flags;
	int retained; /* count of a primary context; 0: inactive */
	bool primary;
};

struct thread_state {
	struct context *stack[16]; /* the last of `depth` is current */
	int depth;
	int device; /* of the runtime */
	int last_error; /* of the runtime */
	int capture_mode; /* 0: global, 1: thread-local, 2: relaxed */
};

extern __thread struct thread_state thread_state __attribute__((tls_model("initial-exec")));

/* Returns SIM_OK, or the result of a call while CUDA is not initialised, in a forked child, or at
 * exit. */
int state_enter(void);
int state_init(void); /* cuInit */
/* Joins the machine without initialising CUDA, for NVML, which a process may use before it forks.
 * Returns SIM_OK or SIM_NO_DEVICE. */
int state_discover(void);
const struct config *state_config(void);

/* Ordinals number the devices that programs see (CUDA_VISIBLE_DEVICES), device numbers those of the
 * machine. */
int state_count(void);
int device_of(int ordinal); /* -1: there is none */
int ordinal_of(int device);

/* Contexts. Pre: the model's lock is held. */
struct context *context_current(void);
int context_need(struct context **out); /* SIM_INVALID_CONTEXT: none is current */
int primary_retain(int device, struct context **out);
enum primary_end { PRIMARY_RELEASE, PRIMARY_RESET };
int primary_release(int device, enum primary_end how);
struct context *primary_of(int device);
int context_new(int device, unsigned flags, struct context **out);
int context_destroy(struct context *context);

/* Counts an allocation; true: it must fail (WHYOOM_SIMGPU_FAIL_*). */
bool inject_failure(const char *call, uint64_t bytes);

#endif
