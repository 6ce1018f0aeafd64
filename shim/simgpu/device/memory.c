/*
 * memory.c - see memory.h.
 */
#include "simgpu/device/memory.h"

#include <pthread.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include "base/sys.h"
#include "simgpu/device/heap.h"
#include "simgpu/device/machine.h"

/* Between a program's addresses and those of mappings, on x86-64 and aarch64. */
#define ADDRESSES 0x200000000000ull
#define ADDRESSES_END 0x300000000000ull

#define UNITS (PAGE_BYTES / SMALL_UNIT)

/* A page shared by small blocks. */
struct shared_page {
	struct shared_page *next;
	struct phys *phys;
	uint64_t start;
	unsigned used; /* units */
	int device;
	uint64_t bits[UNITS / 64];
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct spans blocks, holes;
static struct shared_page *pages;
static uint64_t last_id;
static bool addresses_ready;

void model_lock(void)
{
	pthread_mutex_lock(&lock);
}

void model_unlock(void)
{
	pthread_mutex_unlock(&lock);
}

void model_after_fork(void)
{
	pthread_mutex_init(&lock, NULL);
	heap_after_fork();
}

int phys_new(int device, uint64_t bytes, struct phys **out)
{
	struct phys *phys;

	if (bytes > 1ull << 46)
		return SIM_OUT_OF_MEMORY;
	bytes = (bytes + PAGE_BYTES - 1) & ~(PAGE_BYTES - 1);
	phys = heap_new(sizeof(*phys));
	if (!phys || !machine_reserve(device, bytes)) {
		heap_free(phys, sizeof(*phys));
		return SIM_OUT_OF_MEMORY;
	}
	phys->device = device;
	phys->bytes = bytes;
	*out = phys;
	return SIM_OK;
}

void phys_free(struct phys *phys)
{
	if (!phys->foreign)
		machine_release(phys->device, phys->bytes);
	backing_free(&phys->backing);
	heap_free(phys, sizeof(*phys));
}

static bool hole_add(uint64_t start, uint64_t size)
{
	struct span *hole;

	if (!size)
		return true;
	hole = heap_new(sizeof(*hole));
	if (!hole)
		return false;
	hole->start = start;
	hole->size = size;
	spans_insert(&holes, hole);
	return true;
}

/* Cuts [start, start + bytes) out of a hole that contains it. */
static void hole_cut(struct span *hole, uint64_t start, uint64_t bytes)
{
	uint64_t from = hole->start, end = hole->start + hole->size;

	spans_remove(&holes, hole);
	heap_free(hole, sizeof(*hole));
	hole_add(from, start - from);
	hole_add(start + bytes, end - start - bytes);
}

uint64_t addresses_reserve(uint64_t bytes, uint64_t align, uint64_t wanted)
{
	struct span *hole;
	uint64_t start;

	if (!addresses_ready)
		addresses_ready = hole_add(ADDRESSES, ADDRESSES_END - ADDRESSES);
	if (align < PAGE_BYTES)
		align = PAGE_BYTES;
	bytes = (bytes + PAGE_BYTES - 1) & ~(PAGE_BYTES - 1);
	if (!bytes || bytes > ADDRESSES_END - ADDRESSES || align > ADDRESSES)
		return 0;
	if (wanted && !(wanted & (align - 1))) {
		hole = spans_find(&holes, wanted);
		if (hole && hole->size - (wanted - hole->start) >= bytes) {
			hole_cut(hole, wanted, bytes);
			return wanted;
		}
	}
	hole = spans_first_fit(&holes, bytes + (align - PAGE_BYTES));
	if (!hole)
		return 0;
	start = (hole->start + align - 1) & ~(align - 1);
	hole_cut(hole, start, bytes);
	return start;
}

void addresses_release(uint64_t start, uint64_t bytes)
{
	uint64_t end;
	struct span *beside;

	bytes = (bytes + PAGE_BYTES - 1) & ~(PAGE_BYTES - 1);
	end = start + bytes;
	beside = spans_find_before(&holes, start);
	if (beside && beside->start + beside->size == start) {
		start = beside->start;
		spans_remove(&holes, beside);
		heap_free(beside, sizeof(*beside));
	}
	beside = spans_find_from(&holes, end);
	if (beside && beside->start == end) {
		end += beside->size;
		spans_remove(&holes, beside);
		heap_free(beside, sizeof(*beside));
	}
	hole_add(start, end - start);
}

bool addresses_contain(uint64_t address)
{
	return address >= ADDRESSES && address < ADDRESSES_END;
}

struct block *block_new(enum block_kind kind, int device, uint64_t start, uint64_t size,
    struct phys *phys, uint64_t offset)
{
	struct block *block = heap_new(sizeof(*block));

