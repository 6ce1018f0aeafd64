/*
 * trace_file_io.c - reaches the trace file: by a descriptor, or where it cannot be opened any more,
 * by mappings of it (rights.h). Keeps neither between calls.
 */
#include "trace/trace_file.h"

#include <errno.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>

#include "base/sys.h"
#include "trace/rights.h"

int trace_file_open(void)
{
	int fd;

	if (rights_by_mapping(0))
		return TRACE_FILE_MAPPED;
	fd = trace_file_open_by_path();
	return fd < 0 && rights_by_mapping(fd) ? TRACE_FILE_MAPPED : fd;
}

void trace_file_close(int fd)
{
	if (fd != TRACE_FILE_MAPPED)
		sys_close(fd);
}

/* Would writing up to `end` raise SIGXFSZ? */
static bool over_file_limit(uint64_t end)
{
	return end > sys_limit(RLIMIT_FSIZE);
}

int trace_file_reserve(int fd, uint64_t offset, uint64_t bytes)
{
	static const char zeros[4096];
	long n;
	int tries = 0;

	if (fd == TRACE_FILE_MAPPED) /* the mapping provides the space */
		return offset + bytes <= rights_file_end() ? 0 : -EFBIG;
	if (over_file_limit(offset + bytes))
		return -EFBIG;
	do
		n = sys_call(SYS_fallocate, fd, 0, (long)offset, (long)bytes, 0, 0);
	while (n == -EINTR && tries++ < 100);
	if (n != -EOPNOTSUPP && n != -ENOSYS)
		return (int)n;
	for (uint64_t at = offset; at < offset + bytes; at += sizeof(zeros)) {
		n = sys_call(SYS_pwrite64, fd, (long)zeros, sizeof(zeros), (long)at, 0, 0);
		if (n != (long)sizeof(zeros))
			return n < 0 ? (int)n : -ENOSPC;
	}
	return 0;
}

bool trace_file_punch_range(int fd, uint64_t offset, uint64_t bytes)
{
	enum { KEEP_SIZE = 1, PUNCH_HOLE = 2 };

	if (fd == TRACE_FILE_MAPPED)
		return rights_punch(offset, bytes);
	return sys_call(
		   SYS_fallocate, fd, KEEP_SIZE | PUNCH_HOLE, (long)offset, (long)bytes, 0, 0) >= 0;
}

bool trace_file_can_punch(int fd)
{
	/* in the header's slot, which is empty there */
	return trace_file_punch_range(fd, TRACE_SLOT_BYTES / 2, TRACE_HEADER_BYTES);
}

bool trace_file_read(int fd, uint64_t offset, void *into, size_t bytes)
{
	void *p;

	if (fd != TRACE_FILE_MAPPED)
		return sys_call(SYS_pread64, fd, (long)into, (long)bytes, (long)offset, 0, 0) ==
		       (long)bytes;
	/* reading beyond the file's end would raise SIGBUS */
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
