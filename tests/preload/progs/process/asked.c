/*
 * asked.c ROUNDS - a thread exits at the moment when another one asks whether it is dead.
 *
 * The preloaded library asks by tgkill() with signal 0 before a new thread takes over a dead
 * one's state. A filter hands these calls of the new thread to a supervisor (seccomp_unotify(2)),
 * which makes the thread in question exit, and answers only once it is gone. Exit status 77:
 * the kernel has no such filters.
 */
#include "../oracle.h"

#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

static struct {
	atomic_int listener; /* -1: none */
	atomic_int leaver; /* its tid */
	atomic_bool leaves;
	atomic_int asked; /* how often it exited while it was asked for */
	atomic_int stay; /* threads that have come and stay */
	atomic_bool over; /* the round */
} now = {.listener = -1};

/* Not by syscall(), since the library would learn of the filter and stop asking. */
static long raw(long number, long a, long b, long c)
{
	long r;

#if defined __x86_64__
	__asm__ volatile("syscall"
			 : "=a"(r)
			 : "a"(number), "D"(a), "S"(b), "d"(c)
			 : "rcx", "r11", "memory");
#elif defined __aarch64__
	register long x8 __asm__("x8") = number, x0 __asm__("x0") = a, x1 __asm__("x1") = b,
			 x2 __asm__("x2") = c;

	__asm__ volatile("svc 0" : "+r"(x0) : "r"(x8), "r"(x1), "r"(x2) : "memory");
	r = x0;
#endif
	return r;
}

static void *supervisor(void *arg)
{
	struct seccomp_notif ask = {0};

	while (now.listener < 0)
		sched_yield();
	while (ioctl(now.listener, SECCOMP_IOCTL_NOTIF_RECV, &ask) == 0) {
		struct seccomp_notif_resp answer = {
		    .id = ask.id, .flags = SECCOMP_USER_NOTIF_FLAG_CONTINUE};
		int leaver = now.leaver;

		if (leaver && (int)ask.data.args[1] == leaver) {
			now.leaves = true;
			while (syscall(SYS_tgkill, getpid(), leaver, 0) == 0)
				sched_yield();
			now.leaver = 0;
			now.asked++;
		}
		ioctl(now.listener, SECCOMP_IOCTL_NOTIF_SEND, &answer);
		ask = (struct seccomp_notif){0};
	}
	return arg;
}

static void filter(void)
{
	struct sock_filter code[] = {
	    BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
	    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_tgkill, 0, 3),
	    BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[2])),
	    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 0, 0, 1),
	    BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_USER_NOTIF),
	    BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = {sizeof code / sizeof *code, code};
	long fd;

	CHECK(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
	fd = raw(
	    SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_NEW_LISTENER, (long)&program);
	if (fd < 0) {
		printf("no filter with a listener (error %ld)\n", -fd);
		exit(77);
	}
	now.listener = (int)fd;
}

static void *leaver(void *arg)
{
	free(malloc(100));
	now.leaves = false;
	now.leaver = (int)syscall(SYS_gettid);
	while (!now.leaves)
		sched_yield();
	return arg;
}

static void *stays(void *arg)
{
	free(malloc(200));
	now.stay++;
	while (!now.over)
		sched_yield();
	return arg;
}

static void round_of(void)
{
	enum { MOST = 256 };
	pthread_t t, other[MOST];
	int others = 0;

	now.over = false;
	now.stay = 0;
	CHECK(pthread_create(&t, NULL, leaver, NULL) == 0);
	while (!now.leaver)
		sched_yield();
	/* A new thread that finds an orderly exited thread's state does not ask: so these stay. */
	while (others < MOST && !now.leaves) {
		CHECK(pthread_create(&other[others++], NULL, stays, NULL) == 0);
		while (now.stay < others)
			sched_yield();
	}
	now.over = now.leaves = true;
	CHECK(pthread_join(t, NULL) == 0);
	while (others)
		CHECK(pthread_join(other[--others], NULL) == 0);
	now.leaver = 0;
}

int main(int argc, char **argv)
{
	int rounds = argc > 1 ? atoi(argv[1]) : 8;
	pthread_t watch;

	CHECK(pthread_create(&watch, NULL, supervisor, NULL) == 0);
	filter();
	for (int i = 0; i < rounds; i++)
		round_of();
	printf("asked %d\n", (int)now.asked);
	return 0;
}
