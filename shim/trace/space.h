/*
 * space.h - the numbers of the GPU's memory spaces in a trace, TRACE_DEF_SPACE: one for each kind
 * and device. 0 is none of them: the host, or the driver's choice.
 */
#ifndef SHIM_SPACE_H
#define SHIM_SPACE_H

#include <stdint.h>

#define SPACE_DEVICES 64

enum cuda_kind {
	CUDA_DEVICE, /* first, as its spaces are the parents */
	CUDA_POOL,
	CUDA_GRAPH,
	CUDA_TORCH,
	CUDA_MANAGED, /* from here on one space, not one for each device */
	CUDA_PINNED,
	CUDA_FOREIGN,
	CUDA_VA,
	CUDA_KINDS
};

/* `device` is below SPACE_DEVICES. */
static inline uint32_t space_number(enum cuda_kind kind, uint32_t device)
{
	return (uint32_t)kind * SPACE_DEVICES + device + 1;
}

/* The kind of a space whose number is not 0. */
static inline enum cuda_kind space_kind(uint64_t number)
{
	return (enum cuda_kind)((number - 1) / SPACE_DEVICES);
}

#endif
