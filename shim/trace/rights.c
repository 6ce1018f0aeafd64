/*
 * rights.c - see rights.h. System calls are made only in the host's own calls that give up rights,
 * and where a thread wants a chunk; both block signals.
 */
#include "trace/rights.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "base/clock.h"
#include "base/filter.h"
#include "base/options.h"
#include "base/shim_state.h"
#include "base/sys.h"
#include "base/text.h"
#include "trace/trace_file.h"

/* From Linux 5.14; headers of older C libraries lack it. */
#define POPULATE_WRITE 23

#define ROOM_BYTES (32ull << 20)
/* Beyond the budget: for punched ranges and the last claims. */
#define FILE_MORE (256ull << 20)

static struct {
	int lock; /* taken with signals blocked */
	bool prepared; /* the file has its final size, and pages can be populated */
	bool refused; /* opening the file fails from now on */
	bool unreachable; /* neither opening nor mapping works: only the room is left */
	bool any; /* some right was given up */
	uint32_t latest; /* enum trace_right */
	uint64_t end; /* the file's size */
	uint64_t user_directory; /* the user that has a directory, plus 1; 0: none */
	struct {
		bool taken; /* or was not to be had: tried once */
		uint8_t *start;
		uint64_t offset, bytes, used;
	} room;
} rights;

/* --- reaching the file without opening it --- */

/* Map a copy of the file's range, moving at most `step` bytes of address space at a time. */
static void *reach(uint64_t offset, uint64_t bytes, uint64_t step)
{
	uint64_t page = shim.page_size, at = 0;
	long from = (long)trace_file_header;

	for (;;) {
		uint64_t far = offset - at > step ? step : offset - at;
		uint64_t whole = far + (far == offset - at ? bytes : page);
		/* an old size of 0 maps the same pages, and those behind them, a second time */
		long p = sys_call(SYS_mremap, from, 0, (long)whole, MREMAP_MAYMOVE, 0, 0);

		if (at)
			sys_call(SYS_munmap, from, (long)page, 0, 0, 0, 0);
		if (sys_failed(p))
			return NULL;
		if (far)
			sys_call(SYS_munmap, p, (long)far, 0, 0, 0, 0);
		from = p + (long)far;
		at += far;
		if (at == offset)
			return (void *)from;
	}
}

void *rights_map(uint64_t offset, uint64_t bytes)
{
	/* near RLIMIT_AS there is less address space */
	static const uint64_t steps[] = {1ull << 40, 32ull << 20, 1ull << 20};
	void *p = NULL;

	/* of a host that locks its memory the whole copy would be populated */
	sys_call(SYS_munlock, (long)trace_file_header, TRACE_HEADER_BYTES, 0, 0, 0, 0);
	for (unsigned i = 0; i < sizeof(steps) / sizeof(steps[0]) && !p; i++)
		p = reach(offset, bytes, steps[i]);
	return p;
}

bool rights_populate(void *range, uint64_t bytes)
{
	enum { DONTNEED = 4 };
	int tries = 0;
	long n;

	do
		n = sys_call(SYS_madvise, (long)range, (long)bytes, POPULATE_WRITE, 0, 0, 0);
	while ((n == -EINTR || n == -EAGAIN) && tries++ < 100);
	if (n < 0)
		return false;
	/* a large range gets its pages again step by step, as in map_range() */
	if (bytes > TRACE_FIRST_CHUNK_BYTES)
		sys_call(SYS_madvise, (long)range, (long)bytes, DONTNEED, 0, 0, 0);
	return true;
}

bool rights_punch(uint64_t offset, uint64_t bytes)
{
	enum { REMOVE = 9 };
	void *p = rights_map(offset, bytes);
	long n;

	if (!p)
		return false;
	n = sys_call(SYS_madvise, (long)p, (long)bytes, REMOVE, 0, 0, 0);
	sys_call(SYS_munmap, (long)p, (long)bytes, 0, 0, 0, 0);
	return n == 0;
}

uint64_t rights_file_end(void)
{
	return __atomic_load_n(&rights.end, __ATOMIC_ACQUIRE);
}

bool rights_by_mapping(int error)
{
	if (!__atomic_load_n(&rights.prepared, __ATOMIC_ACQUIRE))
		return false;
	if (error == -EACCES || error == -EPERM || error == -ENOENT || error == -ENOTDIR ||
	    error == -ESTALE || error == -ELOOP)
		__atomic_store_n(&rights.refused, true, __ATOMIC_RELAXED);
	return __atomic_load_n(&rights.refused, __ATOMIC_RELAXED);
}

