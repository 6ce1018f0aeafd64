// Answers from passages: the prompt is made of all that were found, and the model keeps keys and
// values for each of its tokens until it has answered. Mostly few are found; then a word that
// stands everywhere is asked for. No request is larger than the one before it by habit.
#include <cstdio>
#include <string>
#include <vector>

#ifndef SCALE
#define SCALE 1
#endif

static std::string render(int passages)
{
	std::string prompt = "Use only this:\n";

	for (int i = 0; i < passages; i++)
		prompt +=
		    "Passage " + std::to_string(i) + ": " + std::string(500 + i % 200, 'w') + "\n";
	return prompt;
}

static std::vector<float> prefill(const std::string &prompt)
{
	return std::vector<float>(prompt.size() / 4 * 192 * SCALE, 0.25f);
}

static float answer(int passages)
{
	std::string prompt = render(passages);
	std::vector<float> cache = prefill(prompt);

	return cache.back();
}

int main()
{
	static const int found[] = {4, 9, 2, 30, 12, 50, 7, 3, 44, 19, 5, 28};
	float sum = 0;

	for (int i = 0; i < 120; i++)
		sum += answer(found[i % 12]);
	sum += answer(3800);
	std::printf("%.1f\n", sum);
}
