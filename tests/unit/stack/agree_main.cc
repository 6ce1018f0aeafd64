/*
 * agree_main.cc - compares random stacks of every kind with the reference: plain frames without
 * frame pointers, alloca and realigned frames, exceptions, callbacks from libc, signal handlers on
 * the same and on their own stack at any instruction, threads, small stacks, deep recursion, lazy
 * binding, libraries that are replaced at the same address meanwhile.
 *
 *   agree [-n STACKS] [-t THREADS] [-l DIR with the two libraries] [-s SEED]
 */
#include <alloca.h>
#include <atomic>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <functional>
#include <pthread.h>
#include <stdexcept>
#include <string>
#include <sys/time.h>
#include <ucontext.h>
#include <unistd.h>
#include <vector>

#include "agree.h"
#include "under.h"

extern "C" {
extern void (*agree_lazy_hook)(void);
int agree_lazy(int);
}

namespace
{

std::atomic<long> wanted{10000};
std::atomic<bool> stopping{false};
std::atomic<uint64_t> lib_calls, lib_moves, handler_calls;
std::string libraries;
unsigned seed = 1;

struct random_state {
	uint64_t s;
	uint32_t next(uint32_t n)
	{
		s ^= s << 13;
		s ^= s >> 7;
		s ^= s << 17;
		return (uint32_t)(s >> 33) % n;
	}
};

struct step {
	random_state *r;
	int depth; /* frames still to make */
	uint64_t value;
};

thread_local volatile uint64_t sink;

void go(step *s);

/* Keeps the compiler from making a tail call, and from seeing through it. */
#define AFTER() __asm__ volatile("" ::: "memory")

template <int N> struct plain {
	static __attribute__((noinline)) uint64_t f(step *s, uint64_t a, uint64_t b, uint64_t c)
	{
		volatile uint64_t room[N + 1];
		for (int i = 0; i <= N; i++)
			room[i] = a * i + b;
		uint64_t x = a ^ c, y = b * 3 + N, z = a + c * N;
		go(s);
		AFTER();
		return x + y * room[N] + z + room[0];
	}
};

__attribute__((noinline)) uint64_t with_alloca(step *s, uint32_t n)
{
	auto *p = static_cast<volatile char *>(alloca(n * 8 + 16));
	p[0] = (char)n;
	p[n] = 1;
	go(s);
	AFTER();
	return p[0] + p[n];
}

/* Over-aligned locals: the frame is realigned, its CFA kept in a slot. */
__attribute__((noinline)) uint64_t realigned(
    step *s, uint32_t n, uint64_t a, uint64_t b, uint64_t c, uint64_t d, uint64_t e, uint64_t f)
{
	alignas(64) volatile uint64_t v[16];
	for (int i = 0; i < 16; i++)
		v[i] = a + i * f;
	go(s);
	AFTER();
	return v[n & 15] + b + c + d + e + f;
}

__attribute__((noinline)) uint64_t realigned_alloca(step *s, uint32_t n, uint64_t a)
{
	alignas(32) volatile uint64_t v[8];
	auto *p = static_cast<volatile char *>(alloca(n + 1));
	for (int i = 0; i < 8; i++)
		v[i] = a + i;
	p[n] = 1;
	go(s);
	AFTER();
	return v[n & 7] + p[n];
}

#if defined(__x86_64__)
__attribute__((noinline, target("avx2"))) void vectors(step *s, float *out, const float *in)
{
	alignas(32) float v[32];
	for (int i = 0; i < 32; i++)
		v[i] = in[i] * 2;
	AFTER();
	go(s);
	for (int i = 0; i < 32; i++)
		out[i] += v[i];
	AFTER();
}
#endif

__attribute__((noinline)) uint64_t many_arguments(step *s, uint64_t a, uint64_t b, uint64_t c,
    uint64_t d, uint64_t e, uint64_t f, uint64_t g, uint64_t h)
{
	go(s);
	AFTER();
	return a + b * c - d + e * f + g * h;
}

struct guard {
	step *s;
	~guard()
	{
		/* A destructor that runs while the stack is being unwound. */
		if (s->r->next(4) == 0)
			agree_here();
	}
};

__attribute__((noinline)) void thrower(step *s, int levels)
{
	guard g{s};
	if (levels == 0)
		throw std::runtime_error("thrown on purpose");
	thrower(s, levels - 1);
	AFTER();
}

__attribute__((noinline)) uint64_t catches(step *s)
{
	uint64_t x = s->value;
	try {
		thrower(s, s->r->next(5));
	} catch (const std::exception &) {
		/* In the landing pad, with the exception alive. */
		go(s);
		AFTER();
	}
	return x;
}

thread_local step *mine;

int compare(const void *a, const void *b)
{
	if (mine) {
		step *s = mine;
		mine = nullptr;
		go(s);
		AFTER();
	}
	return *static_cast<const int *>(a) - *static_cast<const int *>(b);
}

__attribute__((noinline)) void sorts(step *s)
{
	int numbers[8] = {5, 2, 7, 1, 8, 3, 6, 4};
	mine = s;
	qsort(numbers, 8, sizeof(int), compare);
	AFTER();
}

struct base {
	virtual void run(step *s) = 0;
	virtual ~base() = default;
};

struct derived : base {
	uint64_t pad[5] = {};
	__attribute__((noinline)) void run(step *s) override
	{
		uint64_t before = pad[0];
		go(s);
		AFTER();
		pad[1] = before;
	}
};

thread_local step *in_signal;

void handler(int, siginfo_t *, void *)
{
	handler_calls++;
	step *s = in_signal;
	if (!s)
		return;
	in_signal = nullptr;
	go(s);
	AFTER();
}

__attribute__((noinline)) void signals(step *s)
{
	in_signal = s;
	raise(s->r->next(2) ? SIGUSR1 : SIGUSR2); /* the second has its own stack */
	AFTER();
}

/* A library's functions call back; another library may have been at its address just before. */
using enter = uint64_t (*)(int, void (*)(void *), void *);

void from_library(void *arg)
{
	go(static_cast<step *>(arg));
	AFTER();
}

struct library {
	pthread_rwlock_t lock = PTHREAD_RWLOCK_INITIALIZER;
	enter f = nullptr;
} current;

__attribute__((noinline)) void through_library(step *s)
{
	/* a thread inside keeps it from being closed */
	if (pthread_rwlock_tryrdlock(&current.lock))
		return go(s);
	if (current.f) {
		lib_calls++;
		current.f((int)s->r->next(4), from_library, s);
	} else {
		go(s);
	}
	AFTER();
	pthread_rwlock_unlock(&current.lock);
}

__attribute__((noinline)) void through_shim(step *s)
{
	under_call(from_library, s);
	AFTER();
}

__attribute__((noinline)) void through_function(step *s)
{
	uint64_t a = s->value, b = a * 7;
	std::function<void()> f = [=] {
		go(s);
		AFTER();
		sink = a + b;
	};
	f();
	AFTER();
}

__attribute__((noinline)) uint64_t deep(step *s, int n)
{
	volatile uint64_t x = n;
	if (n == 0) {
		s->depth = 0;
		go(s);
		AFTER();
		return 0;
	}
	uint64_t r = deep(s, n - 1);
	AFTER();
	return r + x;
}

__attribute__((noinline)) void go(step *s)
{
	if (!s)
		return;
	random_state *r = s->r;
	if (r->next(12) == 0)
		agree_here();
	if (s->depth-- <= 0) {
		agree_here();
		return;
	}
	s->value = s->value * 31 + 7;
	uint64_t v = s->value;
	switch (r->next(22)) {
	case 0:
		sink = plain<0>::f(s, v, 1, 2);
		break;
	case 1:
		sink = plain<3>::f(s, v, 1, 2);
		break;
	case 2:
		sink = plain<40>::f(s, v, 1, 2);
		break;
	case 3:
		sink = plain<700>::f(s, v, 1, 2);
		break;
	case 4:
		sink = with_alloca(s, r->next(200));
		break;
	case 5:
		sink = realigned(s, r->next(16), v, 1, 2, 3, 4, 5);
		break;
	case 6:
		sink = realigned_alloca(s, r->next(100), v);
		break;
	case 7:
		sink = many_arguments(s, v, 1, 2, 3, 4, 5, 6, 7);
		break;
	case 8:
		sink = catches(s);
		break;
	case 9:
		sorts(s);
		break;
	case 10: {
		derived d;
		static_cast<base *>(&d)->run(s);
		break;
	}
	case 11:
		if (r->next(3) == 0)
			signals(s);
		else
			go(s);
		break;
	case 12:
	case 13:
		through_library(s);
		break;
	case 14:
		through_function(s);
		break;
	case 15:
		through_shim(s);
		break;
	case 16:
		if (r->next(400) == 0)
			sink = deep(s, (int)r->next(6000));
		else
			go(s);
		break;
#if defined(__x86_64__)
	case 17: {
		static const float in[32] = {1, 2, 3};
		float out[32] = {};
		if (__builtin_cpu_supports("avx2"))
			vectors(s, out, in);
		sink = (uint64_t)out[0];
		break;
	}
#endif
	default:
		sink = plain<8>::f(s, v, 3, 4);
		break;
	}
	AFTER();
}

void make_stacks(random_state *r, int most)
{
	step s = {r, (int)r->next((uint32_t)most), r->s};
	go(&s);
}

void own_signal_stack()
{
	stack_t ss = {};
	ss.ss_size = 1 << 20;
	ss.ss_sp = malloc(ss.ss_size);
	sigaltstack(&ss, nullptr);
}

void *thread_main(void *arg)
{
	random_state r = {0x9e3779b97f4a7c15u * (uint64_t)(uintptr_t)arg + seed};
	own_signal_stack();
	while (!stopping && agree_totals().stacks < (uint64_t)wanted)
		make_stacks(&r, 40);
	in_signal = nullptr;
	stack_t off = {};
	off.ss_flags = SS_DISABLE;
	sigaltstack(&off, nullptr);
	under_thread_end();
	return nullptr;
}

/* Two libraries take turns; the loader maps the second at the address of the first. */
void *swap_libraries(void *)
{
	void *handle = nullptr;
	uintptr_t last = 0;
	for (unsigned i = 0; !stopping; i++) {
		pthread_rwlock_wrlock(&current.lock);
		under_changing();
		if (handle)
			dlclose(handle);
		handle = dlopen((libraries + (i % 2 ? "/libagree2.so" : "/libagree1.so")).c_str(),
		    RTLD_LAZY | RTLD_LOCAL);
		under_changed();
		current.f =
		    handle ? reinterpret_cast<enter>(dlsym(handle, "agree_lib_enter")) : nullptr;
		if (!handle)
			fprintf(stderr, "%s\n", dlerror());
		lib_moves += last && last != (uintptr_t)current.f;
		last = (uintptr_t)current.f;
		pthread_rwlock_unlock(&current.lock);
		usleep(2000);
	}
	return nullptr;
}

/* SIGPROF strikes at any instruction, prologues and epilogues included. */
std::atomic<uint64_t> profile_calls;

void profile(int, siginfo_t *, void *)
{
	static std::atomic_flag busy = ATOMIC_FLAG_INIT;
	if (busy.test_and_set())
		return;
	profile_calls++;
	agree_here();
	busy.clear();
}

__attribute__((noinline)) uint64_t fibonacci(unsigned n)
{
	return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2);
}

