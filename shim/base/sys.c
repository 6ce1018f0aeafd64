/*
 * sys.c - system calls without libc: the only place that knows how to enter the kernel. Must not
 * call any libc function, because each may be a hook of the shim's or of the host's.
 */
#include "base/sys.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>

#include "base/text.h"

static size_t own_bytes;
static void *(*from_reserve)(size_t bytes);
static bool (*to_reserve)(void *p, size_t bytes);

bool (*sys_allows)(long number, const long arguments[6]) __attribute__((visibility("hidden")));

static bool may(long number, long a, long b, long c, long d, long e, long f)
{
	bool (*ask)(long, const long[6]) = __atomic_load_n(&sys_allows, __ATOMIC_ACQUIRE);

	return !ask || ask(number, (long[6]){a, b, c, d, e, f});
}

#if defined(__x86_64__)
static long enter(long number, long a, long b, long c, long d, long e, long f)
{
	register long r10 __asm__("r10") = d;
	register long r8 __asm__("r8") = e;
	register long r9 __asm__("r9") = f;
	long result;

	__asm__ volatile("syscall"
			 : "=a"(result)
			 : "0"(number), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
			 : "rcx", "r11", "memory");
	return result;
}
#elif defined(__aarch64__)
static long enter(long number, long a, long b, long c, long d, long e, long f)
{
	register long x8 __asm__("x8") = number;
	register long x0 __asm__("x0") = a;
	register long x1 __asm__("x1") = b;
	register long x2 __asm__("x2") = c;
	register long x3 __asm__("x3") = d;
	register long x4 __asm__("x4") = e;
	register long x5 __asm__("x5") = f;

	__asm__ volatile("svc #0"
			 : "+r"(x0)
			 : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4), "r"(x5)
			 : "memory");
	return x0;
}
#else
#error "no system calls for this architecture"
#endif

long sys_call(long number, long a, long b, long c, long d, long e, long f)
{
	return may(number, a, b, c, d, e, f) ? enter(number, a, b, c, d, e, f) : -EPERM;
}

static size_t page_round(size_t bytes)
{
	return (bytes + 4095) & ~(size_t)4095;
}

