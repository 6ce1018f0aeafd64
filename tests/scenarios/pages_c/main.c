/* A text that goes on: for every sixteenth token another megabyte. */
#include "gpu.h"

static void continue_text(int tokens)
{
	static gpu_ptr block[100000];
	gpu_ptr tmp;
	int n = 0;

	for (int i = 0; i < tokens; i++) {
		if (i % 16 == 0)
			TAKE(&block[n++], MB);
		TAKE(&tmp, MB / 4);
		gpu_free(tmp);
	}
	while (n)
		gpu_free(block[--n]);
}

int main(void)
{
	gpu_open();
	for (int i = 1; i < 200; i++)
		continue_text(600 * i);
	return 0;
}
