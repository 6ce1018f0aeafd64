/*
 * hook_thread.c - counts the threads that are started, and records those that cannot be created
 * because the kernel refuses their stack: the C library maps it by itself, where no wrapper sees
 * the failure.
 */
#include <errno.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>

#include "base/shim_state.h"
#include "base/sys.h"
#include "loaded/symbols.h"
#include "shim.h"

/* The C library's choice if RLIMIT_STACK is unlimited. */
#define STACK_UNBOUND (2u << 20)

/* Older C libraries have the getter in a separate library, which may be loaded after us. */
static size_t stack_size(const pthread_attr_t *attributes)
{
	int (*get)(const pthread_attr_t *, size_t *) = real.pthread_attr_getstacksize;
	struct rlimit limit = {0, 0};
	size_t size = 0;

	if (attributes && !get)
		get = symbols_find("pthread_attr_getstacksize");
	if (attributes && get && !get(attributes, &size) && size)
		return size;
	if (sys_call(SYS_prlimit64, 0, RLIMIT_STACK, 0, (long)&limit, 0, 0) < 0 ||
	    !limit.rlim_cur || limit.rlim_cur == RLIM_INFINITY)
		return STACK_UNBOUND;
	return limit.rlim_cur;
}

/* Tells a refused stack from too many threads, which gives the same error. */
static bool memory_is_refused(size_t bytes)
{
	long p = sys_call(SYS_mmap, 0, (long)bytes, PROT_READ | PROT_WRITE,
	    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK, -1, 0);

	if (sys_failed(p))
		return p == -ENOMEM || p == -EAGAIN;
	sys_call(SYS_munmap, p, (long)bytes, 0, 0, 0, 0);
	return false;
}

SHIM_EXPORT int pthread_create(
    pthread_t *thread, const pthread_attr_t *attributes, void *(*run)(void *), void *argument)
{
	struct stack_start start = STACK_START();
	int (*create)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);
	int rc, saved;
	struct note n;
	size_t size;

	symbols_all();
	/* its library may be loaded after us */
	create = real.pthread_create;
	if (SHIM_UNLIKELY(!create))
		create = (__typeof(create))symbols_next("pthread_create");
	rc = create ? create(thread, attributes, run, argument) : EAGAIN;
	if (!rc)
		__atomic_add_fetch(&shim.threads_started, 1, __ATOMIC_RELAXED);
	if (SHIM_LIKELY(rc != EAGAIN) || !create)
		return rc;
	saved = errno;
	n = note_enter(__builtin_return_address(0));
	size = n.how != NOTE_NOT && !shim.sandboxed ? stack_size(attributes) : 0;
	if (size && memory_is_refused(size))
		note_failed(n,
		    &(struct note_failure){.api = TRACE_API_THREAD, .error = ENOMEM, .size = size},
		    &start);
	note_leave(n);
	errno = saved;
	return rc;
}