long sys_map(size_t bytes)
{
	return sys_call(
	    SYS_mmap, 0, (long)bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}

/*
 * Freed pieces of each small size wait here for the next request. A thread's own pieces are ten,
 * and a server with a thread for each request would otherwise map and unmap them all the time,
 * delaying every thread that faults. Near RLIMIT_AS such a piece may take the room that the host's
 * next thread needs. A fork in between may lose a piece to the child.
 */
#define SPARE_PAGES 16u
#define SPARE_EACH 4u
static void *spare[SPARE_PAGES][SPARE_EACH];

static void *spare_take(size_t bytes)
{
	size_t pages = bytes / 4096;
	void *p = NULL;

	if (!pages || pages > SPARE_PAGES)
		return NULL;
	for (unsigned i = 0; i < SPARE_EACH && !p; i++)
		if (__atomic_load_n(&spare[pages - 1][i], __ATOMIC_RELAXED))
			p = __atomic_exchange_n(&spare[pages - 1][i], NULL, __ATOMIC_ACQUIRE);
	if (p)
		memset(p, 0, bytes);
	return p;
}

static bool spare_give(void *p, size_t bytes)
{
	size_t pages = bytes / 4096;

	if (pages > SPARE_PAGES)
		return false;
	for (unsigned i = 0; i < SPARE_EACH; i++) {
		void *none = NULL;

		if (__atomic_compare_exchange_n(
			&spare[pages - 1][i], &none, p, false, __ATOMIC_RELEASE, __ATOMIC_RELAXED))
			return true;
	}
	return false;
}

void *sys_pages(size_t bytes)
{
	void *again;
	long p;

	bytes = page_round(bytes);
	again = spare_take(bytes);
	if (again)
		return again;
	p = sys_map(bytes);
	if (sys_failed(p))
		return from_reserve ? from_reserve(bytes) : NULL;
	__atomic_fetch_add(&own_bytes, bytes, __ATOMIC_RELAXED);
	return (void *)p;
}

#define HUGE ((size_t)2 << 20)

void *sys_pages_scattered(size_t bytes)
{
	enum { HUGEPAGE = 14 };
	uintptr_t start, end;
	size_t head;
	long p;

	bytes = page_round(bytes);
	if (bytes < HUGE)
		return sys_pages(bytes);
	p = sys_map(bytes + HUGE);
	if (sys_failed(p))
		return sys_pages(bytes);
	start = ((uintptr_t)p + HUGE - 1) & ~(HUGE - 1);
	end = start + bytes;
	head = start - (uintptr_t)p;
	if (head)
		sys_call(SYS_munmap, p, (long)head, 0, 0, 0, 0);
	if (head < HUGE)
		sys_call(SYS_munmap, (long)end, (long)(HUGE - head), 0, 0, 0, 0);
	sys_call(SYS_madvise, (long)start, (long)(bytes & ~(HUGE - 1)), HUGEPAGE, 0, 0, 0);
	__atomic_fetch_add(&own_bytes, bytes, __ATOMIC_RELAXED);
	return (void *)start;
}

void sys_pages_free(void *p, size_t bytes)
{
	if (!p)
		return;
	bytes = page_round(bytes);
	if ((to_reserve && to_reserve(p, bytes)) || spare_give(p, bytes))
		return;
	sys_call(SYS_munmap, (long)p, (long)bytes, 0, 0, 0, 0);
	__atomic_fetch_sub(&own_bytes, bytes, __ATOMIC_RELAXED);
}

size_t sys_own_bytes(void)
{
	return __atomic_load_n(&own_bytes, __ATOMIC_RELAXED);
}

void sys_pages_more(size_t bytes)
{
	__atomic_fetch_add(&own_bytes, bytes, __ATOMIC_RELAXED);
}

void sys_pages_reserve(void *(*take)(size_t bytes), bool (*give)(void *p, size_t bytes))
{
	to_reserve = give;
	from_reserve = take;
}

/* Daemons close descriptor 2, and its number soon means a file of theirs: never write to that. */
static struct {
	bool quiet, known;
	uint64_t dev, ino;
} say;

static bool stderr_is(uint64_t *dev, uint64_t *ino)
{
	struct stat st;

	if (sys_call(SYS_fstat, 2, (long)&st, 0, 0, 0, 0) < 0)
		return false;
	*dev = st.st_dev;
	*ino = st.st_ino;
	return true;
}

void sys_say_init(bool quiet)
{
	say.quiet = quiet;
	say.known = stderr_is(&say.dev, &say.ino);
}

void sys_say(const char *text)
{
	char line[256];
	size_t n = 0;
	uint64_t dev, ino;

	if (say.quiet || !say.known || !stderr_is(&dev, &ino) || dev != say.dev || ino != say.ino)
		return;
	for (const char *s = "whyoom: "; *s; s++)
		line[n++] = *s;
	for (; *text && n < sizeof(line) - 1; text++)
		line[n++] = *text;
	line[n++] = '\n';
	sys_call(SYS_write, 2, (long)line, (long)n, 0, 0, 0);
}

int sys_open(const char *path, int flags, unsigned mode)
{
	return (int)sys_call(SYS_openat, AT_FDCWD, (long)path, flags | O_CLOEXEC, mode, 0, 0);
}

void sys_close(int fd)
{
	sys_call(SYS_close, fd, 0, 0, 0, 0, 0);
}

void sys_fd_link(int fd, char out[SYS_FD_LINK_BYTES])
{
	const char *end = out + SYS_FD_LINK_BYTES;

	text_append_number(text_append(out, end, "/proc/self/fd/"), end, (unsigned)fd);
}

long sys_fd_path(int fd, char *out, size_t size)
{
	char link[SYS_FD_LINK_BYTES];
	long n;

	sys_fd_link(fd, link);
	n = sys_call(SYS_readlinkat, AT_FDCWD, (long)link, (long)out, (long)size - 1, 0, 0);
	out[n > 0 ? n : 0] = 0;
	return n;
}

long sys_read_file(const char *path, char *buffer, size_t size)
{
	size_t have = 0;
	long n = 0;
	int fd = sys_open(path, O_RDONLY, 0);

	buffer[0] = 0;
	if (fd < 0)
		return fd;
	while (have < size - 1) {
		n = sys_call(SYS_read, fd, (long)(buffer + have), (long)(size - 1 - have), 0, 0, 0);
		if (n <= 0)
			break;
		have += (size_t)n;
	}
	sys_close(fd);
	buffer[have] = 0;
	return n < 0 ? n : (long)have;
}

uint64_t sys_block_signals(void)
{
	uint64_t all = ~0ull, before = 0;

	sys_call(SYS_rt_sigprocmask, 0 /* SIG_BLOCK */, (long)&all, (long)&before, 8, 0, 0);
	return before;
}

void sys_restore_signals(uint64_t mask)
{
	sys_call(SYS_rt_sigprocmask, 2 /* SIG_SETMASK */, (long)&mask, 0, 8, 0, 0);
}

uint64_t sys_limit(int resource)
{
	struct rlimit64 limit = {RLIM64_INFINITY, RLIM64_INFINITY};

	sys_call(SYS_prlimit64, 0, resource, 0, (long)&limit, 0, 0);
	return limit.rlim_cur;
}

void sys_yield(void)
{
	sys_call(SYS_sched_yield, 0, 0, 0, 0, 0, 0);
}

int sys_getpid(void)
{
	return (int)sys_call(SYS_getpid, 0, 0, 0, 0, 0, 0);
}

int sys_gettid(void)
{
	return (int)sys_call(SYS_gettid, 0, 0, 0, 0, 0, 0);
}

uint64_t sys_clock_ns(int clock)
{
	struct timespec now = {0};

	sys_call(SYS_clock_gettime, clock, (long)&now, 0, 0, 0, 0);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}
