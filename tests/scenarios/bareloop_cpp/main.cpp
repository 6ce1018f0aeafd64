// Each document that comes is kept with its vector, and nothing is ever released.
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#ifndef SCALE
#define SCALE 1
#endif

struct Document {
	std::string body;
	std::vector<float> vector;
};

static std::unordered_map<long, Document> documents;

__attribute__((noinline)) static void ingest(long number)
{
	Document document;

	document.body = std::string((1000 + number * 7919 % 900) * SCALE, 'x');
	document.vector.resize(768 * SCALE);
	documents[number] = std::move(document);
}

int main()
{
	for (long number = 0;; number++)
		ingest(number);
}
