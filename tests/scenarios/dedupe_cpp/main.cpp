// Rows are read in batches and let go; of each the short key stays in a set. A batch's rows are
// longer than the ones before, but the keys go into what these left, and all between them is free
// in large pieces.
#include <cstdio>
#include <new>
#include <string>
#include <unordered_set>
#include <vector>

#ifndef SCALE
#define SCALE 1
#endif

constexpr size_t ROWS = 12000;

static std::unordered_set<std::string> seen;

static std::vector<std::string> read_batch(size_t batch)
{
	std::vector<std::string> rows;

	rows.reserve(ROWS);
	for (size_t i = 0; i < ROWS; i++) {
		rows.emplace_back(1800 * SCALE + batch * 60, char('a' + i % 26));
		seen.insert("customer/" + std::to_string(batch) + "/" + std::to_string(i));
	}
	return rows;
}

int main()
{
	size_t bytes = 0;

	for (size_t batch = 0; batch < 25; batch++)
		for (const auto &row : read_batch(batch))
			bytes += row.size();
	std::printf("%zu %zu\n", seen.size(), bytes);
	return 0;
}