void *rights_room(uint64_t *offset, uint32_t bytes)
{
	uint64_t used = __atomic_load_n(&rights.room.used, __ATOMIC_RELAXED);

	do {
		if (!rights.room.start || used + bytes > rights.room.bytes)
			return NULL;
	} while (!__atomic_compare_exchange_n(
	    &rights.room.used, &used, used + bytes, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED));
	*offset = rights.room.offset + used;
	return rights.room.start + used;
}

/* --- before the call --- */

static uint64_t largest_file(void)
{
	uint64_t limit;

	/* a larger file raises a signal */
	limit = sys_limit(RLIMIT_FSIZE);
	return limit < INT64_MAX ? limit : INT64_MAX;
}

/* Under the lock. */
static void make_large(int fd)
{
	uint64_t now = __atomic_load_n(&trace_file_header->file_bytes, __ATOMIC_RELAXED);
	uint64_t most = largest_file(), more = options.max_trace;

	if (more > INT64_MAX - FILE_MORE - now)
		more = INT64_MAX - FILE_MORE - now;
	more += FILE_MORE;
	if (most <= now)
		return;
	if (more > most - now)
		more = most - now;
	/* file systems have limits of their own */
	for (; more >= TRACE_CHUNK_BYTES; more /= 2) {
		uint64_t end = (now + more) / TRACE_SLOT_BYTES * TRACE_SLOT_BYTES;

		if (sys_call(SYS_ftruncate, fd, (long)end, 0, 0, 0, 0) == 0) {
			__atomic_store_n(&rights.end, end, __ATOMIC_RELEASE);
			return;
		}
	}
}

/* Under the lock. Once for a process, whatever calls follow. */
static void take_room(int fd)
{
	uint64_t held = trace_file_disk_bytes(), bytes = ROOM_BYTES, offset;
	uint64_t left = options.max_trace > held ? options.max_trace - held : 0;
	void *start;

	if (rights.room.taken)
		return;
	rights.room.taken = true;
	if (bytes > left / 2)
		bytes = left / 2;
	bytes = bytes / TRACE_SLOT_BYTES * TRACE_SLOT_BYTES;
	for (; bytes >= TRACE_SLOT_BYTES; bytes = bytes / 2 / TRACE_SLOT_BYTES * TRACE_SLOT_BYTES) {
		start = trace_file_take_range(fd, bytes, &offset);
		if (!start)
			continue;
		rights.room.start = start;
		rights.room.offset = offset;
		rights.room.bytes = bytes;
		return;
	}
}

static bool can_populate(void)
{
	return sys_call(SYS_madvise, (long)trace_file_header, TRACE_HEADER_BYTES, POPULATE_WRITE, 0,
		   0, 0) == 0;
}

/* Under the lock. */
static void prepare(void)
{
	int fd;

	if (rights.prepared || rights.room.taken)
		return;
	fd = trace_file_open_by_path();
	if (fd < 0)
		return;
	if (can_populate())
		make_large(fd);
	if (rights.end)
		__atomic_store_n(&rights.prepared, true, __ATOMIC_RELEASE);
	else
		take_room(fd);
	sys_close(fd);
}

static bool is_ours(const char *name)
{
	size_t n = strlen(name), suffix = sizeof(".whyoom") - 1;

	if (n && name[n - 1] == 's') /* the file of small traces */
		n--;
	return (name[0] == '.' && (!name[1] || (name[1] == '.' && !name[2]))) ||
	       (n > suffix && !strncmp(name + n - suffix, ".whyoom", suffix)) ||
	       !strcmp(name, "disk.account") || !strcmp(name, "earlier") ||
	       !strncmp(name, RIGHTS_DIRECTORY, sizeof(RIGHTS_DIRECTORY) - 1);
}

/* Does the directory hold nothing but traces? Then everybody may pass through it; not so somebody's
 * home where traces lie among other things. */
static bool has_only_ours(int dir)
{
	char buffer[2048] __attribute__((aligned(8)));
	long n;

	while ((n = sys_call(SYS_getdents64, dir, (long)buffer, sizeof(buffer), 0, 0, 0)) > 0)
		for (long at = 0; at < n;) {
			const struct sys_entry *e = (const void *)(buffer + at);

			if (!is_ours(e->name))
				return false;
			at += e->bytes;
		}
	return n == 0;
}

