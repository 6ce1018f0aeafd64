/*
 * trace_file_io.c - how the trace file is worked on: by a descriptor, or where it cannot be opened
 * any more, by mappings of it (rights.h). Holds neither between calls.
 */
#include "trace/trace_file.h"

#include <string.h>
#include <sys/syscall.h>

#include "base/sys.h"
#include "trace/rights.h"

int trace_file_open(void)
{
	int fd;

	if (rights_by_mapping(0))
		return SINK_MAPPED;
	fd = trace_file_open_by_path();
	return fd < 0 && rights_by_mapping(fd) ? SINK_MAPPED : fd;
}

void trace_file_close(int fd)
{
	if (fd != SINK_MAPPED)
		sys_close(fd);
}

bool trace_file_punch_range(int fd, uint64_t offset, uint64_t bytes)
{
	enum { KEEP_SIZE = 1, PUNCH_HOLE = 2 };

	if (fd == SINK_MAPPED)
		return rights_punch(offset, bytes);
	return sys_call(
		   SYS_fallocate, fd, KEEP_SIZE | PUNCH_HOLE, (long)offset, (long)bytes, 0, 0) >= 0;
}

bool trace_file_can_punch(int fd)
{
	/* in the header's slot, where nothing is */
	return trace_file_punch_range(fd, TRACE_SLOT_BYTES / 2, TRACE_HEADER_BYTES);
}

bool trace_file_read(int fd, uint64_t offset, void *into, size_t bytes)
{
	void *p;

	if (fd != SINK_MAPPED)
		return sys_call(SYS_pread64, fd, (long)into, (long)bytes, (long)offset, 0, 0) ==
		       (long)bytes;
	/* a read beyond the file's end would be a signal */
	p = offset / TRACE_SLOT_BYTES < rights_file_end() / TRACE_SLOT_BYTES
		? rights_map(offset / TRACE_SLOT_BYTES * TRACE_SLOT_BYTES, TRACE_SLOT_BYTES)
		: NULL;
	if (!p)
		return false;
	memcpy(into, (const char *)p + offset % TRACE_SLOT_BYTES, bytes);
	sys_call(SYS_munmap, (long)p, TRACE_SLOT_BYTES, 0, 0, 0, 0);
	return true;
}

void trace_file_seal_by_mapping(uint64_t offset)
{
	struct trace_chunk *chunk = rights_map(offset, TRACE_SLOT_BYTES);

	if (!chunk)
		return;
	__atomic_store_n(&chunk->sealed, 1, __ATOMIC_RELEASE);
	sys_call(SYS_munmap, (long)chunk, TRACE_SLOT_BYTES, 0, 0, 0, 0);
}
