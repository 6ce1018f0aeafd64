/*
 * threads.c - threads in numbers, with small stacks, with destructors that allocate.
 *
 *   many N       N threads alive at once, each with a few blocks, on 16 KiB stacks
 *   short N      N threads one after the other (two at a time)
 *   idle N       N threads that wait, each after a hundred thousand blocks
 *   tls          keys and thread_local destructors that allocate and release, at the very end
 *   deep N       a block under N frames of recursion
 *   overflow BYTES [dies]   recursion without end, on a stack of so many bytes
 *   jump         longjmp out of frames that allocated, ten thousand times
 */
#include "../oracle.h"

#include <limits.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/mman.h>
#include <ucontext.h>

static pthread_barrier_t all;
static pthread_key_t key, key2;

static void *few(void *arg)
{
	void *p = malloc(1000 + (size_t)arg % 7);

	p = realloc(p, 3000);
	pthread_barrier_wait(&all);
	free(p);
	return NULL;
}

static void many(int n)
{
	static pthread_t t[4096];
	pthread_attr_t attr;
	size_t small = PTHREAD_STACK_MIN > 16384 ? (size_t)PTHREAD_STACK_MIN : 16384;

	pthread_attr_init(&attr);
	CHECK(pthread_attr_setstacksize(&attr, small) == 0);
	pthread_barrier_init(&all, NULL, (unsigned)n);
	for (long i = 0; i < n; i++)
		CHECK(pthread_create(&t[i], &attr, few, (void *)i) == 0);
	for (int i = 0; i < n; i++)
		pthread_join(t[i], NULL);
}

static void *one(void *arg)
{
	free(malloc(100 + (size_t)arg % 7));
	return NULL;
}

static long level(const char *name)
{
	char line[256];
	long kb = -1;
	FILE *f = fopen("/proc/self/status", "re");

	while (fgets(line, sizeof line, f))
		if (!strncmp(line, name, strlen(name)))
			sscanf(line + strlen(name), "%ld", &kb);
	fclose(f);
	return kb;
}

static void shorts(long n)
{
	pthread_attr_t attr;

	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, 65536);
	for (long i = 0; i < n; i += 2) {
		pthread_t a, b;
		CHECK(pthread_create(&a, &attr, one, (void *)i) == 0);
		CHECK(pthread_create(&b, &attr, one, (void *)(i + 1)) == 0);
		pthread_join(a, NULL);
		pthread_join(b, NULL);
		if (i == n / 10)
			printf("early %ld\n", level("VmRSS:"));
	}
	printf("late %ld\nvirtual %ld\n", level("VmRSS:"), level("VmSize:"));
}

static pthread_barrier_t worked;

static void *busy(void *arg)
{
	for (size_t i = 0; i < 100000; i++)
		free(malloc(16 + i * 13 % 500));
	pthread_barrier_wait(&worked);
	pthread_barrier_wait(&all);
	return arg;
}

static void idle(int n)
{
	static pthread_t t[4096];

	pthread_barrier_init(&all, NULL, (unsigned)n + 1);
	pthread_barrier_init(&worked, NULL, (unsigned)n + 1);
	for (long i = 0; i < n; i++)
		CHECK(pthread_create(&t[i], NULL, busy, NULL) == 0);
	pthread_barrier_wait(&worked);
	printf("resident %ld\n", level("VmRSS:"));
	pthread_barrier_wait(&all);
	for (int i = 0; i < n; i++)
		pthread_join(t[i], NULL);
}

static void last_words(void *p)
{
	o_free(p);
	p = o_malloc(333);
	o_free(p);
	if (oracle_gettid() % 2 == 0)
		CHECK(pthread_setspecific(key2, o_malloc(444)) == 0); /* another round */
	oracle_end();
}

static void later_words(void *p)
{
	free(p);
	p = malloc(555);
	free(p);
}

static void *with_key(void *arg)
{
	oracle_begin();
	CHECK(pthread_setspecific(key, o_malloc(222)) == 0);
	return NULL;
}