void interrupted(unsigned most)
{
	struct sigaction sa = {};
	sa.sa_sigaction = profile;
	sa.sa_flags = SA_SIGINFO | SA_RESTART | SA_ONSTACK;
	sigaction(SIGPROF, &sa, nullptr);
	itimerval every = {{0, 1000}, {0, 1000}};
	setitimer(ITIMER_PROF, &every, nullptr);
	random_state r = {77};
	while (profile_calls < most) {
		sink = fibonacci(20);
		char text[200];
		snprintf(text, sizeof(text), "%g %s", (double)r.next(1000) / 7, "words");
		sink = realigned(nullptr, 0, 0, 0, 0, 0, 0, 0) + strlen(text);
	}
	itimerval none = {};
	setitimer(ITIMER_PROF, &none, nullptr);
	signal(SIGPROF, SIG_IGN);
}

/* A coroutine on its own stack, whose root is not that of a thread. */
ucontext_t outside, inside;

void coroutine()
{
	random_state r = {5};
	for (int i = 0; i < 20; i++) {
		make_stacks(&r, 10);
		swapcontext(&inside, &outside);
	}
}

void coroutines()
{
	size_t bytes = 256 << 10;
	void *stack = malloc(bytes);
	getcontext(&inside);
	inside.uc_stack.ss_sp = stack;
	inside.uc_stack.ss_size = bytes;
	inside.uc_link = &outside;
	makecontext(&inside, coroutine, 0);
	for (int i = 0; i < 20; i++) {
		swapcontext(&outside, &inside);
		agree_here();
	}
	free(stack);
}

