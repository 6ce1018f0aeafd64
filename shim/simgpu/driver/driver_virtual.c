/*
 * driver_virtual.c - the driver's entry points for virtual memory management and for memory of
 * other processes. Imported memory is charged to the process that exported it; contents are not
 * shared, so it reads as zeros until this process writes to it.
 */
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/sys.h"
#include "simgpu/device/heap.h"
#include "simgpu/device/machine.h"
#include "simgpu/driver/driver.h"

#define EXPORT_MAGIC 0x74726f70786573ull

/* A program's handle of physical memory. */
struct handle {
	struct object head;
	struct phys *phys;
	unsigned holds, maps; /* of the program; freed when both are 0 */
	uint64_t size;
	struct gpu_alloc_prop prop;
};

/* The contents of an exported handle or pointer, in a file or in 64 opaque bytes. */
struct exported {
	uint64_t magic, number, size;
	int32_t device, pid;
};

static struct spans reservations;

static void handle_free_if_unused(struct handle *handle)
{
	if (handle->holds || handle->maps)
		return;
	phys_free(handle->phys);
	object_free(handle, sizeof(*handle));
}

static struct handle *handle_get(gpu_handle value)
{
	struct handle *handle = object_get((void *)value, OBJECT_HANDLE);

	return handle && handle->holds ? handle : NULL;
}

API(cuMemAddressReserve,
    (gpu_ptr * out, size_t size, size_t alignment, gpu_ptr wanted, unsigned long long flags))
{
	struct span *span;
	int rc = driver_begin();

	if (rc)
		return rc;
	if (!out || !size || size % PAGE_BYTES || (alignment & (alignment - 1)) || flags)
		return driver_end(SIM_INVALID_VALUE);
	span = heap_new(sizeof(*span));
	if (!span)
		return driver_end(SIM_OUT_OF_MEMORY);
	span->start = addresses_reserve(size, alignment, wanted);
	span->size = size;
	if (!span->start) {
		heap_free(span, sizeof(*span));
		return driver_end(SIM_OUT_OF_MEMORY);
	}
	spans_insert(&reservations, span);
	*out = span->start;
	return driver_end(SIM_OK);
}

/* Returns the first mapping in [from, from + size), or NULL. */
static struct block *first_mapping(uint64_t from, uint64_t size)
{
	struct block *block = memory_find(from);

	if (!block)
		block = memory_find_from(from);
	return block && block->span.start < from + size ? block : NULL;
}

API(cuMemAddressFree, (gpu_ptr address, size_t size))
{
	struct span *span;
	int rc = driver_begin();

	if (rc)
		return rc;
	span = spans_find(&reservations, address);
	if (!span || span->start != address || span->size != size || first_mapping(address, size))
		return driver_end(SIM_INVALID_VALUE);
	spans_remove(&reservations, span);
	heap_free(span, sizeof(*span));
	addresses_release(address, size);
	return driver_end(SIM_OK);
}

static int handle_new(
    int device, struct phys *phys, uint64_t size, gpu_handle *out, struct handle **made)
{
	struct handle *handle = object_new(OBJECT_HANDLE, device, sizeof(*handle));

	if (!handle)
		return SIM_OUT_OF_MEMORY;
	handle->phys = phys;
	handle->size = size;
	handle->holds = 1;
	*out = (gpu_handle)(uintptr_t)handle;
	*made = handle;
	return SIM_OK;
}

API(cuMemCreate,
    (gpu_handle * out, size_t size, const struct gpu_alloc_prop *prop, unsigned long long flags))
{
	struct handle *handle;
	struct phys *phys;
	int device, rc = driver_begin();

	if (rc)
		return rc;
	if (!out || !prop || !size || size % PAGE_BYTES || flags || prop->type != 1)
		return driver_end(SIM_INVALID_VALUE);
	/* memory of a NUMA node and handles for other machines are not supported */
	if (prop->location.type != GPU_LOCATION_DEVICE || prop->handle_types & 8)
		return driver_end(SIM_NOT_SUPPORTED);
	device = device_of(prop->location.id);
	if (device < 0)
		return driver_end(SIM_INVALID_DEVICE);
	rc =
	    inject_failure("cuMemCreate", size) ? SIM_OUT_OF_MEMORY : phys_new(device, size, &phys);
	if (rc == SIM_OUT_OF_MEMORY) {
		pool_release_unused(device);
		rc = inject_failure("", size) ? rc : phys_new(device, size, &phys);
	}
	if (rc)
		return driver_end(rc);
	rc = handle_new(device, phys, size, out, &handle);
	if (rc)
		phys_free(phys);
	else
		handle->prop = *prop;
	return driver_end(rc);
}

