/* Lanes for as many sequences as may ever come, made after the model. */
#include "gpu.h"

static void read_model(void)
{
	static const size_t shapes[] = {6, 2, 8, 8};
	gpu_ptr p;

	for (int i = 0; i < 12; i++)
		for (int k = 0; k < 4; k++)
			TAKE(&p, shapes[k] * MB / 2);
}

static void init_lanes(int lanes, int layers)
{
	gpu_ptr p;

	for (int i = 0; i < lanes; i++)
		for (int k = 0; k < layers; k++)
			TAKE(&p, 3 * MB);
}

int main(void)
{
	gpu_open();
	read_model();
	init_lanes(48, 12);
	return 0;
}
