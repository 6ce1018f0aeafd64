/* First the encoder, then the decoder; the encoder is tried out in between. */
#include "gpu.h"

static void load_net(int layers, size_t width)
{
	gpu_ptr p;

	for (int i = 0; i < layers; i++) {
		TAKE(&p, width * width * 4);
		TAKE(&p, width * width * 16);
		TAKE(&p, width * width * 16);
		TAKE(&p, width * 4);
	}
}

static void try_out(void)
{
	gpu_ptr p;

	for (int i = 0; i < 6; i++) {
		TAKE(&p, MB);
		gpu_free(p);
	}
}

int main(void)
{
	gpu_open();
	load_net(10, 512);
	try_out();
	load_net(40, 1024);
	return 0;
}
