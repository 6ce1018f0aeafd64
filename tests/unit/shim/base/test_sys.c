/* test_sys.c - the kernel's answers come back unchanged, and errno never moves. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/sys.h"

/* Six arguments arrive in order: mmap uses them all. */
static void test_call(void **state)
{
	char path[] = "/tmp/whyoom-sys-XXXXXX", *p;
	int fd = mkstemp(path);

	assert_int_equal(ftruncate(fd, 3 * 4096), 0);
	assert_int_equal(pwrite(fd, "third", 5, 2 * 4096), 5);
	errno = 77;
	p = (char *)sys_call(SYS_mmap, 0, 4096, PROT_READ, MAP_PRIVATE, fd, 2 * 4096);
	assert_memory_equal(p, "third", 5);
	assert_int_equal(sys_call(SYS_munmap, (long)p, 4096, 0, 0, 0, 0), 0);
	assert_int_equal(sys_call(SYS_close, 12345, 0, 0, 0, 0, 0), -EBADF);
	assert_int_equal(sys_call(99999, 0, 0, 0, 0, 0, 0), -ENOSYS);
	assert_int_equal(sys_open("/no/such/file", O_RDONLY, 0), -ENOENT);
	assert_true(sys_failed(-EBADF));
	assert_true(sys_failed(-4095));
	assert_false(sys_failed(-4096)); /* an address */
	assert_false(sys_failed(0));
	sys_yield();
	assert_int_equal(sys_getpid(), getpid());
	assert_int_equal(sys_gettid(), gettid());
	assert_int_equal(errno, 77);
	close(fd);
	unlink(path);
}

/* Fresh memory is zeroed, writable and not counted. */
static void test_map(void **state)
{
	size_t before = sys_own_bytes();
	long p = sys_map(8192);

	assert_false(sys_failed(p));
	for (int i = 0; i < 8192; i++)
		assert_int_equal(((char *)p)[i], 0);
	memset((char *)p, 1, 8192);
	assert_int_equal(sys_call(SYS_munmap, p, 8192, 0, 0, 0, 0), 0);
	assert_int_equal(sys_map((size_t)1 << 60), -ENOMEM);
	assert_int_equal(sys_own_bytes(), before);
}

#define LARGE 73728u /* pieces of this size are not kept */

static void test_pages(void **state)
{
	size_t before = sys_own_bytes();
	char *p = sys_pages(5000), *q = sys_pages(LARGE - 100);

	assert_int_equal((uintptr_t)p % 4096, 0);
	assert_int_equal(sys_own_bytes(), before + 8192 + LARGE);
	for (int i = 0; i < 8192; i++)
		assert_int_equal(p[i], 0);
	memset(p, 1, 8192);
	sys_pages_free(q, LARGE - 100);
	assert_int_equal(sys_own_bytes(), before + 8192);
	sys_pages_free(NULL, 1 << 20);
	assert_int_equal(sys_own_bytes(), before + 8192);
	sys_pages_free(p, 5000);
	before = sys_own_bytes();
	errno = 77;
	assert_null(sys_pages((size_t)1 << 60));
	assert_int_equal(errno, 77);
	assert_int_equal(sys_own_bytes(), before);
}

/* A few small pieces are kept for the next request, zeroed, and count as ours until then. More are
 * given back. */
static void test_pages_kept(void **state)
{
	enum { MANY = 12, BYTES = 3 * 4096 };
	size_t before = sys_own_bytes(), kept;
	char *first[MANY], *again[MANY];
	int same = 0;

	for (int round = 0; round < 3; round++) {
		for (int i = 0; i < MANY; i++) {
			first[i] = sys_pages(BYTES);
			assert_non_null(first[i]);
			for (int k = 0; k < BYTES; k++)
				assert_int_equal(first[i][k], 0);
			memset(first[i], 0xaa, BYTES);
		}
		for (int i = 0; i < MANY; i++)
			sys_pages_free(first[i], BYTES);
	}
	kept = (sys_own_bytes() - before) / BYTES;
	assert_in_range(kept, 1, MANY / 2);
	for (int i = 0; i < MANY; i++) {
		again[i] = sys_pages(BYTES);
		for (int k = 0; k < i; k++)
			assert_ptr_not_equal(again[i], again[k]);
		for (int k = 0; k < MANY; k++)
			same += again[i] == first[k];
	}
	assert_true(same >= (int)kept);
	assert_int_equal(sys_own_bytes(), before + MANY * BYTES);
	for (int i = 0; i < MANY; i++)
		sys_pages_free(again[i], BYTES);
}