	if (!block)
		return NULL;
	block->kind = kind;
	block->device = device;
	block->span.start = start;
	block->span.size = size;
	block->phys = phys;
	block->offset = offset;
	block->id = ++last_id;
	spans_insert(&blocks, &block->span);
	return block;
}

void block_free(struct block *block)
{
	spans_remove(&blocks, &block->span);
	heap_free(block, sizeof(*block));
}

struct block *memory_find(uint64_t address)
{
	return (struct block *)spans_find(&blocks, address);
}

struct block *memory_find_from(uint64_t address)
{
	return (struct block *)spans_find_from(&blocks, address);
}

static int large_alloc(int device, uint64_t bytes, struct block **out)
{
	struct phys *phys;
	uint64_t start;
	int rc = phys_new(device, bytes, &phys);

	if (rc)
		return rc;
	start = addresses_reserve(phys->bytes, PAGE_BYTES, 0);
	*out = start ? block_new(BLOCK_DEVICE, device, start, bytes, phys, 0) : NULL;
	if (*out)
		return SIM_OK;
	if (start)
		addresses_release(start, phys->bytes);
	phys_free(phys);
	return SIM_OUT_OF_MEMORY;
}

/* Returns the first run of that many free units, or UNITS. */
static unsigned find_run(const struct shared_page *page, unsigned units)
{
	unsigned run = 0;

	for (unsigned i = 0; i < UNITS; i++) {
		if (!(i % 64) && page->bits[i / 64] == UINT64_MAX) {
			run = 0;
			i += 63;
			continue;
		}
		run = page->bits[i / 64] >> i % 64 & 1 ? 0 : run + 1;
		if (run == units)
			return i + 1 - units;
	}
	return UNITS;
}

static void mark_units(struct shared_page *page, unsigned from, unsigned units, bool used)
{
	for (unsigned i = from; i < from + units; i++) {
		uint64_t bit = 1ull << i % 64;

		page->bits[i / 64] = used ? page->bits[i / 64] | bit : page->bits[i / 64] & ~bit;
	}
	page->used = used ? page->used + units : page->used - units;
}

static struct shared_page *page_new(int device)
{
	struct shared_page *page = heap_new(sizeof(*page));

