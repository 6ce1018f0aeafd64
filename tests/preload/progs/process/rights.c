/*
 * rights.c - gives up rights and allocates before, in between and afterwards.
 *
 *   rights BLOCKS WAY...		BLOCKS 0: for ever after the last one
 *
 * A way is the name of a call (see ways[]), "call:" and a name for the same through syscall(),
 * "fails" for calls that fail, or
 *   fork         a child allocates, too, and gives up the following rights with its parent
 *   vfork        a child of vfork gives up its user and exits
 *   thread       so does a thread, while the others go on
 *   asm          setuid without the C library
 *   limit-memory, limit-file, lock	300 MiB of address space, 8 MiB of file, mlockall()
 *
 * The file named by COUNTERS holds for each process and thread its pid, its tid and the number of
 * blocks of 902 bytes from calls that returned. The directory named by PLACE is an empty one to
 * change to.
 */
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <malloc.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/fsuid.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define NOBODY 65534
#define MAX_COUNTERS 256

#define CHECK(x)                                                                                   \
	do {                                                                                       \
		if (!(x)) {                                                                        \
			dprintf(2, "rights.c:%d: %s: %s\n", __LINE__, #x, strerror(errno));        \
			_exit(99);                                                                 \
		}                                                                                  \
	} while (0)

struct counter {
	_Atomic uint64_t pid, tid, blocks, pad[5];
};
static struct counter *counters;
static __thread struct counter *mine;
static _Atomic int done;
static pthread_t threads[4];
static int thread_count;
static long blocks;
static const char *place;

static void begin(void)
{
	static _Atomic uint64_t *used;

	used = &counters[0].pid;
	mine = &counters[1 + (*used)++];
	mine->tid = (uint64_t)syscall(SYS_gettid);
	mine->pid = (uint64_t)getpid();
}

static void some(long n)
{
	for (long i = 0; i < n; i++) {
		void *volatile p = malloc(902);
		if (!p)
			continue;
		mine->blocks++;
		free(p);
	}
}

/* --- filters --- */

static void filter(const int *numbers, unsigned count, unsigned those, unsigned others)
{
	struct sock_filter f[128];
	unsigned short n = 0;

	f[n++] = (struct sock_filter)BPF_STMT(
	    BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr));
	for (unsigned i = 0; i < count; i++) {
		f[n++] = (struct sock_filter)BPF_JUMP(
		    BPF_JMP | BPF_JEQ | BPF_K, (unsigned)numbers[i], 0, 1);
		f[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, those);
	}
	f[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, others);
	struct sock_fprog p = {n, f};
	CHECK(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
	if (others == SECCOMP_RET_ALLOW) /* each of the two ways */
		CHECK(syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &p) == 0);
	else
		CHECK(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &p, 0, 0) == 0);
}

/* No file can be opened any more. */
static int no_opening(void)
{
	static const int numbers[] = {
	    SYS_openat,
#ifdef SYS_open
	    SYS_open,
#endif
	};
	filter(
	    numbers, sizeof numbers / sizeof *numbers, SECCOMP_RET_KILL_PROCESS, SECCOMP_RET_ALLOW);
	return 0;
}

/* Nor can a file be mapped in any way. */
static int no_mapping(void)
{
	static const int numbers[] = {SYS_openat, SYS_mremap};

	filter(numbers, 2, SECCOMP_RET_KILL_PROCESS, SECCOMP_RET_ALLOW);
	return 0;
}

/* Allows malloc's calls and the end of the process; all others kill. */
static int sandbox(void)
{
	static const int numbers[] = {SYS_write, SYS_mmap, SYS_munmap, SYS_brk, SYS_madvise,
	    SYS_futex, SYS_exit, SYS_exit_group, SYS_mprotect, SYS_wait4, SYS_clone,
	    SYS_set_robust_list, SYS_rseq, SYS_getpid, SYS_gettid};

	filter(
	    numbers, sizeof numbers / sizeof *numbers, SECCOMP_RET_ALLOW, SECCOMP_RET_KILL_PROCESS);
	return 0;
}

static int harmless_filter(void)
{
	static const int numbers[] = {SYS_ptrace, SYS_mount};

	filter(numbers, 2, SECCOMP_RET_ERRNO | EPERM, SECCOMP_RET_ALLOW);
	return 0;
}