/* Huge pages are aligned, and nothing around them stays mapped. */
static void test_pages_scattered(void **state)
{
	const size_t huge = (size_t)2 << 20, bytes = 3 * huge + 4096;
	size_t before = sys_own_bytes();
	char *small = sys_pages_scattered(LARGE), *p = sys_pages_scattered(bytes);
	unsigned char there;

	assert_int_equal(sys_own_bytes(), before + LARGE + bytes);
	assert_int_equal((uintptr_t)p % huge, 0);
	for (size_t at = 0; at < bytes; at += 512)
		assert_int_equal(p[at], 0);
	memset(p, 1, bytes);
	sys_pages_free(p, bytes);
	sys_pages_free(small, LARGE);
	assert_int_equal(sys_own_bytes(), before);
	for (size_t at = 0; at < bytes; at += huge)
		assert_int_equal(
		    sys_call(SYS_mincore, (long)(p + at), 1, (long)&there, 0, 0, 0), -ENOMEM);
	errno = 77;
	assert_null(sys_pages_scattered((size_t)1 << 60));
	assert_int_equal(errno, 77);
	assert_int_equal(sys_own_bytes(), before);
}

static char kept[8192];
static unsigned taken, given;

static void *take(size_t bytes)
{
	taken++;
	return bytes <= sizeof(kept) ? kept : NULL;
}

static bool give(void *p, size_t bytes)
{
	given += p == kept;
	return p == kept;
}

/* The reserve is asked last and gets its own pages back. */
static void test_reserve(void **state)
{
	size_t before = sys_own_bytes();
	void *p;

	sys_pages_reserve(take, give);
	p = sys_pages(LARGE);
	assert_int_equal(taken, 0);
	assert_ptr_not_equal(p, kept);
	sys_pages_free(p, LARGE);
	assert_int_equal(given, 0);
	assert_null(sys_pages((size_t)1 << 60));
	assert_int_equal(taken, 1);
	sys_pages_free(kept, 4096);
	assert_int_equal(given, 1);
	assert_int_equal(sys_own_bytes(), before);
	sys_pages_reserve(NULL, NULL);
}

static void test_read_file(void **state)
{
	char path[] = "/tmp/whyoom-sys-XXXXXX", text[8];
	int fd = mkstemp(path);

	assert_int_equal(write(fd, "abcdefghij", 10), 10);
	assert_int_equal(sys_read_file(path, text, sizeof(text)), 7);
	assert_string_equal(text, "abcdefg");
	assert_int_equal(sys_read_file(path, text, 1), 0);
	assert_string_equal(text, "");
	assert_int_equal(ftruncate(fd, 3), 0);
	assert_int_equal(sys_read_file(path, text, sizeof(text)), 3);
	assert_string_equal(text, "abc");
	assert_int_equal(sys_read_file("/no/such/file", text, sizeof(text)), -ENOENT);
	assert_string_equal(text, "");
	assert_int_equal(sys_read_file("/", text, sizeof(text)), -EISDIR);
	close(fd);
	fd = sys_open(path, O_RDONLY, 0);
	assert_true(fcntl(fd, F_GETFD) & FD_CLOEXEC);
	sys_close(fd);
	assert_int_equal(fcntl(fd, F_GETFD), -1);
	unlink(path);
}