	if (!page || phys_new(device, PAGE_BYTES, &page->phys)) {
		heap_free(page, sizeof(*page));
		return NULL;
	}
	page->start = addresses_reserve(PAGE_BYTES, PAGE_BYTES, 0);
	if (!page->start) {
		phys_free(page->phys);
		heap_free(page, sizeof(*page));
		return NULL;
	}
	page->device = device;
	page->next = pages;
	pages = page;
	return page;
}

static void page_free_if_unused(struct shared_page *page)
{
	if (page->used)
		return;
	for (struct shared_page **at = &pages; *at; at = &(*at)->next)
		if (*at == page) {
			*at = page->next;
			break;
		}
	addresses_release(page->start, PAGE_BYTES);
	phys_free(page->phys);
	heap_free(page, sizeof(*page));
}

static int small_alloc(int device, uint64_t bytes, struct block **out)
{
	unsigned units = (unsigned)((bytes + SMALL_UNIT - 1) / SMALL_UNIT), at = UNITS;
	struct shared_page *page;

	for (page = pages; page; page = page->next) {
		if (page->device != device || UNITS - page->used < units)
			continue;
		at = find_run(page, units);
		if (at < UNITS)
			break;
	}
	if (!page) {
		page = page_new(device);
		if (!page)
			return SIM_OUT_OF_MEMORY;
		at = 0;
	}
	*out = block_new(BLOCK_DEVICE, device, page->start + at * SMALL_UNIT, bytes, page->phys,
	    at * SMALL_UNIT);
	if (!*out) {
		page_free_if_unused(page);
		return SIM_OUT_OF_MEMORY;
	}
	(*out)->owner = page;
	mark_units(page, at, units, true);
	return SIM_OK;
}

int memory_alloc(int device, uint64_t bytes, struct block **out)
{
	if (!bytes)
		return SIM_INVALID_VALUE;
	return bytes > SMALL_BYTES ? large_alloc(device, bytes, out)
				   : small_alloc(device, bytes, out);
}

/* As in the driver, page-locked memory is a shared mapping and resident from the start (RssShmem).
 */
static long map_host(enum block_kind kind, uint64_t size)
{
	int flags =
	    MAP_ANONYMOUS | (kind == BLOCK_PINNED ? MAP_SHARED | MAP_POPULATE : MAP_PRIVATE);

	return sys_call(SYS_mmap, 0, (long)size, PROT_READ | PROT_WRITE, flags, -1, 0);
}

int memory_alloc_host(enum block_kind kind, int device, uint64_t bytes, struct block **out)
{
	uint64_t size = (bytes + 4095) & ~4095ull;
	long p;

	if (!bytes || bytes > 1ull << 46)
		return bytes ? SIM_OUT_OF_MEMORY : SIM_INVALID_VALUE;
	p = map_host(kind, size);
	if (sys_failed(p))
		return SIM_OUT_OF_MEMORY;
	*out = block_new(kind, device, (uint64_t)p, bytes, NULL, 0);
	if (!*out) {
		sys_call(SYS_munmap, p, (long)size, 0, 0, 0, 0);
		return SIM_OUT_OF_MEMORY;
	}
	(*out)->mapped = size;
	return SIM_OK;
}

int memory_register(void *host, uint64_t bytes, struct block **out)
{
	struct block *next = memory_find_from((uint64_t)host);

	if (!host || !bytes || addresses_contain((uint64_t)host))
		return SIM_INVALID_VALUE;
	if (memory_find((uint64_t)host) || (next && next->span.start < (uint64_t)host + bytes))
		return SIM_ALREADY_REGISTERED;
	*out = block_new(BLOCK_REGISTERED, 0, (uint64_t)host, bytes, NULL, 0);
	return *out ? SIM_OK : SIM_OUT_OF_MEMORY;
}

void memory_free(struct block *block)
{
	struct shared_page *page = block->owner;
	struct phys *phys = block->phys;
	uint64_t start = block->span.start, size = block->span.size, mapped = block->mapped;
	enum block_kind kind = block->kind;
	unsigned from = (unsigned)(block->offset / SMALL_UNIT);

	block_free(block);
	if (kind == BLOCK_DEVICE && page) {
		mark_units(page, from, (unsigned)((size + SMALL_UNIT - 1) / SMALL_UNIT), false);
		page_free_if_unused(page);
	} else if (kind == BLOCK_DEVICE || kind == BLOCK_IMPORT) {
		addresses_release(start, phys->bytes);
		phys_free(phys);
	} else if (mapped) {
		sys_call(SYS_munmap, (long)start, (long)mapped, 0, 0, 0, 0);
	}
}

/* Finds the block of a device address (NULL: host memory) and cuts *n at its end. False: a device
 * address without a block. */
static bool find_target(uint64_t address, struct block **out, uint64_t *n)
{
	struct block *block = NULL;

	*out = NULL;
	if (!addresses_contain(address))
		return true;
	block = memory_find(address);
	if (!block || !block->phys)
		return false;
	*out = block;
	if (*n > block->span.start + block->span.size - address)
		*n = block->span.start + block->span.size - address;
	return true;
}

static uint64_t offset_in(const struct block *block, uint64_t address)
{
	return block->offset + (address - block->span.start);
}

int memory_copy(uint64_t to, uint64_t from, uint64_t n)
{
	while (n) {
		struct block *source, *target;
		uint64_t part = n;
		char through[4096];

		if (!find_target(from, &source, &part) || !find_target(to, &target, &part))
			return SIM_INVALID_VALUE;
		if (source && target) {
			if (part > sizeof(through))
				part = sizeof(through);
			backing_read(
			    &source->phys->backing, offset_in(source, from), through, part);
			backing_write(&target->phys->backing, target->phys->bytes,
			    offset_in(target, to), through, part);
		} else if (source) {
			backing_read(
			    &source->phys->backing, offset_in(source, from), (void *)to, part);
		} else if (target) {
			backing_write(&target->phys->backing, target->phys->bytes,
			    offset_in(target, to), (const void *)from, part);
		} else {
			memmove((void *)to, (const void *)from, part);
		}
		to += part;
		from += part;
		n -= part;
	}
	return SIM_OK;
}

int memory_fill(uint64_t to, uint32_t value, unsigned width, uint64_t n)
{
	while (n) {
		struct block *target;
		uint64_t part = n;

		if (!find_target(to, &target, &part))
			return SIM_INVALID_VALUE;
		if (target)
			backing_fill(&target->phys->backing, target->phys->bytes,
			    offset_in(target, to), value, width, part);
		else
			for (uint64_t i = 0; i + width <= part; i += width)
				memcpy((char *)to + i, &value, width);
		to += part;
		n -= part;
	}
	return SIM_OK;
}

void memory_reset(int device)
{
	struct block *block, *next;

	for (block = memory_find_from(0); block; block = next) {
		next = memory_find_from(block->span.start + 1);
		if (block->device == device &&
		    (block->kind == BLOCK_DEVICE || block->kind == BLOCK_MANAGED ||
			block->kind == BLOCK_PINNED || block->kind == BLOCK_IMPORT))
			memory_free(block);
	}
}
