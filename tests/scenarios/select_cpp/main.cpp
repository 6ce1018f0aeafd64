// Queries for a few rows, and one that selects everything, row by row.
#include <cstdio>
#include <string>
#include <vector>

#ifndef SCALE
#define SCALE 1
#endif

struct Row {
	std::string key, value;
};

__attribute__((noinline)) static Row fetch(long i)
{
	return {"key of row " + std::to_string(i) + " in the table",
	    std::string((300 + i % 200) * SCALE, 'v')};
}

__attribute__((noinline)) static std::vector<Row> select(long count)
{
	std::vector<Row> rows;

	for (long i = 0; i < count; i++)
		rows.push_back(fetch(i));
	return rows;
}

__attribute__((noinline)) static size_t query(long count)
{
	return select(count).size();
}

int main()
{
	size_t sum = 0;

	for (int i = 0; i < 20000; i++)
		sum += query(3 + i % 5);
	sum += query(1L << 40);
	printf("%zu\n", sum);
}
