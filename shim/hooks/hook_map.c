/*
 * hook_map.c - mappings: mmap, munmap, mremap, brk, sbrk, madvise, System V shared memory, and
 * syscall() with these.
 */
#include "hooks/hook_syscall.h"

#include <errno.h>
#include <stdarg.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/shm.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/sys.h"
#include "levels/levels_python.h"
#include "levels/shm.h"
#include "lifecycle.h"
#include "loaded/symbols.h"
#include "python/python_task.h"
#include "shim.h"
#include "trace/definitions.h"

#define REAL(name) (SHIM_LIKELY(real.name) ? real.name : (symbols_all(), real.name))
#define ENTER() note_enter(__builtin_return_address(0))

static void record_failure(struct note n, enum trace_api api, size_t size, const void *old,
    int error, const struct stack_start *start)
{
	note_failed(n,
	    &(struct note_failure){.api = api, .error = error, .size = size, .old = (uintptr_t)old},
	    start);
}

/* True: a vfork child on the parent's memory, or a fork's child that has not noticed the fork. */
static bool is_foreign_process(const struct thread *t)
{
	return t->vfork || !t->serial;
}

static unsigned backing_of(int fd, int flags, uint32_t *name)
{
	char path[512];
	struct stat st;

	*name = 0;
	if (flags & MAP_ANONYMOUS)
		return TRACE_BACKING_ANON;
	if (sys_fd_path(fd, path, sizeof(path)) < 0)
		return TRACE_BACKING_FILE;
	if (!strcmp(path, "/dev/zero"))
		return TRACE_BACKING_ANON;
	*name = definitions_string(path);
	if (!strncmp(path, "/memfd:", 7))
		return TRACE_BACKING_MEMFD;
	if (!strncmp(path, "/dev/shm/", 9) || !strncmp(path, "/SYSV", 5))
		return TRACE_BACKING_SHM;
	if (sys_call(SYS_fstat, fd, (long)&st, 0, 0, 0, 0) == 0 && S_ISCHR(st.st_mode))
		return TRACE_BACKING_DEVICE;
	return TRACE_BACKING_FILE;
}

static unsigned map_flags(int flags)
{
	return ((flags & MAP_FIXED) ? TRACE_MAP_FIXED : 0) |
	       ((flags & MAP_TYPE) != MAP_PRIVATE ? TRACE_MAP_SHARED : 0) |
	       ((flags & MAP_HUGETLB) ? TRACE_MAP_HUGETLB : 0) |
	       ((flags & MAP_NORESERVE) ? TRACE_MAP_NORESERVE : 0) |
	       ((flags & (MAP_STACK | MAP_GROWSDOWN)) ? TRACE_MAP_STACK : 0);
}

struct mmap_call {
	size_t length;
	int prot, flags, fd;
	uint64_t offset;
	unsigned how; /* TRACE_MAP_SYSCALL, or 0 */
};

/* Records the result of an mmap. */
static void record_mmap(
    struct note n, void *result, const struct mmap_call *c, const struct stack_start *start)
{
	struct note_mapping m = {
	    .api = TRACE_API_MMAP,
	    .address = (uintptr_t)result,
	    .length = c->length,
	    .prot = c->prot,
	    .flags = map_flags(c->flags) | c->how,
	};
	struct level levels[SHM_LEVELS];
	int saved = errno;

	if (n.how == NOTE_NOT)
		return;
	if (result == MAP_FAILED) {
		/* huge pages have a pool of their own, and callers fall back to normal pages,
		 * whose failure is recorded */
		if (!(c->flags & MAP_HUGETLB))
			record_failure(n, TRACE_API_MMAP, c->length, NULL, saved, start);
		errno = saved;
		return;
	}
	if (n.how != NOTE_SIDE && n.how != NOTE_SIDE_INSIDE && !shim.sandboxed &&
	    !is_foreign_process(n.thread))
		m.backing = backing_of(c->fd, c->flags, &m.name);
	if (m.backing != TRACE_BACKING_ANON && m.backing != TRACE_BACKING_MEMFD &&
	    (m.flags & TRACE_MAP_SHARED)) {
		m.level_count = shm_mapped(c->fd, levels);
		m.levels = levels;
	}
	if (!(c->flags & MAP_ANONYMOUS))
		m.offset = c->offset;
	note_map(n, &m, start);
	errno = saved;
}

/* Recognises the interpreter's arenas: it asks for little else this way. */
static void note_arena(
    struct note n, void *result, size_t length, int flags, int fd, const void *caller)
{
	if (n.how == NOTE_PLAIN && fd == -1 && flags == (MAP_PRIVATE | MAP_ANONYMOUS) &&
	    result != MAP_FAILED && !shim.sandboxed)
		levels_python_mapped((uintptr_t)result, length, (uintptr_t)caller);
}