static void test_fd_path(void **state)
{
	char path[] = "/tmp/whyoom-sys-XXXXXX", out[64];
	int fd = mkstemp(path), high = fcntl(fd, F_DUPFD, 123);

	errno = 4711;
	assert_int_equal(sys_fd_path(fd, out, sizeof(out)), strlen(path));
	assert_string_equal(out, path);
	assert_int_equal(sys_fd_path(high, out, 8), 7); /* a number of three digits; cut */
	assert_string_equal(out, "/tmp/wh");
	assert_int_equal(sys_fd_path(1 << 30, out, sizeof(out)), -ENOENT);
	assert_string_equal(out, "");
	assert_int_equal(errno, 4711);
	close(fd);
	close(high);
	unlink(path);
}

static void test_signals(void **state)
{
	sigset_t before, now;
	uint64_t mask;

	sigprocmask(SIG_SETMASK, NULL, &before);
	assert_false(sigismember(&before, SIGTERM));
	mask = sys_block_signals();
	sigprocmask(SIG_SETMASK, NULL, &now);
	for (int s = 1; s < 32; s++)
		assert_int_equal(sigismember(&now, s), s != SIGKILL && s != SIGSTOP);
	sys_restore_signals(mask);
	sigprocmask(SIG_SETMASK, NULL, &now);
	for (int s = 1; s < 32; s++)
		assert_int_equal(sigismember(&now, s), sigismember(&before, s));
}

static void test_clock(void **state)
{
	struct timespec a, b;
	uint64_t between;

	clock_gettime(CLOCK_MONOTONIC, &a);
	between = sys_clock_ns(CLOCK_MONOTONIC);
	clock_gettime(CLOCK_MONOTONIC, &b);
	assert_true(between >= (uint64_t)a.tv_sec * 1000000000u + (uint64_t)a.tv_nsec);
	assert_true(between <= (uint64_t)b.tv_sec * 1000000000u + (uint64_t)b.tv_nsec);
}

/* The output of a child whose descriptor 2 is that file. */
static const char *said(void (*child)(void))
{
	static char text[1024];
	char path[] = "/tmp/whyoom-sys-XXXXXX";
	int fd = mkstemp(path), status;
	pid_t pid = fork();
	ssize_t n;

	if (!pid) {
		dup2(fd, 2);
		child();
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	n = pread(fd, text, sizeof(text) - 1, 0);
	text[n < 0 ? 0 : n] = '\0';
	close(fd);
	unlink(path);
	return text;
}

static void says(void)
{
	sys_say_init(false);
	sys_say("hello");
}

static void is_quiet(void)
{
	sys_say_init(true);
	sys_say("hello");
}

static void before_init(void)
{
	sys_say("hello");
}

/* Descriptor 2 is closed and reopened, like a daemon's first file: nothing is written to it. */
static void another_file(void)
{
	char path[] = "/tmp/whyoom-sys-XXXXXX";
	int kept_fd = dup(2), mine = mkstemp(path);

	sys_say_init(false);
	dup2(mine, 2);
	sys_say("hello");
	if (lseek(mine, 0, SEEK_END) != 0)
		_exit(1);
	close(2);
	sys_say("hello");
	dup2(kept_fd, 2);
	sys_say("back");
	unlink(path);
}

static void too_long(void)
{
	char text[1000];

	memset(text, 'x', sizeof(text) - 1);
	text[sizeof(text) - 1] = '\0';
	sys_say_init(false);
	sys_say(text);
}

static void test_say(void **state)
{
	const char *text;

	assert_string_equal(said(says), "whyoom: hello\n");
	assert_string_equal(said(is_quiet), "");
	assert_string_equal(said(before_init), "");
	assert_string_equal(said(another_file), "whyoom: back\n");
	text = said(too_long);
	assert_int_equal(strlen(text), 256);
	assert_int_equal(text[255], '\n');
	assert_ptr_equal(strchr(text, '\n'), text + 255); /* one line */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_call),
	    cmocka_unit_test(test_map),
	    cmocka_unit_test(test_pages),
	    cmocka_unit_test(test_pages_kept),
	    cmocka_unit_test(test_pages_scattered),
	    cmocka_unit_test(test_reserve),
	    cmocka_unit_test(test_read_file),
	    cmocka_unit_test(test_fd_path),
	    cmocka_unit_test(test_signals),
	    cmocka_unit_test(test_clock),
	    cmocka_unit_test(test_say),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
