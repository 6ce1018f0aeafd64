// C++ under load: containers, exceptions and threads that come and go, checked as they go.
#include <cstdio>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <unistd.h>
#include <vector>

static volatile bool stop;

static unsigned long work(unsigned seed)
{
	std::map<unsigned, std::shared_ptr<std::string>> kept;
	unsigned long rounds = 0;

	while (!stop) {
		seed = seed * 1664525u + 1013904223u;
		unsigned key = seed >> 24;
		auto found = kept.find(key);
		if (found != kept.end() && *found->second != std::string(key + 20, 'x'))
			throw std::logic_error("a string");
		kept[key] = std::make_shared<std::string>(key + 20, 'x');
		try {
			if (seed & 256)
				throw std::runtime_error(std::to_string(seed));
		} catch (const std::runtime_error &e) {
			if (std::stoul(e.what()) != seed)
				throw std::logic_error("an exception");
		}
		rounds++;
	}
	return rounds;
}

static void brief()
{
	while (!stop)
		std::thread([] { std::vector<int> some(1000, 7); }).join();
}

int main()
{
	unsigned long sum = 0;
	std::vector<std::thread> threads;
	std::vector<unsigned long> rounds(3);
	char c;

	for (unsigned i = 0; i < rounds.size(); i++)
		threads.emplace_back([&rounds, i] { rounds[i] = work(i + 1); });
	threads.emplace_back(brief);
	std::puts("ready");
	std::fflush(stdout);
	while (read(0, &c, 1) > 0)
		;
	stop = true;
	for (auto &t : threads)
		t.join();
	for (unsigned long r : rounds)
		sum += r;
	std::printf("right after %lu rounds\n", sum);
	return 0;
}
