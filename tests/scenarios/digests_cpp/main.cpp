// Documents are read in parts of one size, one document after the other; of one that is far too
// large an error is told, and the next ones are served.
#include <cstdio>
#include <new>
#include <vector>

#ifndef SCALE
#define SCALE 1
#endif

typedef std::vector<char> Part;

__attribute__((noinline)) static size_t digest(int count)
{
	std::vector<Part> parts;
	size_t sum = 0;

	for (int i = 0; i < count; i++)
		parts.emplace_back(300000 * SCALE, char(i));
	for (auto &part : parts)
		sum += size_t(part[5]);
	return sum;
}

int main()
{
	int failed = 0;
	size_t sum = 0;

	for (int number = 0; number < 600; number++) {
		try {
			sum += digest(number == 300 ? 20000 : 5 + number % 20);
		} catch (std::bad_alloc &) {
			failed++;
		}
	}
	printf("%zu, %d failed\n", sum, failed);
	return 0;
}