API(cuMemRelease, (gpu_handle value))
{
	struct handle *handle;
	int rc = driver_begin();

	if (rc)
		return rc;
	handle = handle_get(value);
	if (!handle)
		return driver_end(SIM_INVALID_VALUE);
	handle->holds--;
	handle_free_if_unused(handle);
	return driver_end(SIM_OK);
}

API(cuMemRetainAllocationHandle, (gpu_handle * out, void *address))
{
	struct block *block;
	struct handle *handle;
	int rc = driver_begin();

	if (rc)
		return rc;
	block = memory_find((uint64_t)address);
	if (!out || !block || block->kind != BLOCK_MAPPED)
		return driver_end(SIM_INVALID_VALUE);
	handle = block->owner;
	handle->holds++;
	*out = (gpu_handle)(uintptr_t)handle;
	return driver_end(SIM_OK);
}

API(cuMemMap,
    (gpu_ptr address, size_t size, size_t offset, gpu_handle value, unsigned long long flags))
{
	struct handle *handle;
	struct block *block;
	struct span *span;
	int rc = driver_begin();

	if (rc)
		return rc;
	handle = handle_get(value);
	span = spans_find(&reservations, address);
	if (!handle || !span || !size || flags || size % PAGE_BYTES || offset % PAGE_BYTES ||
	    address % PAGE_BYTES || offset + size > handle->size ||
	    size > span->start + span->size - address || first_mapping(address, size))
		return driver_end(SIM_INVALID_VALUE);
	block = block_new(BLOCK_MAPPED, handle->head.device, address, size, handle->phys, offset);
	if (!block)
		return driver_end(SIM_OUT_OF_MEMORY);
	block->owner = handle;
	handle->maps++;
	return driver_end(SIM_OK);
}

/* One call may remove many mappings, but only whole ones. */
API(cuMemUnmap, (gpu_ptr address, size_t size))
{
	struct block *block;
	uint64_t end = address + size;
	int rc = driver_begin();

	if (rc)
		return rc;
	for (uint64_t at = address; at < end; at = block->span.start + block->span.size) {
		block = first_mapping(at, end - at);
		if (!block)
			break;
		if (block->kind != BLOCK_MAPPED || block->span.start < address ||
		    block->span.start + block->span.size > end)
			return driver_end(SIM_INVALID_VALUE);
	}
	if (!size || !first_mapping(address, size))
		return driver_end(SIM_INVALID_VALUE);
	while ((block = first_mapping(address, size))) {
		struct handle *handle = block->owner;

		block_free(block);
		handle->maps--;
		handle_free_if_unused(handle);
	}
	return driver_end(SIM_OK);
}

API(cuMemSetAccess, (gpu_ptr address, size_t size, const struct gpu_access *access, size_t count))
{
	struct block *block;
	int rc = driver_begin();

	if (rc)
		return rc;
	if (!size || !access || !count)
		return driver_end(SIM_INVALID_VALUE);
	for (uint64_t at = address; at < address + size;
	     at = block->span.start + block->span.size) {
		block = memory_find(at);
		if (!block || block->kind != BLOCK_MAPPED)
			return driver_end(SIM_INVALID_VALUE);
		block->flags = (unsigned)access->flags;
	}
	return driver_end(SIM_OK);
}

API(cuMemGetAccess, (unsigned long long *flags, const struct gpu_location *where, gpu_ptr address))
{
	struct block *block;
	int rc = driver_begin();

	if (rc)
		return rc;
	block = memory_find(address);
	if (!flags || !where || !block || block->kind != BLOCK_MAPPED)
		return driver_end(SIM_INVALID_VALUE);
	*flags = block->flags;
	return driver_end(SIM_OK);
}

API(cuMemGetAllocationGranularity, (size_t * out, const struct gpu_alloc_prop *prop, int option))
{
	int rc = state_enter();

	if (rc)
		return rc;
	if (!out || !prop || prop->location.type != GPU_LOCATION_DEVICE)
		return SIM_INVALID_VALUE;
	*out = PAGE_BYTES;
	return SIM_OK;
}

API(cuMemGetAllocationPropertiesFromHandle, (struct gpu_alloc_prop * out, gpu_handle value))
{
	struct handle *handle;
	int rc = driver_begin();

	if (rc)
		return rc;
	handle = handle_get(value);
	if (!out || !handle)
		return driver_end(SIM_INVALID_VALUE);
	*out = handle->prop;
	return driver_end(SIM_OK);
}

