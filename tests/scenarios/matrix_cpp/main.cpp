// Embeds a few texts at a time; one job embeds the whole corpus into one matrix.
#include <cstdio>
#include <vector>

#ifndef SCALE
#define SCALE 1
#endif

__attribute__((noinline)) static double embed(size_t texts)
{
	std::vector<float> vector(768);
	std::vector<float> matrix;
	matrix.resize(texts * 768);
	for (size_t i = 0; i < matrix.size(); i += 768)
		matrix[i] = vector[i % 768] + float(i);
	return matrix.empty() ? 0 : matrix[matrix.size() - 768];
}

int main()
{
	double sum = 0;
	for (int i = 0; i < 3000; i++)
		sum += embed(20 + i % 40);
	sum += embed(300000ul * SCALE);
	printf("%f\n", sum);
}
