/*
 * stopped.c WORK - forks of a process in which another thread has just released memory.
 *
 * A tracer (ptrace) stops the worker's thread whenever the preloaded library has changed the
 * address space: at that moment another thread maps memory of its own into a freed range, and
 * forks. The child allocates, and all such memory must still be there. Prints the number of forks.
 *
 * - chunks: one thread makes many calls
 * - depth: stacks deeper and deeper
 * - threads: short threads, which leave their chunks to others
 * - periods: a live set and short-lived blocks, so that checkpoints are made
 */
#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define FORKS_MOST 600u
#define KEPT 48u

/* Between the tracer and the process. */
static struct shared {
	uintptr_t low, high; /* the library's code */
	_Atomic int worker; /* its tid */
	_Atomic bool go; /* the worker may begin */
	_Atomic bool failed;
	_Atomic uint32_t asked, answered;
	uintptr_t free_at;
	size_t free_bytes;
} * shared;

#define CHECK(c)                                                                                   \
	do {                                                                                       \
		if (!(c)) {                                                                        \
			fprintf(stderr, "line %d: not so: %s (errno %d)\n", __LINE__, #c, errno);  \
			shared->failed = true;                                                     \
			_exit(97);                                                                 \
		}                                                                                  \
	} while (0)

/* --- the process --- */

static struct {
	volatile uint64_t *p;
	size_t bytes;
} kept[KEPT];

static void look(uint32_t i)
{
	for (size_t at = 0; kept[i].p && at < kept[i].bytes / 8; at += 512)
		CHECK(kept[i].p[at] == (uintptr_t)kept[i].p + at);
}

static void put(uint32_t i, uintptr_t address, size_t bytes)
{
	long p;

	if (kept[i].p)
		CHECK(syscall(SYS_munmap, kept[i].p, kept[i].bytes) == 0);
	kept[i].p = NULL;
	p = syscall(SYS_mmap, address, bytes, PROT_READ | PROT_WRITE,
	    MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
	if (p == -1 && errno == EEXIST)
		return; /* a third thread has it by now */
	CHECK((uintptr_t)p == address);
	kept[i].p = (void *)p;
	kept[i].bytes = bytes;
	for (size_t at = 0; at < bytes / 8; at += 512)
		kept[i].p[at] = address + at;
}

static __attribute__((noinline)) void deep(int left, int work)
{
	volatile char here[64] = {(char)left};

	if (left)
		deep(left - 1, work);
	else
		for (int i = 0; i < work; i++)
			free(malloc((size_t)(100 + i % 50)));
	(void)here[0];
}

static void fork_here(void)
{
	pid_t pid = fork();
	int status;

	CHECK(pid >= 0);
	if (pid == 0) {
		alarm(20);
		deep(100, 3000);
		for (uint32_t i = 0; i < KEPT; i++)
			look(i);
		_exit(0);
	}
	CHECK(waitpid(pid, &status, 0) == pid);
	if (status)
		fprintf(stderr, "fork %u: the child ended with %#x\n", shared->asked, status);
	CHECK(status == 0);
}

static void *nothing(void *arg)
{
	deep(3, 40);
	return arg;
}

static void *work(void *what)
{
	const char *name = what;

	shared->worker = (int)syscall(SYS_gettid);
	while (!shared->go)
		syscall(SYS_sched_yield);
	if (!strcmp(name, "chunks")) {
		deep(5, 3000000);
	} else if (!strcmp(name, "depth")) {
		for (int depth = 10; depth < 6000; depth += depth / 4)
			deep(depth, 2);
	} else if (!strcmp(name, "threads")) {
		for (int i = 0; i < 120; i++) {
			pthread_t t[3];

			for (int k = 0; k < 3; k++)
				CHECK(pthread_create(&t[k], NULL, nothing, NULL) == 0);
			for (int k = 0; k < 3; k++)
				CHECK(pthread_join(t[k], NULL) == 0);
		}
	} else {
		enum { LIVE = 20000 };
		static void *live[LIVE];

		CHECK(!strcmp(name, "periods"));
		for (long i = 0; i < 1500000; i++) {
			free(live[i % LIVE]);
			live[i % LIVE] = malloc((size_t)(16 + i % 100));
			if (i % 100 == 0)
				deep((int)(i / 100 % 300), 1);
		}
	}
	return NULL;
}

static int find_library(struct dl_phdr_info *info, size_t size, void *arg)
{
	if (!strstr(info->dlpi_name, "libwhyoom"))
		return 0;
	for (int i = 0; i < info->dlpi_phnum; i++)
		if (info->dlpi_phdr[i].p_flags & PF_X) {
			shared->low = info->dlpi_addr + info->dlpi_phdr[i].p_vaddr;
			shared->high = shared->low + info->dlpi_phdr[i].p_memsz;
		}
	return 1;
}

static int process(char *what)
{
	pthread_attr_t attr;
	pthread_t t;
	uint32_t last = 0;

	dl_iterate_phdr(find_library, NULL);
	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, 16 << 20);
	CHECK(pthread_create(&t, &attr, work, what) == 0);
	while (pthread_tryjoin_np(t, NULL) == EBUSY) {
		if (shared->asked == last) {
			usleep(50);
			continue;
		}
		last = shared->asked;
		if (shared->free_bytes)
			put(last % KEPT, shared->free_at, shared->free_bytes);
		fork_here();
		shared->answered = last;
	}
	for (uint32_t i = 0; i < KEPT; i++)
		look(i);
	return 0;
}

/* --- the tracer --- */

#define THREADS 1024

static struct {
	pid_t tid;
	struct __ptrace_syscall_info entry;
} threads[THREADS];

static struct __ptrace_syscall_info *entry_of(pid_t tid)
{
	uint32_t i = (uint32_t)tid % THREADS;

	while (threads[i].tid && threads[i].tid != tid)
		i = (i + 1) % THREADS;
	threads[i].tid = tid;
	return &threads[i].entry;
}

static bool changes_space(uint64_t number)
{
	return number == SYS_mmap || number == SYS_munmap || number == SYS_mremap ||
	       number == SYS_madvise;
}

static pid_t traced;
static bool asking, more = true, ended;
static int end; /* its status */

static bool see(int flags);

/* Other threads go on meanwhile: one of them may be about to wake a thread that waits to fork. */
static void ask(uintptr_t free_at, size_t free_bytes)
{
	shared->free_at = free_at;
	shared->free_bytes = free_bytes;
	shared->asked++;
	asking = true;
	while (shared->answered != shared->asked && !shared->failed && !ended)
		if (!see(WNOHANG))
			usleep(50);
	asking = false;
}

/* False: that is enough. */
static bool stopped(pid_t tid)
{
	struct __ptrace_syscall_info now, *entry = entry_of(tid);
	uintptr_t at = 0;
	size_t bytes = 0;

	if (ptrace(PTRACE_GET_SYSCALL_INFO, tid, sizeof(now), &now) < 0)
		return true;
	if (now.op == PTRACE_SYSCALL_INFO_ENTRY) {
		*entry = now;
		return true;
	}
	if (asking || now.op != PTRACE_SYSCALL_INFO_EXIT || now.instruction_pointer < shared->low ||
	    now.instruction_pointer >= shared->high || !changes_space(entry->entry.nr))
		return true;
	if (!now.exit.is_error && (entry->entry.nr == SYS_munmap ||
				      (entry->entry.nr == SYS_mremap &&
					  (uint64_t)now.exit.rval != entry->entry.args[0]))) {
		at = entry->entry.args[0];
		bytes = entry->entry.args[1];
	}
	ask(at, bytes);
	return shared->asked < FORKS_MOST;
}

/* Continue the stopped thread. False: none was stopped, or the process has ended. */
static bool see(int flags)
{
	int status;
	pid_t tid = waitpid(-1, &status, __WALL | flags);

	CHECK(tid >= 0);
	if (tid == traced && (WIFEXITED(status) || WIFSIGNALED(status))) {
		ended = true;
		end = status;
	}
	if (!tid || ended)
		return false;
	if (!WIFSTOPPED(status))
		return true;
	if (WSTOPSIG(status) == (SIGTRAP | 0x80))
		more = more && stopped(tid);
	/* SIGTRAP: our events; all others are the process's own */
	ptrace(more ? PTRACE_SYSCALL : PTRACE_DETACH, tid, 0,
	    WSTOPSIG(status) & 0x80 || WSTOPSIG(status) == SIGTRAP ||
		    status >> 16 == PTRACE_EVENT_STOP
		? 0
		: WSTOPSIG(status));
	return true;
}

static int trace(void)
{
	enum { OPTIONS = PTRACE_O_TRACESYSGOOD | PTRACE_O_TRACECLONE };

	while (!shared->worker)
		usleep(100);
	if (ptrace(PTRACE_SEIZE, shared->worker, 0, OPTIONS) < 0) {
		kill(traced, SIGKILL);
		printf("no ptrace here\n");
		return 77;
	}
	CHECK(ptrace(PTRACE_INTERRUPT, shared->worker, 0, 0) == 0);
	shared->go = true;
	while (see(0))
		;
	CHECK(WIFEXITED(end) && WEXITSTATUS(end) == 0);
	printf("%u\n", shared->asked);
	return 0;
}

int main(int argc, char **argv)
{
	CHECK(argc == 2);
	shared =
	    mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	CHECK(shared != MAP_FAILED);
	traced = fork();
	CHECK(traced >= 0);
	return traced ? trace() : process(argv[1]);
}
