/* The first batch decides the cache's size: for every row the longest text. */
#include "gpu.h"

static void make_cache(int rows)
{
	gpu_ptr p;

	for (int layer = 0; layer < 24; layer++) {
		TAKE(&p, (size_t)rows * MB);
		TAKE(&p, (size_t)rows * MB);
	}
}

static void run(int i)
{
	gpu_ptr a, b;

	TAKE(&a, 3 * MB + i % 7 * 4096);
	TAKE(&b, 2 * MB);
	gpu_free(a);
	gpu_free(b);
}

int main(void)
{
	gpu_ptr p;

	gpu_open();
	for (int i = 0; i < 24; i++) {
		TAKE(&p, 4 * MB);
		TAKE(&p, 2 * MB);
	}
	run(0);
	make_cache(14);
	for (int i = 0; i < 100; i++)
		run(i);
	return 0;
}