static int strict(void)
{
	CHECK(prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT, 0, 0, 0) == 0);
	return 0;
}

/* --- others --- */

static int landlock(void)
{
	struct {
		uint64_t handled;
	} rules = {(1 << 13) - 1};
	int fd = (int)syscall(444, &rules, sizeof rules, 0);

	if (fd < 0)
		return 77;
	CHECK(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
	CHECK(syscall(446, fd, 0) == 0);
	close(fd);
	return 0;
}

static int pivot(void)
{
	CHECK(unshare(CLONE_NEWNS) == 0);
	CHECK(mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0);
	CHECK(mount("tmpfs", place, "tmpfs", 0, NULL) == 0 && chdir(place) == 0);
	CHECK(syscall(SYS_pivot_root, ".", ".") == 0 && umount2(".", MNT_DETACH) == 0);
	return 0;
}

static int capabilities(int through)
{
	struct __user_cap_header_struct head = {_LINUX_CAPABILITY_VERSION_3, 0};
	struct __user_cap_data_struct data[2] = {{0, 0, 0}, {0, 0, 0}};
	extern int capset(void *, const void *);

	return through ? (int)syscall(SYS_capset, &head, data) : capset(&head, data);
}

static int other_namespace(void)
{
	int fd = open("/proc/self/ns/mnt", O_RDONLY);

	CHECK(fd >= 0 && setns(fd, CLONE_NEWNS) == 0);
	close(fd);
	return 0;
}

static int calls(const char *name)
{
	if (!strcmp(name, "setuid"))
		return (int)syscall(SYS_setuid, NOBODY);
	if (!strcmp(name, "setreuid"))
		return (int)syscall(SYS_setreuid, NOBODY, NOBODY);
	if (!strcmp(name, "setresuid"))
		return (int)syscall(SYS_setresuid, NOBODY, NOBODY, NOBODY);
	if (!strcmp(name, "setgid"))
		return (int)syscall(SYS_setgid, NOBODY);
	if (!strcmp(name, "capset"))
		return capabilities(1);
	if (!strcmp(name, "chroot"))
		return (int)syscall(SYS_chroot, place);
	if (!strcmp(name, "unshare"))
		return (int)syscall(SYS_unshare, CLONE_NEWNS);
	return 98;
}

/* A failing call returns its usual value and errno; and the rights stay. */
static int fails(void)
{
	struct sock_fprog p = {0, NULL};

	errno = 0;
	CHECK(chroot("/nowhere at all") == -1 && errno == ENOENT);
	CHECK(setns(-1, 0) == -1 && errno == EBADF);
	CHECK(syscall(SYS_pivot_root, "/nowhere", "/nowhere") == -1 && errno == ENOENT);
	CHECK(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &p, 0, 0) == -1 && errno == EINVAL);
	CHECK(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, 16L, 0, 0) == -1 && errno == EFAULT);
	CHECK(syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, ~0L, &p) == -1 && errno == EINVAL);
	CHECK(syscall(446, -1, 0) == -1);
	errno = 4242;
	CHECK(setuid(getuid()) == 0 && setgid(getgid()) == 0 && errno == 4242);
	return 0;
}

static void *worker(void *unused)
{
	begin();
	while (!done || mine->blocks < 400) {
		some(100);
		usleep(1000);
	}
	return NULL;
}

static long raw_setuid(long uid)
{
	long result;
#if defined(__x86_64__)
	__asm__ volatile("syscall"
			 : "=a"(result)
			 : "0"(SYS_setuid), "D"(uid)
			 : "rcx", "r11", "memory");
#else
	register long x8 __asm__("x8") = SYS_setuid;
	register long x0 __asm__("x0") = uid;
	__asm__ volatile("svc #0" : "+r"(x0) : "r"(x8) : "memory");
	result = x0;
#endif
	return result;
}

static int in_vfork(void)
{
	pid_t child = vfork();

	if (!child)
		_exit(setuid(NOBODY) ? 1 : 0);
	CHECK(child > 0 && waitpid(child, NULL, 0) == child);
	return 0;
}

static int limit(int what, rlim_t most)
{
	return setrlimit(what, &(struct rlimit){most, most});
}

