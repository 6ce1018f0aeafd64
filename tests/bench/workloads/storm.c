/*
 * storm.c - a storm of small blocks: PAIRS malloc/free pairs a run, shared by THREADS threads, from
 * 200 random stacks about 22 frames deep, of 16 to 1,024 bytes in steps of 16, with 10,000 of them
 * live at a time.
 *
 * 	storm THREADS PAIRS
 *
 * Each pair takes a random stack, so consecutive calls share little but the outermost frames: the
 * hardest case for an unwinder. Prints a sum that depends on every step.
 */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#define STACKS 200
#define LIVE 10000
#define SIZES 64 /* with all 1,009 the helper process of heaptrack 1.4 runs out of memory */
#define FUNCTIONS 16
#define SHALLOWEST 15
#define DEEPEST 21

struct work {
	uint64_t random, sum;
	long pairs;
	void **slots;
	long live;
	const uint8_t *path;
	int left;
};

static uint8_t paths[STACKS][DEEPEST];
static int depths[STACKS];

static uint64_t next_random(uint64_t *state)
{
	uint64_t x = *state;

	x ^= x << 13;
	x ^= x >> 7;
	x ^= x << 17;
	*state = x;
	return x * 0x2545f4914f6cdd1du;
}

static void __attribute__((noinline)) leaf(struct work *w)
{
	uint64_t r = next_random(&w->random);
	void **slot = &w->slots[r % (uint64_t)w->live];
	size_t size = 16 + (r >> 32) % SIZES * 16;
	char *p;

	free(*slot);
	p = malloc(size);
	if (!p)
		abort();
	p[0] = (char)size;
	p[size - 1] = (char)r;
	w->sum += (unsigned char)p[0] + (unsigned char)p[size - 1];
	*slot = p;
}

typedef void step_fn(struct work *w);
static step_fn *const steps[FUNCTIONS];

/* The empty asm keeps the call from becoming a jump, so that each function has a frame. */
#define STEP(n)                                                                                    \
	static void __attribute__((noinline)) step_##n(struct work *w)                             \
	{                                                                                          \
		uint64_t keep = w->sum + (n);                                                      \
                                                                                                   \
		if (w->left-- == 0)                                                                \
			leaf(w);                                                                   \
		else                                                                               \
			steps[*w->path++](w);                                                      \
		__asm__ volatile("" : "+r"(keep));                                                 \
		w->sum += keep & (n);                                                              \
	}
STEP(0)
STEP(1)
STEP(2)
STEP(3)
STEP(4)
STEP(5)
STEP(6)
STEP(7)
STEP(8)
STEP(9)
STEP(10)
STEP(11)
STEP(12)
STEP(13)
STEP(14)
STEP(15)

static step_fn *const steps[FUNCTIONS] = {step_0, step_1, step_2, step_3, step_4, step_5, step_6,
    step_7, step_8, step_9, step_10, step_11, step_12, step_13, step_14, step_15};

static void *work(void *arg)
{
	struct work *w = arg;

	for (long i = 0; i < w->pairs; i++) {
		int stack = (int)(next_random(&w->random) % STACKS);

		w->path = paths[stack];
		w->left = depths[stack] - 1;
		steps[*w->path++](w);
	}
	for (long i = 0; i < w->live; i++)
		free(w->slots[i]);
	free(w->slots);
	return NULL;
}

int main(int argc, char **argv)
{
	int threads = argc > 1 ? atoi(argv[1]) : 1;
	long pairs = argc > 2 ? atol(argv[2]) : 3000000;
	struct work w[16] = {0};
	pthread_t ids[16];
	uint64_t random = 0x9e3779b97f4a7c15u, sum = 0;

	if (threads < 1 || threads > 16 || pairs < threads) {
		fprintf(stderr, "usage: storm THREADS PAIRS\n");
		return 2;
	}
	for (int i = 0; i < STACKS; i++) {
		depths[i] = SHALLOWEST + (int)(next_random(&random) % (DEEPEST - SHALLOWEST));
		for (int k = 0; k < DEEPEST; k++)
			paths[i][k] = next_random(&random) % FUNCTIONS;
	}
	for (int i = 0; i < threads; i++) {
		w[i].random = next_random(&random);
		w[i].pairs = pairs / threads;
		w[i].live = LIVE / threads;
		w[i].slots = calloc((size_t)w[i].live, sizeof(*w[i].slots));
		if (!w[i].slots)
			abort();
	}
	for (int i = 1; i < threads; i++)
		if (pthread_create(&ids[i], NULL, work, &w[i]))
			abort();
	work(&w[0]);
	for (int i = 1; i < threads; i++)
		pthread_join(ids[i], NULL);
	for (int i = 0; i < threads; i++)
		sum += w[i].sum;
	printf("%llu\n", (unsigned long long)sum);
	return 0;
}