SHIM_EXPORT void *mmap(void *address, size_t length, int prot, int flags, int fd, off_t offset)
{
	struct stack_start start = STACK_START();
	struct note n = ENTER();
	void *p = REAL(mmap)(address, length, prot, flags, fd, offset);

	note_arena(n, p, length, flags, fd, __builtin_return_address(0));
	record_mmap(
	    n, p, &(struct mmap_call){length, prot, flags, fd, (uint64_t)offset, 0}, &start);
	note_leave(n);
	return p;
}

/* One function, as in libc: memray warns on stderr if the two addresses differ. */
SHIM_EXPORT __attribute__((alias("mmap"))) void *mmap64(
    void *address, size_t length, int prot, int flags, int fd, off64_t offset);

SHIM_EXPORT int munmap(void *address, size_t length)
{
	struct note n = ENTER();
	int rc;

	if (n.how) {
		if (SHIM_UNLIKELY(python_task_unmapped((uintptr_t)address)))
			note_task_end(n, (uintptr_t)address);
		note_unmap(n, TRACE_API_MUNMAP, (uintptr_t)address, length, 0);
		if (n.how == NOTE_PLAIN && !shim.sandboxed)
			levels_python_unmapped((uintptr_t)address, length);
	}
	rc = REAL(munmap)(address, length);
	if (SHIM_UNLIKELY(rc) && n.how)
		note_ununmap(n, (uintptr_t)address, length);
	stack_memory_unmapped();
	note_leave(n);
	return rc;
}

/* The first half of an mremap. A size of 0 makes a second mapping of shared pages and releases
 * nothing; MREMAP_DONTUNMAP leaves the old range in place, empty. */
static void remap_begin(struct note n, void *old, size_t size, unsigned how)
{
	if (n.how && size)
		note_unmap(n, TRACE_API_MREMAP, (uintptr_t)old, size,
		    TRACE_UNMAP_REMAP | (how & TRACE_UNMAP_SYSCALL));
}

/* Records the pages of a range that a failed mremap has unmapped: it may have unmapped its target,
 * and the end of a shrinking range. Pages that were not mapped before are recorded as well, which
 * changes nothing. */
static void record_lost_range(struct note n, uintptr_t wanted, size_t size, unsigned how)
{
	enum { PAGES_MAX = 65536 };
	size_t pages = (size + shim.page_size - 1) / shim.page_size, gone = 0;
	unsigned char page;

	if (shim.sandboxed || pages > PAGES_MAX)
		return;
	for (size_t i = 0; i <= pages; i++) {
		if (i < pages && sys_call(SYS_mincore, (long)(wanted + i * shim.page_size), 1,
				     (long)&page, 0, 0, 0) == -ENOMEM) {
			gone++;
			continue;
		}
		if (gone)
			note_unmap(n, TRACE_API_MREMAP, wanted + (i - gone) * shim.page_size,
			    gone * shim.page_size, how & TRACE_UNMAP_SYSCALL);
		gone = 0;
	}
}

struct remap {
	void *old, *wanted;
	size_t old_size, size;
	int flags;
};

static void remap_end(struct note n, void *result, const struct remap *r, unsigned how,
    const struct stack_start *start)
{
	void *old = r->old;
	size_t old_size = r->old_size, size = r->size;
	int flags = r->flags;
	struct note_mapping m = {
	    .api = TRACE_API_MREMAP,
	    .address = (uintptr_t)result,
	    .length = size,
	    .prot = PROT_READ | PROT_WRITE,
	    .flags = how,
	};
	int saved = errno;

	if (!n.how)
		return;
	if (result == MAP_FAILED) {
		if (old_size)
			note_ununmap(n, (uintptr_t)old, old_size);
		if ((flags & MREMAP_FIXED) && saved != EINVAL) {
			size_t kept = (size + shim.page_size - 1) & ~(shim.page_size - 1);

			record_lost_range(n, (uintptr_t)r->wanted, size, how);
			if (old_size > kept)
				record_lost_range(n, (uintptr_t)old + kept, old_size - kept, how);
		}
		/* without MREMAP_MAYMOVE a mapping is in the way, and the caller falls back to
		 * another call, whose failure is recorded */
		if (flags & MREMAP_MAYMOVE)
			record_failure(n, TRACE_API_MREMAP, size, old, saved, start);
		errno = saved;
		return;
	}
	if (old_size)
		m.flags |= TRACE_MAP_REMAP;
	else
		m.flags |= TRACE_MAP_SHARED;
	if (flags & MREMAP_FIXED)
		m.flags |= TRACE_MAP_FIXED;
	note_map(n, &m, start);
	if (old_size && (flags & MREMAP_DONTUNMAP)) {
		m.flags = how;
		m.address = (uintptr_t)old;
		m.length = old_size;
		note_map(n, &m, start);
	}
	errno = saved;
}

