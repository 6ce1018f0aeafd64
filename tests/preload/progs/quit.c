/*
 * quit.c - ends of processes whose threads are busy allocating.
 *
 *   exit         exit(3) from main
 *   exit-thread  exit(3) from a thread
 *   main-first   main ends by pthread_exit, the threads finish their work
 *   exec         a thread that is not the main one replaces the process by /bin/sh -c 'exit 3'
 *   cancel       threads are cancelled, asynchronously where they do not allocate, else at points
 *   daemon       the parent ends at once, the grandchild goes on; prints `pid daemon PID`
 */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static long rounds;

static void *busy(void *arg)
{
	for (long i = 0; !rounds || i < rounds; i++) {
		void *volatile p = malloc((size_t)(100 + i % 50));
		p = realloc(p, 300);
		free(p);
		pthread_testcancel();
	}
	return arg;
}

static void *leave(void *arg)
{
	usleep(8000);
	if (!strcmp(arg, "exit-thread"))
		exit(3);
	execl("/bin/sh", "sh", "-c", "exit 3", NULL);
	return NULL;
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
	rounds = !strcmp(what, "main-first") ? 50000 : 0;
	for (int i = 0; i < 3; i++)
		pthread_create(&t[i], NULL, busy, NULL);
	if (!strcmp(what, "exit")) {
		usleep(8000);
		exit(3);
	}
	if (!strcmp(what, "main-first"))
		pthread_exit(NULL);
	if (!strcmp(what, "cancel")) {
		usleep(8000);
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
