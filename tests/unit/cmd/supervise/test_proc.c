#include <fcntl.h>
#include <pthread.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../../util/unit.h"
#include "../scratch.h"
#include "cmd/supervise/proc.h"

static struct event_level levels[32];
static size_t count;

static uint64_t level(uint32_t key)
{
	for (size_t i = 0; i < count; i++)
		if (levels[i].key == key)
			return levels[i].value;
	return UINT64_MAX;
}

static void *touch_and_wait(void *arg)
{
	volatile char used[1 << 20];

	for (size_t i = 0; i < sizeof(used); i += 1024)
		used[i] = 1;
	pthread_barrier_wait(arg);
	pthread_barrier_wait(arg);
	return NULL;
}

/* Two threads with stacks of 4 MiB, of which each has touched one. */
static void stacks_of_threads(void **state)
{
	pthread_barrier_t barrier;
	pthread_attr_t attr;
	pthread_t threads[2];
	uint64_t virt, resident;

	count = run_proc_threads(getpid(), levels, 32);
	assert_int_equal(count, 2);
	virt = level(TRACE_LEVEL_VIRT_THREADS);
	resident = level(TRACE_LEVEL_RSS_THREADS);
	pthread_barrier_init(&barrier, NULL, 3);
	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, 4 << 20);
	for (int i = 0; i < 2; i++)
		assert_int_equal(pthread_create(&threads[i], &attr, touch_and_wait, &barrier), 0);
	pthread_barrier_wait(&barrier);
	count = run_proc_threads(getpid(), levels, 32);
	assert_in_range(level(TRACE_LEVEL_VIRT_THREADS) - virt, 8 << 20, (8 << 20) + (64 << 10));
	assert_in_range(
	    level(TRACE_LEVEL_RSS_THREADS) - resident, 2 << 20, (2 << 20) + (512 << 10));
	pthread_barrier_wait(&barrier);
	for (int i = 0; i < 2; i++)
		pthread_join(threads[i], NULL);
	pthread_barrier_destroy(&barrier);
	assert_int_equal(run_proc_threads(getpid(), levels, 1), 1);
	assert_int_equal(run_proc_threads(-1, levels, 32), 0);
}

static void status_follows_memory(void **state)
{
	const size_t bytes = 64u << 20;
	uint64_t rss, vsize;
	char *p;

	count = run_proc_status(getpid(), levels, 32);
	rss = level(TRACE_LEVEL_RSS);
	vsize = level(TRACE_LEVEL_VSIZE);
	p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	assert_ptr_not_equal(p, MAP_FAILED);
	memset(p, 1, bytes);
	count = run_proc_status(getpid(), levels, 32);
	assert_true(level(TRACE_LEVEL_RSS) >= rss + bytes - (1u << 20));
	assert_true(level(TRACE_LEVEL_VSIZE) >= vsize + bytes);
	assert_int_equal(level(TRACE_LEVEL_THREADS), 1);
	assert_true(level(TRACE_LEVEL_RSS_PEAK) >= level(TRACE_LEVEL_RSS));
	count = run_proc_rollup(getpid(), levels, 32);
	assert_true(level(TRACE_LEVEL_PRIVATE_DIRTY) >= bytes);
	munmap(p, bytes);
	/* The peak of resident memory stays known. */
	count = run_proc_status(getpid(), levels, 32);
	assert_true(level(TRACE_LEVEL_RSS_PEAK) >= rss + bytes - (1u << 20));
}

/* The quick sample agrees with the long one, and a file that is kept open stays with its
 * process. */
static void sizes_and_kept_files(void **state)
{
	struct run_proc_files kept, opened;
	uint64_t rss, vsize, again, size;
	int settled[2];
	pid_t pid;
	char byte;

	assert_int_equal(pipe(settled), 0);
	pid = fork();
	if (pid == 0) {
		if (write(settled[1], "", 1) == 1)
			pause();
		_exit(0);
	}
	/* the child's resident memory grows until it runs its own code */
	assert_int_equal(read(settled[0], &byte, 1), 1);
	close(settled[0]);
	close(settled[1]);
	run_proc_open(pid, true, &kept);
	run_proc_open(pid, false, &opened);
	assert_true(kept.statm >= 0 && kept.status >= 0);
	assert_true(opened.statm < 0 && opened.status < 0);
	assert_true(run_proc_sizes(&kept, &rss, &vsize));
	assert_true(run_proc_sizes(&opened, &again, &size));
	count = run_proc_status_of(&kept, levels, 32);
	assert_int_equal(level(TRACE_LEVEL_VSIZE), vsize);
	assert_int_equal(size, vsize);
	assert_in_range(rss, level(TRACE_LEVEL_RSS) / 2, 2 * level(TRACE_LEVEL_RSS));
	kill(pid, SIGKILL);
	waitid(P_PID, (id_t)pid, &(siginfo_t){0}, WEXITED | WNOWAIT);
	assert_true(run_proc_sizes(&kept, &rss, &vsize)); /* a zombie */
	assert_int_equal(rss + vsize, 0);
	waitpid(pid, NULL, 0);
	assert_false(run_proc_sizes(&kept, &rss, &vsize));
	assert_false(run_proc_sizes(&opened, &rss, &vsize));
	assert_int_equal(run_proc_status_of(&kept, levels, 32), 0);
	run_proc_close(&kept);
	run_proc_close(&opened);
}

