// A history that is trimmed to its last messages: a sawtooth, and healthy.
#include <cstdio>
#include <string>
#include <vector>

static std::vector<std::string> history;

__attribute__((noinline)) static std::string render()
{
	std::string prompt;
	for (const auto &m : history)
		prompt += m;
	return prompt;
}

int main()
{
	size_t sum = 0;
	for (int turn = 0; turn < 3000; turn++) {
		history.push_back(std::string(40000, 'x'));
		if (history.size() > 60)
			history.erase(history.begin(), history.begin() + 50);
		sum += render().size();
	}
	printf("%zu\n", sum);
}
