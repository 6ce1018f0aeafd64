/* Eight streams, each with work in flight all the time: as it should be. */
#include "gpu.h"

int main(void)
{
	void *stream[8];
	gpu_call alloc_async, free_async, create;
	gpu_ptr p[8] = {0};

	gpu_open();
	alloc_async = gpu_find("cuMemAllocAsync");
	free_async = gpu_find("cuMemFreeAsync");
	create = gpu_find("cuStreamCreate");
	for (int i = 0; i < 8; i++)
		create(&stream[i], 1);
	for (int i = 0; i < 4000; i++) {
		if (p[i % 8])
			free_async(p[i % 8], stream[i % 8]);
		alloc_async(&p[i % 8], 8 * MB, stream[i % 8]);
	}
	return 0;
}