SHIM_EXPORT void *mremap(void *old, size_t old_size, size_t size, int flags, ...)
{
	struct stack_start start = STACK_START();
	struct note n = ENTER();
	void *wanted, *p;
	va_list rest;

	/* libc's function reads it always, too */
	va_start(rest, flags);
	wanted = va_arg(rest, void *);
	va_end(rest);
	remap_begin(n, old, old_size, 0);
	p = REAL(mremap)(old, old_size, size, flags, wanted);
	remap_end(n, p, &(struct remap){old, wanted, old_size, size, flags}, 0, &start);
	stack_memory_unmapped();
	note_leave(n);
	return p;
}

/* Records nothing, but memory may become unreadable. */
SHIM_EXPORT int mprotect(void *address, size_t length, int prot)
{
	int rc = REAL(mprotect)(address, length, prot);

	if (!(prot & PROT_READ))
		stack_memory_unmapped();
	return rc;
}

static uintptr_t current_break(void)
{
	return (uintptr_t)sys_call(SYS_brk, 0, 0, 0, 0, 0, 0);
}

SHIM_EXPORT int brk(void *end)
{
	struct stack_start start = STACK_START();
	struct note n = ENTER();
	uintptr_t before = n.how ? current_break() : 0;
	int rc = REAL(brk)(end), saved = errno;

	if (n.how && !rc)
		note_brk(n, before, current_break(), &start);
	else if (n.how)
		record_failure(n, TRACE_API_BRK,
		    (uintptr_t)end > before ? (uintptr_t)end - before : 0, (void *)before, saved,
		    &start);
	errno = saved;
	note_leave(n);
	return rc;
}

SHIM_EXPORT void *sbrk(intptr_t by)
{
	struct stack_start start = STACK_START();
	struct note n = ENTER();
	void *before = REAL(sbrk)(by);
	int saved = errno;

	if (n.how && before == (void *)-1)
		record_failure(n, TRACE_API_BRK, by > 0 ? (size_t)by : 0, (void *)current_break(),
		    saved, &start);
	else if (n.how && by)
		note_brk(n, (uintptr_t)before, (uintptr_t)before + (uintptr_t)by, &start);
	errno = saved;
	note_leave(n);
	return before;
}

/* Says whether the advice gives pages back or takes them. */
static bool changes_pages(int advice)
{
	switch (advice) {
	case 4: /* MADV_DONTNEED */
	case 8: /* MADV_FREE */
	case 9: /* MADV_REMOVE */
	case 21: /* MADV_PAGEOUT */
	case 22: /* MADV_POPULATE_READ */
	case 23: /* MADV_POPULATE_WRITE */
	case 24: /* MADV_DONTNEED_LOCKED */
		return true;
	default:
		return false;
	}
}

SHIM_EXPORT int madvise(void *address, size_t length, int advice)
{
	struct note n;
	int rc;

	if (!changes_pages(advice))
		return REAL(madvise)(address, length, advice);
	n = ENTER();
	rc = REAL(madvise)(address, length, advice);
	if (!rc && n.how)
		note_advise(n, (uintptr_t)address, length, advice);
	note_leave(n);
	return rc;
}

/* Sizes of shmat() mappings by address, as shmdt() is not told them. */
static struct {
	uintptr_t address;
	size_t bytes;
} attachments[64];

static void attachment_put(uintptr_t address, size_t bytes)
{
	for (size_t i = 0; i < sizeof(attachments) / sizeof(attachments[0]); i++) {
		uintptr_t expected = 0;

		if (__atomic_compare_exchange_n(&attachments[i].address, &expected, address, false,
			__ATOMIC_ACQ_REL, __ATOMIC_RELAXED)) {
			__atomic_store_n(&attachments[i].bytes, bytes, __ATOMIC_RELEASE);
			return;
		}
	}
}

static size_t attachment_take(uintptr_t address)
{
	for (size_t i = 0; i < sizeof(attachments) / sizeof(attachments[0]); i++)
		if (__atomic_load_n(&attachments[i].address, __ATOMIC_ACQUIRE) == address) {
			size_t bytes =
			    __atomic_exchange_n(&attachments[i].bytes, 0, __ATOMIC_ACQ_REL);

			__atomic_store_n(&attachments[i].address, 0, __ATOMIC_RELEASE);
			return bytes;
		}
	return 0;
}