void *small_stack(void *)
{
	random_state r = {9};
	for (int i = 0; i < 50; i++)
		make_stacks(&r, 3);
	under_thread_end();
	return nullptr;
}

std::atomic<int> lazy_calls;

void lazily()
{
	lazy_calls++;
#if defined(__ARM_FEATURE_PAC_DEFAULT)
	/* glibc 2.36 describes its trampoline wrongly there: the CFA lacks the 16 bytes that the
	 * PLT has pushed. What follows is garbage, and libgcc dies of it when addresses are signed.
	 */
	under_hook(false);
#else
	agree_here();
#endif
}

__attribute__((noinline)) int binds_lazily(int x)
{
	volatile int room[20];
	room[3] = x;
	int y = agree_lazy(x);
	AFTER();
	return y + room[3];
}

} // namespace

int main(int argc, char **argv)
{
	int threads = 3, option;
	libraries = ".";
	while ((option = getopt(argc, argv, "n:t:l:s:")) != -1) {
		if (option == 'n')
			wanted = atol(optarg);
		else if (option == 't')
			threads = atoi(optarg);
		else if (option == 'l')
			libraries = optarg;
		else if (option == 's')
			seed = (unsigned)atoi(optarg);
	}
	if (under_init()) {
		fprintf(stderr, "no stacks\n");
		return 1;
	}
	struct sigaction sa = {};
	sa.sa_sigaction = handler;
	sa.sa_flags = SA_SIGINFO | SA_NODEFER;
	sigaction(SIGUSR1, &sa, nullptr);
	sa.sa_flags |= SA_ONSTACK;
	sigaction(SIGUSR2, &sa, nullptr);
	own_signal_stack();

	pthread_t ids[16], swapper;
	pthread_create(&swapper, nullptr, swap_libraries, nullptr);
	for (int i = 0; i < threads && i < 16; i++)
		pthread_create(
		    &ids[i], nullptr, thread_main, reinterpret_cast<void *>((uintptr_t)i + 1));
	for (int i = 0; i < threads && i < 16; i++)
		pthread_join(ids[i], nullptr);
	stopping = true;
	pthread_join(swapper, nullptr);
	agree_counts before = agree_totals();
	agree_lazy_hook = lazily;
	uint64_t full_before, full_after;
	under_full_walks(&full_before);
	sink = binds_lazily(4);
	under_full_walks(&full_after);
	interrupted(300);
	coroutines();
	step s = {nullptr, 0, 0};
	random_state r = {3};
	s.r = &r;
	deep(&s, 5000);
	s.depth = 0;
	deep(&s, 12000);

	pthread_attr_t attr;
	pthread_attr_init(&attr);
	pthread_t small;
	pthread_attr_setstacksize(&attr, 64 << 10);
	pthread_create(&small, &attr, small_stack, nullptr);
	pthread_join(small, nullptr);

	agree_counts c = agree_totals();
	printf("%lu stacks (%lu in threads, %lu at interrupts), %lu frames, deepest %lu, %lu "
	       "through libraries, %lu "
	       "in handlers, %lu definitions of %lu bytes, %lu bytes of memory; %lu unfinished; "
	       "%lu differ\n",
	    c.stacks, before.stacks, profile_calls.load(), c.frames, c.deepest, lib_calls.load(),
	    handler_calls.load(), (unsigned long)under_definitions(), under_definition_bytes(),
	    under_own_bytes(), c.unfinished, c.bad);
	if (c.stacks < (uint64_t)wanted || !lib_calls || !handler_calls || !lazy_calls) {
		fprintf(stderr, "some kind of stack was never made\n");
		return 1;
	}
#if defined(__x86_64__)
	if (full_after == full_before) {
		fprintf(stderr, "the binding trampoline did not need the slow unwinder\n");
		return 1;
	}
#else
	(void)full_before;
	(void)full_after;
#endif
	return c.bad != 0;
}