/* Exports a handle as a file descriptor of a small file that identifies the memory. */
API(cuMemExportToShareableHandle, (void *out, gpu_handle value, int type, unsigned long long flags))
{
	struct handle *handle;
	struct exported exported;
	int fd, rc = driver_begin();

	if (rc)
		return rc;
	handle = handle_get(value);
	if (!out || !handle)
		return driver_end(SIM_INVALID_VALUE);
	if (type != 1)
		return driver_end(SIM_NOT_SUPPORTED);
	exported = (struct exported){
	    EXPORT_MAGIC, machine_unique_number(), handle->size, handle->head.device, sys_getpid()};
	fd = (int)sys_call(SYS_memfd_create, (long)"simgpu", MFD_CLOEXEC, 0, 0, 0, 0);
	if (fd < 0)
		return driver_end(SIM_OUT_OF_MEMORY);
	sys_call(SYS_pwrite64, fd, (long)&exported, sizeof(exported), 0, 0, 0);
	*(int *)out = fd;
	return driver_end(SIM_OK);
}

static int import_memory(const struct exported *exported, struct phys **out)
{
	struct phys *phys;

	if (exported->magic != EXPORT_MAGIC || exported->device < 0 ||
	    exported->device >= state_config()->count)
		return SIM_INVALID_VALUE;
	phys = heap_new(sizeof(*phys));
	if (!phys)
		return SIM_OUT_OF_MEMORY;
	phys->bytes = (exported->size + PAGE_BYTES - 1) & ~(PAGE_BYTES - 1);
	phys->device = exported->device;
	phys->foreign = true;
	*out = phys;
	return SIM_OK;
}

API(cuMemImportFromShareableHandle, (gpu_handle * out, void *from, int type))
{
	struct exported exported = {0};
	struct handle *handle;
	struct phys *phys;
	int rc = driver_begin();

	if (rc)
		return rc;
	if (!out || type != 1)
		return driver_end(out ? SIM_NOT_SUPPORTED : SIM_INVALID_VALUE);
	if (sys_call(SYS_pread64, (int)(intptr_t)from, (long)&exported, sizeof(exported), 0, 0,
		0) != sizeof(exported))
		return driver_end(SIM_INVALID_VALUE);
	rc = import_memory(&exported, &phys);
	if (rc)
		return driver_end(rc);
	rc = handle_new(exported.device, phys, exported.size, out, &handle);
	if (rc) {
		phys_free(phys);
		return driver_end(rc);
	}
	handle->prop.type = 1;
	handle->prop.handle_types = 1;
	handle->prop.location.type = GPU_LOCATION_DEVICE;
	handle->prop.location.id = ordinal_of(exported.device);
	return driver_end(SIM_OK);
}

API(cuIpcGetMemHandle, (struct gpu_ipc_handle * out, gpu_ptr address))
{
	struct exported *exported = (struct exported *)out;
	struct block *block;
	int rc = driver_begin();

	if (rc)
		return rc;
	block = memory_find(address);
	if (!out || !block || block->kind != BLOCK_DEVICE)
		return driver_end(SIM_INVALID_VALUE);
	memset(out, 0, sizeof(*out));
	*exported = (struct exported){
	    EXPORT_MAGIC, block->id, block->span.size, block->device, sys_getpid()};
	return driver_end(SIM_OK);
}

/* Each opening has an address of its own; a process cannot open its own export. */
API(cuIpcOpenMemHandle_v2, (gpu_ptr * out, struct gpu_ipc_handle value, unsigned flags))
{
	struct exported *exported = (struct exported *)&value;
	struct context *context;
	struct block *block;
	struct phys *phys;
	uint64_t start;
	int rc = driver_begin_unsafe(&context);

	if (rc)
		return rc;
	if (!out)
		return driver_end(SIM_INVALID_VALUE);
	if (exported->pid == sys_getpid())
		return driver_end(SIM_INVALID_CONTEXT);
	rc = import_memory(exported, &phys);
	if (rc)
		return driver_end(rc);
	start = addresses_reserve(phys->bytes, PAGE_BYTES, 0);
	block = start ? block_new(BLOCK_IMPORT, exported->device, start, exported->size, phys, 0)
		      : NULL;
	if (!block) {
		if (start)
			addresses_release(start, phys->bytes);
		phys_free(phys);
		return driver_end(SIM_OUT_OF_MEMORY);
	}
	*out = start;
	return driver_end(SIM_OK);
}

API_RETURNS(cuIpcOpenMemHandle, (gpu_ptr * out, struct gpu_ipc_handle value, unsigned flags),
    self_cuIpcOpenMemHandle_v2(out, value, flags))

API(cuIpcCloseMemHandle, (gpu_ptr address))
{
	struct block *block;
	int rc = driver_begin();

	if (rc)
		return rc;
	block = memory_find(address);
	if (!block || block->kind != BLOCK_IMPORT || block->span.start != address)
		return driver_end(SIM_INVALID_VALUE);
	memory_free(block);
	return driver_end(SIM_OK);
}
