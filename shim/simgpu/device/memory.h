/*
 * memory.h - the device model: physical memory, addresses, and the blocks that programs hold.
 *
 * A device address is a number in a range that no process maps: a host that follows one gets the
 * SIGSEGV which a real GPU gives it. What is written by copies is kept by backing.c. Results are
 * the driver's numbers. All of it under model_lock(), save where said.
 *
 * How much memory a request takes, after public descriptions of the driver: up to 1 MiB, a share of
 * a 2 MiB page, in steps of 512 bytes; above it, whole pages of 2 MiB.
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

#define PAGE_BYTES (2ull << 20) /* what physical memory is handed out in */
#define SMALL_BYTES (1ull << 20) /* requests up to it share pages */
#define SMALL_UNIT 512ull

enum block_kind {
	BLOCK_DEVICE,
	BLOCK_POOL, /* stream-ordered; owner: its pool's segment */
	BLOCK_MAPPED, /* virtual memory management */
	BLOCK_IMPORT, /* another process's */
	BLOCK_GRAPH, /* of a graph's allocation node; owner: the node */
	BLOCK_MANAGED,
	BLOCK_PINNED,
	BLOCK_REGISTERED, /* the host's own, only known here */
};

/* Physical memory. It goes when nobody holds it and nothing maps it. */
struct phys {
	uint64_t bytes;
	int device;
	unsigned holds, maps;
	bool foreign; /* charged to the process that it was imported from */
	struct backing backing;
};

struct block {
	struct span span; /* first: address and size as given out */
	enum block_kind kind;
	int device;
	uint64_t id; /* never reused */
	struct phys *phys; /* NULL: real host memory */
	uint64_t offset; /* in it */
	void *owner;
	unsigned flags;
	uint64_t mapped; /* real host memory to be unmapped; 0: not ours */
};

/* Every entry point of runtime and driver that touches the model takes it. Not recursive. */
void model_lock(void);
void model_unlock(void);
void model_after_fork(void);

int phys_new(int device, uint64_t bytes, struct phys **out); /* one hold */
void phys_hold(struct phys *phys);
void phys_release(struct phys *phys);
void phys_map(struct phys *phys);
void phys_unmap(struct phys *phys);

/* Addresses of our own range; `align` is a power of two. 0: none is left. */
uint64_t addresses_take(uint64_t bytes, uint64_t align, uint64_t wanted);
void addresses_give(uint64_t start, uint64_t bytes);
bool addresses_ours(uint64_t address);

int memory_alloc(int device, uint64_t bytes, struct block **out);
/* Real host memory that the device reaches. */
int memory_alloc_host(enum block_kind kind, int device, uint64_t bytes, struct block **out);
int memory_register(void *host, uint64_t bytes, struct block **out);
/* Of any kind made above; pools and mappings are their modules' own. */
void memory_free(struct block *block);

/* For those modules: a block at an address, over physical memory or none. */
struct block *block_new(enum block_kind kind, int device, uint64_t start, uint64_t size,
    struct phys *phys, uint64_t offset);
void block_drop(struct block *block);

struct block *memory_find(uint64_t address); /* that holds it, or NULL */
struct block *memory_from(uint64_t address); /* the first that starts there or above */

/* Copies and fills between any two addresses, the host's and ours. */
int memory_copy(uint64_t to, uint64_t from, uint64_t n);
int memory_fill(uint64_t to, uint32_t value, unsigned width, uint64_t n);

/* Everything that the device holds for this process goes, as at a reset. */
void memory_reset(int device);

#endif