static void tls(void)
{
	pthread_t t[20];

	CHECK(pthread_key_create(&key, last_words) == 0 &&
	      pthread_key_create(&key2, later_words) == 0);
	for (int i = 0; i < 20; i++)
		CHECK(pthread_create(&t[i], NULL, with_key, NULL) == 0);
	for (int i = 0; i < 20; i++)
		pthread_join(t[i], NULL);
}

__attribute__((noinline)) static int deep(int n)
{
	if (n == 0) {
		void *p = o_malloc(77777);
		o_free(p);
		return 1;
	}
	int r = deep(n - 1);
	__asm__ volatile("" : "+r"(r));
	return r + 1;
}

static jmp_buf env;
__attribute__((noinline)) static void leap(int n, void **out)
{
	if (n == 0) {
		*out = o_malloc(50);
		longjmp(env, 1);
	}
	if (n > 0)
		leap(n - 1, out);
	__asm__ volatile("");
}

static void jump(void)
{
	static void *p;

	for (volatile int i = 0; i < 10000; i++) {
		if (setjmp(env) == 0)
			leap(i % 17, &p);
		o_free(p);
	}
}

/* Frames of a page, each with a block: the first one without room faults in this very function. */
static volatile int depth;

#pragma GCC diagnostic ignored "-Winfinite-recursion"
__attribute__((noinline)) static int endless(int n)
{
	volatile char page[4096];

	page[0] = page[4095] = (char)n;
	depth = n;
	if (n % 4 == 0)
		free(malloc((size_t)n + 1));
	return endless(n + 1) + page[0];
}

static void faulted(int sig, siginfo_t *info, void *context)
{
	const ucontext_t *u = context;
#if defined(__x86_64__)
	uintptr_t pc = (uintptr_t)u->uc_mcontext.gregs[REG_RIP];
#else
	uintptr_t pc = (uintptr_t)u->uc_mcontext.pc;
#endif
	printf("%d %s\n", depth, pc - (uintptr_t)endless < 512 ? "own" : "not-own");
	fflush(stdout);
	_exit(3);
}

static void *overflowing(void *arg)
{
	static char other[16384];
	stack_t alternate = {.ss_sp = other, .ss_size = sizeof other};
	struct sigaction sa = {.sa_sigaction = faulted, .sa_flags = SA_SIGINFO | SA_ONSTACK};

	CHECK(sigaltstack(&alternate, NULL) == 0);
	if (!arg)
		CHECK(sigaction(SIGSEGV, &sa, NULL) == 0);
	return (void *)(long)endless(0);
}

static void overflow(size_t bytes, int dies)
{
	pthread_attr_t attr;
	pthread_t t;
	char *stack = mmap(NULL, bytes + 65536, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	CHECK(stack != MAP_FAILED && mprotect(stack + 65536, bytes, PROT_READ | PROT_WRITE) == 0);
	pthread_attr_init(&attr);
	CHECK(pthread_attr_setstack(&attr, stack + 65536, bytes) == 0);
	CHECK(pthread_create(&t, &attr, overflowing, dies ? &attr : NULL) == 0);
	pthread_join(t, NULL);
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "";
	long n = argc > 2 ? atol(argv[2]) : 0;

	oracle_open();
	if (!strcmp(what, "many")) {
		many((int)n);
	} else if (!strcmp(what, "short")) {
		shorts(n);
	} else if (!strcmp(what, "idle")) {
		idle((int)n);
	} else if (!strcmp(what, "tls")) {
		tls();
	} else if (!strcmp(what, "overflow")) {
		overflow((size_t)atol(argv[2]), argc > 3);
	} else if (!strcmp(what, "deep")) {
		oracle_begin();
		deep((int)n);
		oracle_end();
	} else if (!strcmp(what, "jump")) {
		oracle_begin();
		jump();
		oracle_end();
	} else {
		return 96;
	}
	return 0;
}
