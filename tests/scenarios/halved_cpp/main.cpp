// Vectors are made in batches as large as they can be: one that is refused is let go, and tried
// again half as large. All are made in the end.
#include <cstdio>
#include <new>
#include <vector>

#ifndef SCALE
#define SCALE 1
#endif

typedef std::vector<float> Row;

__attribute__((noinline)) static double run_batch(int size, size_t length)
{
	std::vector<Row> rows;
	double sum = 0;

	for (int i = 0; i < size; i++)
		rows.emplace_back(length * SCALE, 0.1f);
	for (auto &row : rows)
		sum += row[0];
	return sum;
}

__attribute__((noinline)) static double encode(int count, size_t length)
{
	double sum = 0;
	int size = 2048;

	while (count > 0) {
		int now = size < count ? size : count;

		try {
			sum += run_batch(now, length);
			count -= now;
		} catch (std::bad_alloc &) {
			if (size == 1)
				throw;
			size /= 2;
			fprintf(stderr, "a batch of %d now\n", size);
		}
	}
	return sum;
}

int main()
{
	double sum = 0;

	for (int question = 0; question < 30; question++)
		sum += encode(40, 20000);
	sum += encode(4000, 100000);
	for (int question = 0; question < 30; question++)
		sum += encode(40, 20000);
	printf("%g\n", sum);
	return 0;
}
