// Small questions are answered from a few rows each; then one asks for all rows, and they are made
// one by one: as many small blocks as a leak would leave behind, by one request.
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

__attribute__((noinline)) static std::list<Row> fetch(size_t count)
{
	std::list<Row> rows;
	for (size_t i = 0; i < count; i++) {
		rows.emplace_back();
		rows.back().name = "row number " + std::to_string(i) + " of the catalogue";
		rows.back().values[0] = double(i);
	}
	return rows;
}

__attribute__((noinline)) static size_t answer(const std::string &question)
{
	if (question == "everything, please, from the beginning")
		return fetch(100000000).size();
	return fetch(question.size() % 40).size();
}

int main()
{
	size_t sum = 0;
	for (int i = 0; i < 400; i++)
		sum += answer("what is known about customer number " + std::to_string(i * i));
	sum += answer("everything, please, from the beginning");
	printf("%zu\n", sum);
}
