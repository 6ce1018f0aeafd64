/*
 * state.h - what driver and runtime have in common: whether the device is up, contexts, and what
 * each thread has current.
 */
#ifndef SIMGPU_STATE_H
#define SIMGPU_STATE_H

#include <stdbool.h>
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

/* First member of everything that is handed out as an opaque pointer. Its memory is never given
 * back to the kernel, so that one destroyed is recognised. */
struct object {
	uint32_t kind; /* 0: destroyed */
	int32_t device;
};

void *object_new(enum object_kind kind, int device, size_t size);
void *object_get(void *handle, enum object_kind kind); /* NULL: it is none, or no longer */
void object_free(void *object, size_t size);

struct context {
	struct object head;
	struct phys *overhead;
	uint64_t id;
	unsigned flags;
	int retained; /* a primary one's count; 0: inactive */
	bool primary;
};

struct thread_state {
	struct context *stack[16]; /* the last of `depth` is current */
	int depth;
	int device; /* the runtime's */
	int last_error; /* the runtime's */
	int capture_mode; /* 0 global, 1 thread-local, 2 relaxed */
};

extern __thread struct thread_state thread_state __attribute__((tls_model("initial-exec")));

/* Up, or the result to answer with: not initialised, in a forked child, exiting. */
int state_enter(void);
int state_init(void); /* cuInit */
/* The machine and its devices are known, but CUDA is not up: NVML, by which a process that is going
 * to fork may ask. SIM_OK or SIM_NO_DEVICE. */
int state_look(void);
const struct config *state_config(void);

/* Ordinals are what programs see (CUDA_VISIBLE_DEVICES), devices what the machine has. */
int state_count(void);
int device_of(int ordinal); /* -1: there is none */
int ordinal_of(int device);

/* Under the model's lock. */
struct context *context_current(void);
int context_need(struct context **out); /* SIM_INVALID_CONTEXT: none is current */
int primary_retain(int device, struct context **out);
int primary_release(int device, bool reset);
struct context *primary_of(int device);
int context_new(int device, unsigned flags, struct context **out);
int context_destroy(struct context *context);

/* True: this allocation is to fail (WHYOOM_SIMGPU_FAIL_*). Counts it. */
bool inject_failure(const char *call, uint64_t bytes);

#endif
