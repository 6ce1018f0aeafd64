/*
 * guest.c - a host that does hostile things to libraries in its process, and then allocates.
 *
 *   guest THING [ARGUMENT]    prints `pid DONE PID`; 400 blocks of 901 bytes before, 400 of 902
 *                             after
 *
 *   closefrom      closes every descriptor above 2, then opens /dev/null on all of them again
 *   chdir, chroot  to ARGUMENT
 *   setuid         becomes nobody
 *   rmdir          removes the directory ARGUMENT with everything in it
 *   nofile         RLIMIT_NOFILE to 3
 *   fsize          RLIMIT_FSIZE to 64 KiB, SIGXFSZ as it was
 *   seccomp        a filter that allows malloc's calls; everything else is EPERM
 *   seccomp-kill   the same, and everything else kills, as sandboxes do
 *   many N         N blocks of 48 bytes, all kept, then 50 of 100,000
 */
#include "../oracle.h"

#include <grp.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/resource.h>

static void some(size_t size)
{
	for (int i = 0; i < 400; i++) {
		void *volatile p = malloc(size);
		free(p);
	}
}

static void limit(int what, rlim_t n)
{
	struct rlimit l = {n, n};
	CHECK(setrlimit(what, &l) == 0);
}

static void seccomp(unsigned otherwise)
{
	/* read, write, mmap, munmap, mremap, brk, madvise, futex, exit and its kin: malloc's
	 * calls */
	static const int allowed[] = {SYS_write, SYS_mmap, SYS_munmap, SYS_mremap, SYS_brk,
	    SYS_madvise, SYS_futex, SYS_exit, SYS_exit_group, SYS_mprotect};
	struct sock_filter f[64];
	unsigned short n = 0, count = sizeof allowed / sizeof *allowed;

	f[n++] = (struct sock_filter)BPF_STMT(
	    BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr));
	for (unsigned i = 0; i < count; i++) {
		f[n++] = (struct sock_filter)BPF_JUMP(
		    BPF_JMP | BPF_JEQ | BPF_K, (unsigned)allowed[i], 0, 1);
		f[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
	}
	f[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, otherwise);
	struct sock_fprog p = {n, f};
	CHECK(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
	CHECK(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &p, 0, 0) == 0);
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "", *arg = argc > 2 ? argv[2] : "";
	int pid = getpid(); /* a sandbox may forbid the question */

	some(901);
	if (!strcmp(what, "closefrom")) {
		for (int i = 3; i < 4096; i++)
			close(i);
		for (int i = 3; i < 200; i++)
			CHECK(open("/dev/null", O_RDWR) == i);
	} else if (!strcmp(what, "chdir")) {
		CHECK(chdir(arg) == 0);
	} else if (!strcmp(what, "chroot")) {
		CHECK(chroot(arg) == 0 && chdir("/") == 0);
	} else if (!strcmp(what, "setuid")) {
		CHECK(setgroups(0, NULL) == 0 && setgid(65534) == 0 && setuid(65534) == 0);
	} else if (!strcmp(what, "rmdir")) {
		char command[4096];
		snprintf(command, sizeof command, "LD_PRELOAD= rm -rf '%s'", arg);
		CHECK(system(command) == 0);
	} else if (!strcmp(what, "nofile")) {
		limit(RLIMIT_NOFILE, 3);
	} else if (!strcmp(what, "fsize")) {
		limit(RLIMIT_FSIZE, 65536);
	} else if (!strcmp(what, "seccomp")) {
		seccomp(SECCOMP_RET_ERRNO | EPERM);
	} else if (!strcmp(what, "seccomp-kill")) {
		seccomp(SECCOMP_RET_KILL_PROCESS);
	} else if (!strcmp(what, "many")) {
		void *last = NULL;
		for (long i = atol(arg); i > 0; i--) {
			void **p = malloc(48);
			CHECK(p);
			*p = last;
			last = p;
		}
		for (int i = 0; i < 50; i++) {
			void *volatile p = malloc(100000);
			free(p);
		}
	} else if (strcmp(what, "nothing")) {
		return 96;
	}
	/* enough that a new chunk is needed on the way */
	for (int i = 0; i < 300; i++)
		some(902);
	char line[64];
	int n = snprintf(line, sizeof line, "pid done %d\n", pid);
	CHECK(write(1, line, (size_t)n) == n);
	return 0;
}
