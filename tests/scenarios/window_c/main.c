/* A fixed set of streams; the window of batches under way gets wider and wider. */
#include "gpu.h"

static gpu_call alloc_async, free_async, create, wait_for;

struct batch {
	gpu_ptr image, feature;
};
static void *stream[256];

static struct batch begin(int i)
{
	struct batch b;

	gpu_check(alloc_async(&b.image, 4 * MB + (size_t)(i % 3) * 300000, stream[i % 256]));
	gpu_check(alloc_async(&b.feature, 2 * MB, stream[i % 256]));
	return b;
}

int main(void)
{
	static struct batch open[100000];
	int n = 0, done = 0;

	gpu_open();
	alloc_async = gpu_find("cuMemAllocAsync");
	free_async = gpu_find("cuMemFreeAsync");
	create = gpu_find("cuStreamCreate");
	wait_for = gpu_find("cuStreamSynchronize");
	for (int i = 0; i < 256; i++)
		create(&stream[i], 1);
	for (int window = 2; window < 256; window += 6)
		for (int i = 0; i < 60; i++) {
			open[n] = begin(n);
			n++;
			while (n - done > window) {
				free_async(open[done].image, stream[done % 256]);
				free_async(open[done].feature, stream[done % 256]);
				wait_for(stream[done % 256]);
				done++;
			}
		}
	return 0;
}