/* Under the lock: make a subdirectory of the trace directory that belongs to that user. */
static void make_user_directory(uint32_t uid)
{
	char name[24] = RIGHTS_DIRECTORY;
	uint32_t me = (uint32_t)sys_call(SYS_geteuid, 0, 0, 0, 0, 0, 0);
	struct stat st;
	int dir, fd;

	if (uid == me || rights.user_directory == uid + 1ull)
		return;
	dir = sys_open(trace_file_directory(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);
	if (dir < 0)
		return;
	/* in another user's directory, or one that others can write to, names may be traps */
	if (sys_call(SYS_fstat, dir, (long)&st, 0, 0, 0, 0) < 0 || st.st_uid != me ||
	    (st.st_mode & (S_IWGRP | S_IWOTH)) || (!(st.st_mode & S_IXOTH) && !has_only_ours(dir)))
		goto close_dir;
	text_append_number(name + sizeof(RIGHTS_DIRECTORY) - 1, name + sizeof(name), uid);
	sys_call(SYS_mkdirat, dir, (long)name, 0700, 0, 0, 0);
	fd = (int)sys_call(
	    SYS_openat, dir, (long)name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC, 0, 0, 0);
	if (fd < 0)
		goto close_dir;
	/* the user must pass through the directory, but need not list it */
	if (sys_call(SYS_fchmod, fd, 0700, 0, 0, 0, 0) == 0 &&
	    sys_call(SYS_fchown, fd, (long)uid, -1, 0, 0, 0) == 0 &&
	    ((st.st_mode & S_IXOTH) ||
		sys_call(SYS_fchmod, dir, (st.st_mode & 07777) | S_IXGRP | S_IXOTH, 0, 0, 0, 0) ==
		    0))
		rights.user_directory = uid + 1ull;
	sys_close(fd);
close_dir:
	sys_close(dir);
}

/* Does the trace belong to this process? Signals are blocked. */
static bool is_own_trace(void)
{
	if (shim.mode != SHIM_RECORDING || shim.sandboxed)
		return false;
	return sys_getpid() == shim.pid;
}

bool rights_before(enum trace_right right, long uid)
{
	uint64_t signals = sys_block_signals();
	bool noted = is_own_trace();

	if (noted) {
		sys_lock(&rights.lock);
		prepare();
		if (right == TRACE_RIGHT_USER && uid >= 0)
			make_user_directory((uint32_t)uid);
		sys_unlock(&rights.lock);
	}
	sys_restore_signals(signals);
	return noted;
}

void rights_given_up(enum trace_right right)
{
	uint64_t none = 0;

	__atomic_compare_exchange_n(&trace_file_header->rights.ticks[right], &none, clock_ticks(),
	    false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
	__atomic_store_n(&rights.latest, right, __ATOMIC_RELAXED);
	__atomic_store_n(&rights.any, true, __ATOMIC_RELEASE);
	/* the path may lead to another file now */
	if (right == TRACE_RIGHT_ROOT || right == TRACE_RIGHT_LANDLOCK)
		__atomic_store_n(&rights.refused, true, __ATOMIC_RELAXED);
}

/* --- seccomp --- */

static bool allowed(long number, long a, long b, long c, long d, long e, long f)
{
	return filter_allows(number, (long[6]){a, b, c, d, e, f});
}

/* Is everything allowed that each part of the recording needs? */
static bool life_is_allowed(void)
{
	enum { RW = PROT_READ | PROT_WRITE, ANONYMOUS = MAP_PRIVATE | MAP_ANONYMOUS };
	long somewhere = (long)trace_file_header;

	return allowed(SYS_rt_sigprocmask, 0, somewhere, somewhere, 8, 0, 0) &&
	       allowed(SYS_rt_sigprocmask, 2, somewhere, 0, 8, 0, 0) &&
	       allowed(SYS_rt_sigprocmask, ~0L, somewhere, 0, 8, 0, 0) &&
	       allowed(SYS_getpid, 0, 0, 0, 0, 0, 0) && allowed(SYS_gettid, 0, 0, 0, 0, 0, 0) &&
	       allowed(SYS_sched_yield, 0, 0, 0, 0, 0, 0) &&
	       allowed(SYS_mmap, 0, 4096, RW, ANONYMOUS, -1, 0) &&
	       allowed(SYS_munmap, somewhere, 4096, 0, 0, 0, 0) &&
	       allowed(SYS_madvise, somewhere, 4096, MADV_DONTNEED, 0, 0, 0);
}

static bool opening_is_allowed(void)
{
	enum { RW = PROT_READ | PROT_WRITE, HOW = O_RDWR | O_NOFOLLOW | O_CLOEXEC };

	return allowed(SYS_openat, AT_FDCWD, (long)trace_file_directory(), HOW, 0, 0, 0) &&
	       allowed(SYS_fstat, 3, (long)trace_file_header, 0, 0, 0, 0) &&
	       allowed(SYS_fallocate, 3, 0, 0, TRACE_CHUNK_BYTES, 0, 0) &&
	       allowed(SYS_mmap, 0, TRACE_CHUNK_BYTES, RW, MAP_SHARED, 3, 0) &&
	       allowed(SYS_close, 3, 0, 0, 0, 0, 0);
}

static bool mapping_is_allowed(void)
{
	long somewhere = (long)trace_file_header;

	return rights.prepared &&
	       allowed(SYS_mremap, somewhere, 0, TRACE_CHUNK_BYTES, MREMAP_MAYMOVE, 0, 0) &&
	       allowed(SYS_munmap, somewhere, TRACE_CHUNK_BYTES, 0, 0, 0, 0) &&
	       allowed(SYS_madvise, somewhere, TRACE_CHUNK_BYTES, POPULATE_WRITE, 0, 0, 0);
}

struct rights_filter rights_before_filter(const void *fprog)
{
	struct rights_filter f = {.number = -1, .was_unreachable = rights.unreachable};
	uint64_t signals = sys_block_signals();
	bool opening, mapping;
	int fd;

	f.noted = is_own_trace();
	if (!f.noted)
		goto done;
	sys_lock(&rights.lock);
	prepare();
	f.number = filter_add(fprog);
	f.strict = f.number < 0 || !life_is_allowed();
	f.frozen = !fprog;
	opening = !f.strict && opening_is_allowed();
	mapping = !f.strict && mapping_is_allowed();
	if (!opening && !mapping) {
		filter_remove(f.number);
		fd = trace_file_open_by_path();
		if (fd >= 0) {
			take_room(fd);
			sys_close(fd);
		}
		if (f.frozen)
			clock_freeze(true);
		/* restore the signal mask while that is still allowed */
		sys_restore_signals(signals);
		if (f.strict)
			f.number = filter_add(NULL);
		else
			filter_restore(f.number);
		__atomic_store_n(&rights.unreachable, true, __ATOMIC_RELAXED);
		sys_unlock(&rights.lock);
		__atomic_store_n(&shim.sandboxed, f.strict, __ATOMIC_SEQ_CST);
		return f;
	}
	if (!opening)
		__atomic_store_n(&rights.refused, true, __ATOMIC_RELAXED);
	sys_unlock(&rights.lock);
done:
	sys_restore_signals(signals);
	return f;
}

void rights_after_filter(const struct rights_filter *f, bool installed)
{
	if (!f->noted)
		return;
	if (installed) {
		rights_given_up(TRACE_RIGHT_SECCOMP);
		return;
	}
	if (f->frozen)
		clock_freeze(false);
	if (f->strict)
		__atomic_store_n(&shim.sandboxed, false, __ATOMIC_SEQ_CST);
	filter_remove(f->number);
	__atomic_store_n(&rights.unreachable, f->was_unreachable, __ATOMIC_RELAXED);
}

/* --- losses --- */

bool rights_blamed(int error)
{
	if (__atomic_load_n(&rights.unreachable, __ATOMIC_RELAXED))
		return true;
	if (error == -EACCES || error == -EPERM)
		/* a file that we made: at least a call that we did not see is to blame */
		return true;
	return __atomic_load_n(&rights.any, __ATOMIC_RELAXED) &&
	       (error == -ENOENT || error == -ENOTDIR || error == -ESTALE || error == -ELOOP);
}

void rights_stopped(void)
{
	struct trace_rights *r = &trace_file_header->rights;
	uint64_t none = 0;

	__atomic_store_n(
	    &r->stopped, __atomic_load_n(&rights.latest, __ATOMIC_RELAXED), __ATOMIC_RELAXED);
	__atomic_compare_exchange_n(
	    &r->stopped_ticks, &none, clock_ticks(), false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
}

void rights_go_on(void)
{
	struct trace_rights *r = &trace_file_header->rights;

	if (__atomic_load_n(&r->stopped_ticks, __ATOMIC_RELAXED))
		__atomic_store_n(&r->stopped_ticks, 0, __ATOMIC_RELAXED);
}

void rights_orphaned(struct trace_header *parent)
{
	trace_file_count(&parent->dropped[TRACE_DROP_RIGHTS], 1);
	__atomic_store_n(&parent->rights.stopped, rights.latest, __ATOMIC_RELAXED);
	__atomic_fetch_add(&parent->rights.children, 1, __ATOMIC_RELAXED);
}

void rights_forked(void)
{
	uint32_t latest = rights.latest;
	bool any = rights.any;

	if (rights.room.start)
		sys_call(SYS_munmap, (long)rights.room.start, (long)rights.room.bytes, 0, 0, 0, 0);
	memset(&rights, 0, sizeof(rights));
	rights.latest = latest;
	rights.any = any;
}
