/* waits KIND SECONDS: waits once, and prints the result, errno and how long it took. */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static long wait_in(const char *kind, int seconds)
{
	struct timespec time = {seconds, 0}, until;
	struct epoll_event event;
	pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
	pthread_cond_t condition = PTHREAD_COND_INITIALIZER;
	sigset_t set;
	int pair[2];
	char c;

	sigemptyset(&set);
	sigaddset(&set, SIGUSR2);
	if (!strcmp(kind, "sleep"))
		return nanosleep(&time, NULL);
	if (!strcmp(kind, "epoll"))
		return epoll_wait(epoll_create1(0), &event, 1, seconds * 1000);
	if (!strcmp(kind, "poll"))
		return poll(NULL, 0, seconds * 1000);
	if (!strcmp(kind, "select"))
		return select(0, NULL, NULL, NULL, &(struct timeval){seconds, 0});
	if (!strcmp(kind, "read"))
		return read(0, &c, 1);
	if (!strcmp(kind, "signal")) {
		sigprocmask(SIG_BLOCK, &set, NULL);
		return sigtimedwait(&set, NULL, &time);
	}
	if (!strcmp(kind, "receive")) {
		socketpair(AF_UNIX, SOCK_STREAM, 0, pair);
		setsockopt(pair[0], SOL_SOCKET, SO_RCVTIMEO, &(struct timeval){seconds, 0},
		    sizeof(struct timeval));
		return recv(pair[0], &c, 1, 0);
	}
	if (!strcmp(kind, "condition")) {
		clock_gettime(CLOCK_REALTIME, &until);
		until.tv_sec += seconds;
		pthread_mutex_lock(&mutex);
		return pthread_cond_timedwait(&condition, &mutex, &until);
	}
	return -2;
}

int main(int argc, char **argv)
{
	double before;
	long rc;
	int seconds;

	if (argc < 3)
		return 2;
	if (getenv("NOT_DUMPABLE"))
		prctl(PR_SET_DUMPABLE, 0);
	seconds = atoi(argv[2]);
	puts("ready");
	fflush(stdout);
	before = now();
	errno = 0;
	rc = wait_in(argv[1], seconds);
	printf("%ld %d %.3f\n", rc, errno, now() - before);
	return 0;
}
