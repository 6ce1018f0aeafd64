/* driver.h - internals of the stand-in driver. */
#ifndef STAND_DRIVER_H
#define STAND_DRIVER_H

#include <stdint.h>

#include "cuda/cuda_abi.h"

#define EXPORT __attribute__((visibility("default")))

/* prototypes: definitions must agree with the table */
#define CUDA_API(library, symbol, asked, from, to, stream, class, parameters, arguments, effect)   \
	extern gpu_result symbol parameters;
#include "cuda/cuda_api.def"
#undef CUDA_API

/* A context's value tells its device. */
#define STAND_CONTEXT 0xc0deu
#define STAND_DEVICES 2

struct stand_thread {
	uint64_t contexts[8];
	int depth;
	int callback; /* one of the driver's own, which runs a function of the program's */
};
extern __thread struct stand_thread stand_self;

/* The current context, 0: none; and its device. */
uint64_t stand_context(void);
int stand_device(void);

/* After cuInit. */
int stand_ready(void);

/* Begins a call; returns its result if it may not go on. */
gpu_result stand_enter(void);

/* Memory of a kind: 'd'evice, 'h'andle, 'p'inned, 'v'a, 'm'anaged, 'a'sync; 'v' and 'p' take none
 * of the device's. At `address`, 0: the next one. */
gpu_result stand_take(gpu_ptr *out, size_t size, int kind, uint64_t address);
gpu_result stand_give(gpu_ptr address);

/* The same without a context, for handles. */
gpu_result stand_take_handle(gpu_handle *out, size_t size, int kind);

/* A handle's memory lives while it has a reference or a mapping. */
gpu_result stand_refer(uint64_t handle, int references, int maps);

/* Memory used as a side effect: contexts, modules. */
void stand_by_the_way(int64_t bytes);

/* A query that is forbidden at some moments. */
void stand_question(const char *what);
void stand_violation(const char *what);

#endif
