/*
 * hook_file.c - records fallocate() calls that fail because a file system in memory is full. Calls
 * that succeed are not recorded: files count when they are mapped.
 */
#include <errno.h>
#include <fcntl.h>

#include "base/shim_state.h"
#include "levels/shm.h"
#include "loaded/symbols.h"
#include "shim.h"

#define REAL(name) (SHIM_LIKELY(real.name) ? real.name : (symbols_all(), real.name))

static void record_refusal(
    int fd, uint64_t size, const void *caller, const struct stack_start *start)
{
	struct note n = note_enter(caller);
	int saved = errno;

	if (n.how != NOTE_NOT && !shim.sandboxed && shm_refused(fd))
		note_failed(n,
		    &(struct note_failure){
			.api = TRACE_API_FALLOCATE, .error = ENOSPC, .size = size},
		    start);
	errno = saved;
	note_leave(n);
}

/* These return the error; those below set errno. */
#define POSIX_FALLOCATE(name, offset_type)                                                         \
	SHIM_EXPORT int name(int fd, offset_type offset, offset_type length)                       \
	{                                                                                          \
		struct stack_start start = STACK_START();                                          \
		int rc = REAL(name)(fd, offset, length);                                           \
                                                                                                   \
		if (SHIM_UNLIKELY(rc == ENOSPC))                                                   \
			record_refusal(fd, (uint64_t)length, __builtin_return_address(0), &start); \
		return rc;                                                                         \
	}

#define FALLOCATE(name, offset_type)                                                               \
	SHIM_EXPORT int name(int fd, int mode, offset_type offset, offset_type length)             \
	{                                                                                          \
		struct stack_start start = STACK_START();                                          \
		int rc = REAL(name)(fd, mode, offset, length);                                     \
                                                                                                   \
		if (SHIM_UNLIKELY(rc == -1 && errno == ENOSPC))                                    \
			record_refusal(fd, (uint64_t)length, __builtin_return_address(0), &start); \
		return rc;                                                                         \
	}

POSIX_FALLOCATE(posix_fallocate, off_t)
POSIX_FALLOCATE(posix_fallocate64, off64_t)
FALLOCATE(fallocate, off_t)
FALLOCATE(fallocate64, off64_t)
