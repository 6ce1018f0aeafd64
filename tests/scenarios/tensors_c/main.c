/* Reads a model's tensors one after the other, and would then answer. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifndef SCALE
#define SCALE 1
#endif

struct tensor {
	float *data;
	size_t count;
};

static struct tensor model[400];
static int count;

__attribute__((noinline)) static void read_tensor(size_t rows, size_t columns)
{
	struct tensor *t = &model[count++];

	t->count = rows * columns * SCALE;
	t->data = malloc(t->count * sizeof(float));
	if (!t->data) {
		fprintf(stderr, "failed to allocate tensor %d\n", count);
		exit(1);
	}
	for (size_t i = 0; i < t->count; i++)
		t->data[i] = 0.5f;
}

__attribute__((noinline)) static void load_model(void)
{
	read_tensor(8000, 512);
	for (int layer = 0; layer < 24; layer++) {
		read_tensor(512, 1536);
		read_tensor(512, 512);
		read_tensor(512, 2048);
		read_tensor(2048, 512);
		read_tensor(1, 512);
	}
	read_tensor(512, 8000);
}

__attribute__((noinline)) static float answer(int i)
{
	float *hidden = calloc(512 * 200, sizeof(float)), sum = 0;

	for (int k = 0; k < 512; k++)
		sum += model[i % count].data[(size_t)k % model[i % count].count] + hidden[k];
	free(hidden);
	return sum;
}

int main(void)
{
	float sum = 0;

	load_model();
	for (int i = 0; i < 2000; i++)
		sum += answer(i);
	printf("%f\n", sum);
	return 0;
}
