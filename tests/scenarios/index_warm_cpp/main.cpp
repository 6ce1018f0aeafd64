// A cache by key: it fills up with all the keys there are, and then every request finds its own.
#include <cstdio>
#include <string>
#include <unordered_map>

#ifndef SCALE
#define SCALE 1
#endif

static std::unordered_map<unsigned, std::string> pages;

static const std::string &page(unsigned key)
{
	auto found = pages.find(key);

	if (found == pages.end())
		found = pages.emplace(key, std::string(30000 * SCALE, char('a' + key % 26))).first;
	return found->second;
}

int main()
{
	unsigned x = 1, sum = 0;

	for (int i = 0; i < 300000; i++) {
		x = x * 1664525u + 1013904223u;
		std::string copy = page((x >> 8) % 1500).substr(0, 2000);

		sum += unsigned(copy[3]);
	}
	std::printf("%u\n", sum);
	return 0;
}
