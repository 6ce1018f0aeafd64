/* A training job took most of the card; the server beside it needs little, and gets less. */
#include "gpu.h"

static void train(int ready, int until)
{
	gpu_ptr p;
	char c = 1;

	gpu_open();
	for (int i = 0; i < 18; i++)
		TAKE(&p, 64 * MB);
	write(ready, &c, 1);
	read(until, &c, 1);
	while (!gpu_alloc(&p, 16 * MB))
		;
	write(ready, &c, 1);
	read(until, &c, 1);
	exit(0);
}

static void infer(int step)
{
	gpu_ptr p, q;

	TAKE(&p, (20 + step % 3 * 4) * MB);
	TAKE(&q, 8 * MB);
	gpu_free(p);
	gpu_free(q);
}

int main(void)
{
	int ready[2], until[2];
	gpu_ptr p;
	char c;

	pipe(ready);
	pipe(until);
	if (!fork()) {
		close(until[1]);
		train(ready[1], until[0]);
	}
	read(ready[0], &c, 1);
	gpu_open();
	for (int i = 0; i < 8; i++)
		TAKE(&p, (i % 2 ? 30 : 14) * MB);
	for (int i = 0; i < 100; i++)
		infer(i);
	write(until[1], &c, 1);
	read(ready[0], &c, 1);
	for (int i = 0; i < 100; i++)
		infer(i);
	return 0;
}
