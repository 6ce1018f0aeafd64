/*
 * hook_file.c - space in a file that is refused because its file system is full, where that is
 * memory. Who is granted it is not looked at: what is there counts when it is mapped.
 */
#include <errno.h>
#include <fcntl.h>

#include "base/shim_state.h"
#include "levels/shm.h"
#include "loaded/symbols.h"
#include "shim.h"

#define REAL(name) (SHIM_LIKELY(real.name) ? real.name : (symbols_all(), real.name))

static void refused(int fd, uint64_t size, const void *caller, const struct stack_start *start)
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

/* These two return the error, those below set errno. */
#define POSIX_FALLOCATE(name, offset_type)                                                         \
	SHIM_EXPORT int name(int fd, offset_type offset, offset_type length)                       \
	{                                                                                          \
		struct stack_start start = STACK_START();                                          \
		int rc = REAL(name)(fd, offset, length);                                           \
                                                                                                   \
		if (SHIM_UNLIKELY(rc == ENOSPC))                                                   \
			refused(fd, (uint64_t)length, __builtin_return_address(0), &start);        \
		return rc;                                                                         \
	}

#define FALLOCATE(name, offset_type)                                                               \
	SHIM_EXPORT int name(int fd, int mode, offset_type offset, offset_type length)             \
	{                                                                                          \
		struct stack_start start = STACK_START();                                          \
		int rc = REAL(name)(fd, mode, offset, length);                                     \
                                                                                                   \
		if (SHIM_UNLIKELY(rc == -1 && errno == ENOSPC))                                    \
			refused(fd, (uint64_t)length, __builtin_return_address(0), &start);        \
		return rc;                                                                         \
	}

POSIX_FALLOCATE(posix_fallocate, off_t)
POSIX_FALLOCATE(posix_fallocate64, off64_t)
FALLOCATE(fallocate, off_t)
FALLOCATE(fallocate64, off64_t)