static int way(const char *name)
{
	if (!strncmp(name, "call:", 5))
		return calls(name + 5);
	if (!strcmp(name, "setuid"))
		return setuid(NOBODY);
	if (!strcmp(name, "seteuid"))
		return seteuid(NOBODY);
	if (!strcmp(name, "again"))
		return seteuid(0);
	if (!strcmp(name, "setreuid"))
		return setreuid(NOBODY, NOBODY);
	if (!strcmp(name, "setresuid"))
		return setresuid(NOBODY, NOBODY, NOBODY);
	if (!strcmp(name, "setfsuid"))
		return setfsuid(NOBODY) != 0;
	if (!strcmp(name, "setgid"))
		return setgid(NOBODY);
	if (!strcmp(name, "setegid"))
		return setegid(NOBODY);
	if (!strcmp(name, "setregid"))
		return setregid(NOBODY, NOBODY);
	if (!strcmp(name, "setresgid"))
		return setresgid(NOBODY, NOBODY, NOBODY);
	if (!strcmp(name, "setfsgid"))
		return setfsgid(NOBODY) != 0;
	if (!strcmp(name, "setgroups"))
		return setgroups(0, NULL);
	if (!strcmp(name, "initgroups"))
		return initgroups("nobody", NOBODY);
	if (!strcmp(name, "capset"))
		return capabilities(0);
	if (!strcmp(name, "chroot"))
		return chroot(place) || chdir("/");
	if (!strcmp(name, "pivot"))
		return pivot();
	if (!strcmp(name, "unshare"))
		return unshare(CLONE_NEWNS);
	if (!strcmp(name, "unshare-user"))
		return unshare(CLONE_NEWUSER);
	if (!strcmp(name, "setns"))
		return other_namespace();
	if (!strcmp(name, "landlock"))
		return landlock();
	if (!strcmp(name, "no-opening"))
		return no_opening();
	if (!strcmp(name, "no-mapping"))
		return no_mapping();
	if (!strcmp(name, "harmless-filter"))
		return harmless_filter();
	if (!strcmp(name, "sandbox"))
		return sandbox();
	if (!strcmp(name, "strict"))
		return strict();
	if (!strcmp(name, "fails"))
		return fails();
	if (!strcmp(name, "asm"))
		return (int)raw_setuid(NOBODY);
	if (!strcmp(name, "vfork"))
		return in_vfork();
	if (!strcmp(name, "limit-memory"))
		return limit(RLIMIT_AS, 300 << 20);
	if (!strcmp(name, "limit-file"))
		return limit(RLIMIT_FSIZE, 8 << 20);
	if (!strcmp(name, "lock"))
		return mlockall(MCL_CURRENT | MCL_FUTURE);
	if (!strcmp(name, "thread"))
		return pthread_create(&threads[thread_count++], NULL, worker, NULL);
	return 98;
}

int main(int argc, char **argv)
{
	int fd = open(getenv("COUNTERS"), O_RDWR | O_CREAT, 0600), result, status = 0;
	pid_t children[16];
	int forks = 0;

	place = getenv("PLACE");
	blocks = atol(argv[1]);
	CHECK(fd >= 0 && ftruncate(fd, MAX_COUNTERS * sizeof *counters) == 0);
	counters =
	    mmap(NULL, MAX_COUNTERS * sizeof *counters, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	CHECK(counters != MAP_FAILED);
	close(fd);
	mallopt(M_TRIM_THRESHOLD, 1 << 30); /* the strict mode has no system call for more */
	free(malloc(100000));
	begin();
	some(400);
	for (int i = 2; i < argc; i++) {
		if (!strcmp(argv[i], "fork")) {
			pid_t pid = fork();

			CHECK(pid >= 0);
			if (!pid) {
				begin();
				forks = thread_count = 0;
			} else {
				children[forks++] = pid;
			}
		} else {
			result = way(argv[i]);
			if (result == 77)
				_exit(77);
			if (result)
				dprintf(2, "%s: %d %s\n", argv[i], result, strerror(errno));
			CHECK(result == 0);
		}
		some(blocks ? blocks : 400);
	}
	while (!blocks)
		some(400);
	done = 1;
	while (thread_count--)
		CHECK(!pthread_join(threads[thread_count], NULL));
	while (forks--) {
		CHECK(waitpid(children[forks], &status, 0) == children[forks]);
		if (status)
			return 1;
	}
	if (argc > 2 && !strcmp(argv[argc - 1], "strict"))
		syscall(SYS_exit, 0);
	return 0;
}
