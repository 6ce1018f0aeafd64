// The same small rows as one large answer is made of, but a few are kept of each of many questions.
#include <cstdio>
#include <list>
#include <string>

#ifndef SCALE
#define SCALE 1
#endif

struct Row {
	std::string name;
	double values[12 * SCALE];
};

static std::list<Row> seen;

__attribute__((noinline)) static size_t fetch(size_t count)
{
	for (size_t i = 0; i < count; i++) {
		seen.emplace_back();
		seen.back().name = "row number " + std::to_string(i) + " of the catalogue";
		seen.back().values[0] = double(i);
	}
	return seen.size();
}

__attribute__((noinline)) static size_t answer(const std::string &question)
{
	return fetch(question.size() % 40);
}

int main()
{
	size_t sum = 0;
	for (unsigned i = 0; i < 100000000; i++)
		sum += answer("what is known about customer number " + std::to_string(i % 9999));
	printf("%zu\n", sum);
}
