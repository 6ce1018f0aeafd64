// A service that parses documents into trees, answers from them and lets them go. Then comes the
// archive: one document as large as thousands.
#include <cstdio>
#include <map>
#include <memory>
#include <string>
#include <vector>

#ifndef SCALE
#define SCALE 1
#endif

struct Node {
	std::string tag, text;
	std::map<std::string, std::string> attributes;
	std::vector<std::unique_ptr<Node>> children;
};

static std::unique_ptr<Node> make_node(int number)
{
	auto node = std::make_unique<Node>();

	node->tag = "paragraph-number-" + std::to_string(number);
	node->text = std::string(120 + number % 90, 'x');
	node->attributes["id"] = "identifier-of-paragraph-" + std::to_string(number);
	return node;
}

static std::unique_ptr<Node> parse(int paragraphs)
{
	auto root = make_node(0);
	Node *at = root.get();

	for (int i = 1; i < paragraphs; i++) {
		at->children.push_back(make_node(i));
		if (i % 400 == 0)
			at = root.get();
		else if (i % 40 == 0)
			at = at->children.back().get();
	}
	return root;
}

static size_t answer(int paragraphs)
{
	auto document = parse(paragraphs);

	return document->children.size();
}

int main()
{
	size_t sum = 0;

	for (int i = 0; i < 60; i++)
		sum += answer(SCALE * (50 + i * 37 % 900));
	sum += answer(SCALE * 150000);
	std::printf("%zu\n", sum);
}
