/* Bytes become floats, tensor by tensor, once all of them are on the card. */
#include "gpu.h"

static gpu_ptr packed[40];
static size_t size[40];

static void fetch(void)
{
	for (int i = 0; i < 40; i++) {
		size[i] = (i % 3 ? 3 : 5) * MB;
		TAKE(&packed[i], size[i]);
	}
}

static gpu_ptr to_float(gpu_ptr from, size_t bytes)
{
	gpu_ptr p;

	TAKE(&p, bytes * 4);
	gpu_free(from);
	return p;
}

int main(void)
{
	gpu_open();
	fetch();
	for (int i = 0; i < 40; i++)
		packed[i] = to_float(packed[i], size[i]);
	return 0;
}