SHIM_EXPORT void *shmat(int id, const void *address, int flags)
{
	struct stack_start start = STACK_START();
	struct note n = ENTER();
	void *p = REAL(shmat)(id, address, flags);
	int saved = errno;
	struct shmid_ds info = {.shm_segsz = 0};

	if (n.how && !shim.sandboxed) {
		sys_call(SYS_shmctl, id, IPC_STAT, (long)&info, 0, 0, 0);
		if (p == (void *)-1) {
			record_failure(n, TRACE_API_SHMAT, info.shm_segsz, NULL, saved, &start);
		} else {
			struct note_mapping m = {
			    .api = TRACE_API_SHMAT,
			    .address = (uintptr_t)p,
			    .length = info.shm_segsz,
			    .prot = PROT_READ | ((flags & SHM_RDONLY) ? 0 : PROT_WRITE),
			    .flags = TRACE_MAP_SHARED | ((flags & SHM_REMAP) ? TRACE_MAP_FIXED : 0),
			    .backing = TRACE_BACKING_SHM,
			};

			attachment_put((uintptr_t)p, info.shm_segsz);
			note_map(n, &m, &start);
		}
	}
	errno = saved;
	note_leave(n);
	return p;
}

SHIM_EXPORT int shmdt(const void *address)
{
	struct note n = ENTER();
	size_t bytes = n.how ? attachment_take((uintptr_t)address) : 0;
	int rc, saved;

	if (bytes)
		note_unmap(n, TRACE_API_SHMDT, (uintptr_t)address, bytes, 0);
	rc = REAL(shmdt)(address);
	saved = errno;
	if (rc && bytes) {
		note_ununmap(n, (uintptr_t)address, bytes);
		attachment_put((uintptr_t)address, bytes);
	}
	errno = saved;
	note_leave(n);
	return rc;
}

/*
 * syscall() itself is a jump (hook_jump.c). Only mappings, calls that give up rights, exec and the
 * end of the process come here, with the registers as the caller set them.
 */
__attribute__((noinline, visibility("hidden"))) long hook_syscall(
    long number, long a, long b, long c, long d, long e, long f)
{
	struct stack_start start = STACK_START();
	struct note n;
	uintptr_t before = 0;
	int saved;
	long rc;

	symbols_all();
	if (hook_rights_syscall(&(struct raw_syscall){number, {a, b, c, d, e, f}}, &rc))
		return rc;
	if (number == SYS_exit_group) {
		lifecycle_end(TRACE_END_EXIT, (int)a & 0xff);
		return REAL(syscall)(number, a, b, c, d, e, f);
	}
	if (number == SYS_execve || number == SYS_execveat)
		return hook_exec_syscall(&(struct raw_syscall){number, {a, b, c, d, e, f}});
	n = ENTER();
	if (!n.how || (number != SYS_mmap && number != SYS_munmap && number != SYS_mremap &&
			  number != SYS_brk)) {
		rc = REAL(syscall)(number, a, b, c, d, e, f);
		note_leave(n);
		return rc;
	}
	if (number == SYS_munmap)
		note_unmap(n, TRACE_API_MUNMAP, (uintptr_t)a, (size_t)b, TRACE_UNMAP_SYSCALL);
	else if (number == SYS_mremap)
		remap_begin(n, (void *)a, (size_t)b, TRACE_UNMAP_SYSCALL);
	else if (number == SYS_brk)
		before = current_break();
	rc = REAL(syscall)(number, a, b, c, d, e, f);
	saved = errno;
	if (number == SYS_mmap)
		record_mmap(n, (void *)rc,
		    &(struct mmap_call){
			(size_t)b, (int)c, (int)d, (int)e, (uint64_t)f, TRACE_MAP_SYSCALL},
		    &start);
	else if (number == SYS_munmap && rc)
		note_ununmap(n, (uintptr_t)a, (size_t)b);
	else if (number == SYS_mremap)
		remap_end(n, (void *)rc,
		    &(struct remap){(void *)a, (void *)e, (size_t)b, (size_t)c, (int)d},
		    TRACE_MAP_SYSCALL, &start);
	else if (number == SYS_brk && (uintptr_t)rc != before)
		note_brk(n, before, (uintptr_t)rc, &start);
	if (number != SYS_mmap)
		stack_memory_unmapped();
	errno = saved;
	note_leave(n);
	return rc;
}
