/*
 * signals.c - a handler that allocates, at about 1 kHz, while the interrupted threads allocate
 * too. glibc's malloc does not allow that, so this is linked with lockfree_malloc.c as a
 * library, which does.
 *
 *   signals SECONDS THREADS [alt|prof]     prints: main ALLOCS FREES handler ALLOCS FREES
 *
 * `alt`: the handler runs on an alternate stack of 8 KiB. `prof`: the signal is SIGPROF, and comes
 * from setitimer(ITIMER_PROF), too.
 */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static _Atomic long m_allocs, m_frees, h_allocs, h_frees;
static double seconds;
static int alt, number = SIGUSR1;

#define HANDLER_SIZE 4242

static void handler(int sig)
{
	int e = errno;
	void *p = malloc(HANDLER_SIZE);

	h_allocs++;
	p = realloc(p, HANDLER_SIZE + 1);
	h_frees++;
	h_allocs++;
	free(p);
	h_frees++;
	errno = e;
	(void)sig;
}

__attribute__((noinline)) static void work(int depth)
{
	if (depth > 0) {
		work(depth - 1);
		__asm__ volatile("");
		return;
	}
	for (int i = 0; i < 100; i++) {
		errno = 4711;
		void *p = malloc((size_t)(16 + i));
		m_allocs++;
		free(p);
		m_frees++;
		if (errno != 4711)
			_exit(97);
	}
}

static void *loop(void *arg)
{
	static __thread char stack[8192] __attribute__((aligned(64)));
	timer_t timer;
	struct sigevent ev = {.sigev_notify = SIGEV_THREAD_ID, .sigev_signo = number};
	struct itimerspec when = {{0, 1000000}, {0, 1000000}};
	struct timespec start, now;

	if (alt) {
		stack_t ss = {.ss_sp = stack, .ss_size = sizeof stack};
		if (sigaltstack(&ss, NULL) != 0)
			_exit(96);
	}
	ev._sigev_un._tid = (int)syscall(SYS_gettid);
	if (timer_create(CLOCK_MONOTONIC, &ev, &timer) != 0)
		_exit(95);
	timer_settime(timer, 0, &when, NULL);
	clock_gettime(CLOCK_MONOTONIC, &start);
	do {
		for (int i = 0; i < 50; i++)
			work(i % 30);
		clock_gettime(CLOCK_MONOTONIC, &now);
	} while ((double)(now.tv_sec - start.tv_sec) + (double)(now.tv_nsec - start.tv_nsec) / 1e9 <
		 seconds);
	timer_delete(timer);
	return NULL;
	(void)arg;
}

int main(int argc, char **argv)
{
	struct sigaction sa = {.sa_handler = handler};
	int threads = argc > 2 ? atoi(argv[2]) : 1;
	pthread_t t[8];

	seconds = argc > 1 ? atof(argv[1]) : 1;
	alt = argc > 3 && !strcmp(argv[3], "alt");
	sa.sa_flags = SA_RESTART | (alt ? SA_ONSTACK : 0);
	if (argc > 3 && !strcmp(argv[3], "prof")) {
		struct itimerval each = {{0, 1000}, {0, 1000}};

		number = SIGPROF;
		sigaction(number, &sa, NULL);
		setitimer(ITIMER_PROF, &each, NULL);
	}
	sigaction(number, &sa, NULL);
	for (int i = 0; i < threads && i < 8; i++)
		if (pthread_create(&t[i], NULL, loop, NULL) != 0)
			return 94;
	for (int i = 0; i < threads && i < 8; i++)
		pthread_join(t[i], NULL);
	signal(number, SIG_IGN);
	printf("%ld %ld %ld %ld\n", m_allocs, m_frees, h_allocs, h_frees);
	fflush(stdout);
	_exit(0);
}
