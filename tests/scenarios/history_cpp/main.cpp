// A conversation in standard containers: the prompt is one string made of all messages.
#include <iostream>
#include <string>
#include <vector>

#ifndef SCALE
#define SCALE 1
#endif

struct Conversation {
	std::vector<std::string> messages;

	__attribute__((noinline)) void add(int turn)
	{
		messages.push_back(
		    std::string(2000000 * SCALE + turn % 5 * 700, char('a' + turn % 26)));
	}

	__attribute__((noinline)) std::string render() const
	{
		size_t bytes = 0;
		for (const auto &m : messages)
			bytes += m.size() + 1;
		std::string prompt;
		prompt.reserve(bytes);
		for (const auto &m : messages) {
			prompt += m;
			prompt += '\n';
		}
		return prompt;
	}
};

__attribute__((noinline)) static size_t complete(const std::string &prompt)
{
	std::string tokens(50000, ' ');
	for (size_t i = 0; i < tokens.size() && i < prompt.size(); i++)
		tokens[i] = prompt[i];
	return tokens.size();
}

int main()
{
	Conversation talk;
	size_t sum = 0;

	for (int turn = 0; turn < 100000; turn++) {
		talk.add(turn);
		sum += complete(talk.render());
	}
	std::cout << sum << "\n";
}
