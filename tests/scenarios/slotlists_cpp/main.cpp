// An inference server in the manner of llama.cpp's: weights by name, and a cache for each of its
// slots, of keys and values for each layer, made for the longest context before the first request.
#include <cstdio>
#include <map>
#include <memory>
#include <string>
#include <vector>

#ifndef SCALE
#define SCALE 1
#endif

struct Config {
	size_t layers = 12, width = 256 * SCALE, context = 4096, slots = 10, vocabulary = 2000;
};

struct Model {
	std::map<std::string, std::vector<float>> tensors;

	explicit Model(const Config &c)
	{
		tensors["embed"] = std::vector<float>(c.vocabulary * c.width, 0.01f);
		for (size_t l = 0; l < c.layers; l++)
			for (const char *name : {"q", "k", "v", "o"})
				tensors["layer." + std::to_string(l) + "." + name] =
				    std::vector<float>(c.width * c.width, 0.01f);
	}
};

struct Cache {
	std::vector<std::vector<float>> keys, values;

	explicit Cache(const Config &c)
	{
		for (size_t l = 0; l < c.layers; l++) {
			keys.emplace_back(c.context * c.width);
			values.emplace_back(c.context * c.width);
		}
	}
};

struct Slot {
	size_t id, used;
	std::unique_ptr<Cache> cache;
};

class Server
{
	Config config;
	Model model{config};
	std::vector<Slot> slots;

      public:
	Server()
	{
		for (size_t i = 0; i < config.slots; i++)
			slots.push_back({i, 0, std::make_unique<Cache>(config)});
	}

	float answer(size_t number, const std::string &prompt)
	{
		Slot &slot = slots[number % slots.size()];
		std::vector<float> logits(config.vocabulary);

		size_t length = prompt.size() < config.context ? prompt.size() : config.context;

		for (slot.used = 0; slot.used < length; slot.used++)
			for (auto &k : slot.cache->keys)
				k[slot.used * config.width] = logits[slot.used % logits.size()];
		return logits[0];
	}
};

int main()
{
	Server server;
	float sum = 0;

	for (size_t n = 0; n < 2000; n++)
		sum += server.answer(n, "number " + std::to_string(n) + std::string(n % 500, '?'));
	printf("%f\n", sum);
}
