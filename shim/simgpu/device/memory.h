/*
 * memory.h - the device model: physical memory, addresses, and the blocks that programs hold.
 *
 * A device address is a number in a range that no process maps: a host that follows one gets
 * SIGSEGV, as with a real GPU. backing.c keeps the contents. Functions return the driver's result
 * numbers. Pre: model_lock() is held, unless a function says otherwise.
 *
 * A request takes memory as public descriptions of the driver say: up to 1 MiB, a share of a 2 MiB
 * page, in steps of 512 bytes; above, whole pages of 2 MiB.
 */
#ifndef SIMGPU_MEMORY_H
#define SIMGPU_MEMORY_H

#include <stdbool.h>
#include <stdint.h>

#include "simgpu/device/backing.h"
#include "simgpu/device/config.h"
#include "simgpu/device/spans.h"

enum sim_result {
	SIM_OK = 0,
	SIM_INVALID_VALUE = 1,
	SIM_OUT_OF_MEMORY = 2,
	SIM_NOT_INITIALIZED = 3,
	SIM_DEINITIALIZED = 4,
	SIM_NO_DEVICE = 100,
	SIM_INVALID_DEVICE = 101,
	SIM_INVALID_IMAGE = 200,
	SIM_INVALID_CONTEXT = 201,
	SIM_ALREADY_MAPPED = 208,
	SIM_INVALID_HANDLE = 400,
	SIM_ILLEGAL_STATE = 401,
	SIM_NOT_FOUND = 500,
	SIM_NOT_READY = 600,
	SIM_PEER_ALREADY_ENABLED = 704,
	SIM_PEER_NOT_ENABLED = 705,
	SIM_CONTEXT_IS_DESTROYED = 709,
	SIM_ALREADY_REGISTERED = 712,
	SIM_NOT_REGISTERED = 713,
	SIM_NOT_PERMITTED = 800,
	SIM_NOT_SUPPORTED = 801,
	SIM_CAPTURE_UNSUPPORTED = 900,
	SIM_CAPTURE_INVALIDATED = 901,
	SIM_CAPTURE_UNMATCHED = 903,
	SIM_CAPTURE_UNJOINED = 904,
	SIM_CAPTURE_IMPLICIT = 906,
	SIM_CAPTURE_WRONG_THREAD = 908,
};

#define PAGE_BYTES (2ull << 20)
#define SMALL_BYTES (1ull << 20) /* requests up to this size share pages */
#define SMALL_UNIT 512ull

enum block_kind {
	BLOCK_DEVICE,
	BLOCK_POOL, /* stream-ordered; owner: its pool's segment */
	BLOCK_MAPPED, /* virtual memory management */
	BLOCK_IMPORT, /* of another process */
	BLOCK_GRAPH, /* of a graph's allocation node; owner: the node */
	BLOCK_MANAGED,
	BLOCK_PINNED,
	BLOCK_REGISTERED, /* memory of the host */
};

/* Physical memory; its block, handle or node owns it. */
struct phys {
	uint64_t bytes;
	int device;
	bool foreign; /* imported, and charged to the process that exported it */
	struct backing backing;
};

struct block {
	struct span span; /* first member; address and requested size */
	enum block_kind kind;
	int device;
	uint64_t id; /* never reused */
	struct phys *phys; /* NULL: real host memory */
	uint64_t offset; /* in `phys` */
	void *owner;
	unsigned flags;
	uint64_t mapped; /* bytes of real host memory to unmap; 0: it is not ours */
};

/* The lock that every entry point of runtime and driver takes to touch the model. Not recursive. */
void model_lock(void);
void model_unlock(void);
void model_after_fork(void);

int phys_new(int device, uint64_t bytes, struct phys **out);
void phys_free(struct phys *phys);

/* Reserves device addresses, at `wanted` if that is not 0; `align` is a power of two. 0: none is
 * left. */
uint64_t addresses_reserve(uint64_t bytes, uint64_t align, uint64_t wanted);
void addresses_release(uint64_t start, uint64_t bytes);
bool addresses_contain(uint64_t address);

int memory_alloc(int device, uint64_t bytes, struct block **out);
/* Allocates, or registers, host memory that the device can access. */
int memory_alloc_host(enum block_kind kind, int device, uint64_t bytes, struct block **out);
int memory_register(void *host, uint64_t bytes, struct block **out);
/* Frees a block of the functions above; pools and mappings free their own. */
void memory_free(struct block *block);

/* For pools and mappings: makes a block at an address, over physical memory or none. */
struct block *block_new(enum block_kind kind, int device, uint64_t start, uint64_t size,
    struct phys *phys, uint64_t offset);
void block_free(struct block *block);

struct block *memory_find(uint64_t address); /* the block that contains it, or NULL */
struct block *memory_find_from(uint64_t address); /* the first that starts there or above */

/* Copy and fill memory at any addresses, the host's or the device's. */
int memory_copy(uint64_t to, uint64_t from, uint64_t n);
int memory_fill(uint64_t to, uint32_t value, unsigned width, uint64_t n);

/* Frees all that this process has on the device. */
void memory_reset(int device);

#endif
