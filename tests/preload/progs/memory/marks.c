/* marks.c - calls every function of mark.h; prints the ids. It must do the same with and without
 * the recording, and (marks_fixed) linked at a fixed address. */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "whyoom/mark.h"

static void *work(void *request)
{
	whyoom_request_enter(*(uint64_t *)request);
	free(malloc(4242));
	whyoom_request_leave(*(uint64_t *)request);
	return NULL;
}

static void *end(void *request)
{
	whyoom_request_end(*(uint64_t *)request);
	return NULL;
}

static void in_thread(void *(*f)(void *), uint64_t *request)
{
	pthread_t thread;

	if (pthread_create(&thread, NULL, f, request) || pthread_join(thread, NULL))
		abort();
}

static int plain(void)
{
	uint64_t phase, request, inner;

	errno = 77;
	phase = whyoom_phase_begin("loading");
	whyoom_phase_end(phase);
	request = whyoom_request_begin("POST /chat");
	whyoom_request_tokens(request, 4096);
	whyoom_request_begin_id(42, NULL);
	inner = whyoom_request_begin("POST /chat");
	whyoom_point("first token");
	whyoom_request_end(inner);
	whyoom_request_end(42);
	if (errno != 77)
		return 3;
	in_thread(work, &request);
	in_thread(end, &request);
	whyoom_request_end(987654321); /* of none */
	printf("%llu %llu %llu\n", (unsigned long long)phase, (unsigned long long)request,
	    (unsigned long long)inner);
	return 0;
}

/* Names that no program should pass. */
static int names(void)
{
	char name[600];

	memset(name, 'x', sizeof(name) - 1);
	name[sizeof(name) - 1] = 0;
	whyoom_point(name);
	whyoom_point("");
	for (int i = 0; i < 5000; i++) {
		snprintf(name, sizeof(name), "user %d", i);
		whyoom_point(name);
	}
	whyoom_point("user 7");
	return 0;
}

static void on_signal(int number)
{
	whyoom_request_end(whyoom_request_begin("signal"));
}

static void *storm(void *unused)
{
	for (int i = 0; i < 20000; i++) {
		uint64_t request = whyoom_request_begin(i % 2 ? "odd" : "even");
		free(malloc(100));
		whyoom_request_end(request);
	}
	return NULL;
}

/* From several threads, and from signal handlers at any moment. */
static int threads(void)
{
	struct sigaction action = {.sa_handler = on_signal};
	pthread_t thread[4];

	sigaction(SIGALRM, &action, NULL);
	ualarm(500, 500);
	for (int i = 0; i < 4; i++)
		if (pthread_create(&thread[i], NULL, storm, NULL))
			abort();
	for (int i = 0; i < 4; i++)
		pthread_join(thread[i], NULL);
	ualarm(0, 0);
	return 0;
}

static int forks(void)
{
	uint64_t request = whyoom_request_begin("parent");
	pid_t child = fork();
	int status;

	if (!child) {
		whyoom_request_begin("child");
		whyoom_request_begin("parent");
		free(malloc(100000));
		exit(0);
	}
	printf("pid child %d\n", child);
	waitpid(child, &status, 0);
	whyoom_request_end(request);
	return status;
}

int main(int argc, char **argv)
{
	if (argc != 2)
		return 2;
	free(malloc(100000)); /* more than a trivial trace has */
	if (!strcmp(argv[1], "plain"))
		return plain();
	if (!strcmp(argv[1], "names"))
		return names();
	if (!strcmp(argv[1], "threads"))
		return threads();
	if (!strcmp(argv[1], "forks"))
		return forks();
	return 2;
}
