// index.cc - an index in C++: containers, templates, lambdas.
#include <cstdlib>
#include <map>
#include <memory>
#include <string>
#include <unistd.h>
#include <unordered_map>
#include <vector>

/*@top*/
template <typename T> struct Store {
	std::vector<std::unique_ptr<T>> items;
	T *add(size_t n)
	{
		items.push_back(std::make_unique<T>(n)); /*@store*/
		return items.back().get();
	}
};
struct Document {
	std::string text;
	explicit Document(size_t n) : text(n, 'x')
	{
	} /*@document*/
};
static Store<Document> store;
static std::unordered_map<std::string, std::vector<int>> postings;
static std::vector<std::vector<float>> vectors;

static void embed(size_t dimensions)
{
	vectors.emplace_back(dimensions, 0.5f); /*@vector*/
}

static void post(int id)
{
	for (int i = 0; i < 20; i++)
		postings["word-" + std::to_string((id * 7 + i * 13) % 1500)].push_back(id);
}

static size_t search(const std::string &word)
{
	std::vector<char> scores(64 << 10); /*@scores*/
	auto at = postings.find(word);

	return at == postings.end() ? scores.size() : at->second.size();
}

int main()
{
	size_t sum = 0;

	for (int i = 0; i < 1500; i++) {
		store.add(2000 + (i * 37) % 500);
		embed(256);
		post(i);
		sum += search("word-" + std::to_string(i));
		/*@main*/
	}
	return sum == 1;
}