static void kinds_of_mappings(void **state)
{
	const size_t bytes = 32u << 20;
	uint64_t anonymous, shared, file, sum;
	int fd;
	void *p, *q, *r;

	scratch_file("mapped.whyoom", "x");
	fd = open(scratch("mapped.whyoom"), O_RDWR);
	assert_int_equal(ftruncate(fd, (off_t)bytes), 0);
	count = run_proc_maps(getpid(), levels, 32);
	anonymous = level(TRACE_LEVEL_VIRT_ANON);
	shared = level(TRACE_LEVEL_VIRT_SHARED) == UINT64_MAX ? 0 : level(TRACE_LEVEL_VIRT_SHARED);
	file = level(TRACE_LEVEL_VIRT_FILE);
	p = mmap(NULL, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	q = mmap(NULL, bytes, PROT_READ, MAP_SHARED, fd, 0);
	r = mmap(NULL, bytes, PROT_READ, MAP_PRIVATE, fd, 0);
	count = run_proc_maps(getpid(), levels, 32);
	assert_true(level(TRACE_LEVEL_VIRT_ANON) >= anonymous + bytes);
	assert_int_equal(level(TRACE_LEVEL_VIRT_SHARED), shared + bytes);
	assert_int_equal(level(TRACE_LEVEL_VIRT_FILE), file + bytes);
	sum = level(TRACE_LEVEL_VIRT_ANON) + level(TRACE_LEVEL_VIRT_SHARED) +
	      level(TRACE_LEVEL_VIRT_FILE) + level(TRACE_LEVEL_VIRT_STACKS);
	sum += level(TRACE_LEVEL_VIRT_HEAP) == UINT64_MAX ? 0 : level(TRACE_LEVEL_VIRT_HEAP);
	count = run_proc_status(getpid(), levels, 32);
	assert_true(sum > level(TRACE_LEVEL_VSIZE) - (1u << 20));
	assert_true(sum < level(TRACE_LEVEL_VSIZE) + (1u << 20));
	munmap(p, bytes);
	munmap(q, bytes);
	munmap(r, bytes);
	close(fd);
}

static void who_maps_a_file(void **state)
{
	struct stat st;
	void *p;
	int fd;

	scratch_file("traced.whyoom", "x");
	fd = open(scratch("traced.whyoom"), O_RDONLY);
	assert_int_equal(fstat(fd, &st), 0);
	assert_false(run_proc_maps_file(getpid(), st.st_dev, st.st_ino));
	p = mmap(NULL, 4096, PROT_READ, MAP_SHARED, fd, 0);
	assert_true(run_proc_maps_file(getpid(), st.st_dev, st.st_ino));
	munmap(p, 4096);
	close(fd);
}

static void stat_and_limits(void **state)
{
	struct run_proc_stat stat;
	struct rlimit limit;
	int tell[2];
	pid_t pid;

	assert_int_equal(pipe(tell), 0);
	pid = fork();
	if (pid == 0) {
		char c;

		limit = (struct rlimit){(rlim_t)3 << 40, (rlim_t)3 << 40};
		setrlimit(RLIMIT_DATA, &limit);
		if (write(tell[1], "", 1) != 1)
			_exit(1);
		_exit(read(STDIN_FILENO, &c, 0) < 0 || pause());
	}
	assert_int_equal(read(tell[0], &limit, 1), 1);
	assert_true(run_proc_stat(pid, &stat));
	assert_int_equal(stat.ppid, getpid());
	assert_true(stat.start > 0);
	count = run_proc_limits(pid, levels, 32);
	assert_int_equal(level(TRACE_LEVEL_LIMIT_DATA), (uint64_t)3 << 40);
	kill(pid, SIGKILL);
	waitid(P_PID, (id_t)pid, &(siginfo_t){0}, WEXITED | WNOWAIT);
	assert_int_equal(run_proc_status(pid, levels, 32), 0); /* a zombie has no memory */
	waitpid(pid, NULL, 0);
	assert_false(run_proc_stat(pid, &stat));
	assert_int_equal(run_proc_maps(pid, levels, 32), 0);
	assert_int_equal(run_proc_rollup(pid, levels, 32), 0);
	assert_int_equal(run_proc_limits(pid, levels, 32), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    scratch_test(status_follows_memory),
	    scratch_test(sizes_and_kept_files),
	    scratch_test(stacks_of_threads),
	    scratch_test(kinds_of_mappings),
	    scratch_test(who_maps_a_file),
	    scratch_test(stat_and_limits),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
