/*
 * quit.c - ends of processes whose threads are busy allocating.
 *
 *   exit         exit(3) from main
 *   exit-thread  exit(3) from a thread
 *   main-first   main ends by pthread_exit, the threads finish their work
 *   exit-now-thread, quick-thread, raw-thread   _exit(3), quick_exit(3), exit_group by syscall(),
 *                from a thread
 *   abort-thread abort() from a thread
 *   exec         another thread than main replaces the process by /bin/sh -c 'exit 3'
 *   cancel       threads are cancelled at points
 *   cancel-storm six hundred threads are cancelled anywhere: at a point between allocations, in a
 *                wait, or asynchronously in a computation; each releases its blocks on the way out
 *   daemon       the parent ends at once, the grandchild goes on; prints `pid daemon PID`
 */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static long rounds;
static _Atomic int at_work;

static void *busy(void *arg)
{
	for (long i = 0; !rounds || i < rounds; i++) {
		if (i == 100)
			at_work++;
		void *volatile p = malloc((size_t)(100 + i % 50));
		p = realloc(p, 300);
		free(p);
		pthread_testcancel();
	}
	return arg;
}

/* All three cases, on a machine that is busy with others, too. */
static void let_work(void)
{
	while (at_work < 3)
		usleep(1000);
	usleep(8000);
}

static void *leave(void *arg)
{
	let_work();
	if (!strcmp(arg, "exit-thread"))
		exit(3);
	if (!strcmp(arg, "exit-now-thread"))
		_exit(3);
	if (!strcmp(arg, "quick-thread"))
		quick_exit(3);
	if (!strcmp(arg, "raw-thread"))
		syscall(SYS_exit_group, 3);
	if (!strcmp(arg, "abort-thread"))
		abort();
	execl("/bin/sh", "sh", "-c", "exit 3", NULL);
	return NULL;
}

#define VICTIMS 600

static _Atomic long released;
static pthread_key_t key;

/* A cancelled thread's exit: it releases its blocks, and does a little work. */
static void cleanup(void *p)
{
	free(p);
	free(malloc(701));
	released++;
}

static void *victim(void *arg)
{
	void *p = malloc(700);
	volatile unsigned long n = 0;
	int old;

	pthread_setspecific(key, malloc(702));
	pthread_cleanup_push(cleanup, p);
	if ((long)arg % 3 == 0)
		busy(NULL);
	if ((long)arg % 3 == 1)
		for (;;)
			pause();
	pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, &old);
	for (;;)
		n++;
	pthread_cleanup_pop(0);
	return NULL;
}

/* Four at a time. A thread that is cancelled before it began has nothing to release. */
static int cancel_storm(void)
{
	pthread_t t[4];
	long gone = 0;

	pthread_key_create(&key, free);
	for (long i = 0; i < VICTIMS; i += 4) {
		for (long k = 0; k < 4; k++)
			if (pthread_create(&t[k], NULL, victim, (void *)(i + k)) != 0)
				return 4;
		if (i % 40 == 0)
			usleep(2000);
		for (int k = 0; k < 4; k++)
			pthread_cancel(t[k]);
		for (int k = 0; k < 4; k++) {
			void *r;
			if (pthread_join(t[k], &r) != 0 || r != PTHREAD_CANCELED)
				return 5;
			gone++;
		}
	}
	printf("%ld %ld\n", gone, (long)released);
	return 3;
}

int main(int argc, char **argv)
{
	char *what = argc > 1 ? argv[1] : "";
	pthread_t t[4];

	if (!strcmp(what, "daemon")) {
		if (daemon(1, 1) != 0)
			return 1;
		printf("pid daemon %d\n", (int)getpid());
		fflush(stdout);
		rounds = 10000;
		busy(NULL);
		return 0;
	}
	if (!strcmp(what, "cancel-storm"))
		return cancel_storm();
	rounds = !strcmp(what, "main-first") ? 50000 : 0;
	for (int i = 0; i < 3; i++)
		pthread_create(&t[i], NULL, busy, NULL);
	if (!strcmp(what, "exit")) {
		let_work();
		exit(3);
	}
	if (!strcmp(what, "main-first"))
		pthread_exit(NULL);
	if (!strcmp(what, "cancel")) {
		let_work();
		for (int i = 0; i < 3; i++)
			pthread_cancel(t[i]);
		for (int i = 0; i < 3; i++) {
			void *r;
			pthread_join(t[i], &r);
			if (r != PTHREAD_CANCELED)
				return 2;
		}
		return 3;
	}
	pthread_create(&t[3], NULL, leave, what);
	for (;;)
		pause();
}
