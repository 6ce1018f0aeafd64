// grow THREADS: as grow.c, in C++, with threads that come and go.
#include <cstdio>
#include <cstdlib>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <unistd.h>
#include <vector>

static volatile bool stop;

static void work()
{
	while (!stop) {
		std::map<int, std::string> some;

		for (int i = 0; i < 500; i++)
			some[i] = std::string(static_cast<size_t>(30 + i), 'x');
		if (some[400].back() != 'x')
			_exit(3);
		std::thread([] { std::vector<int> others(1000, 7); }).join();
	}
}

int main(int argc, char **argv)
{
	std::vector<std::unique_ptr<std::string>> kept;
	std::vector<std::thread> threads;
	char line[64];
	unsigned rounds = 0;

	for (int i = 0; i < (argc > 1 ? std::atoi(argv[1]) : 1); i++)
		threads.emplace_back(work);
	std::puts("ready");
	std::fflush(stdout);
	for (; std::fgets(line, sizeof(line), stdin); rounds++) {
		size_t bytes = 0;

		for (size_t i = 0; i < 1000; i++) {
			kept.push_back(std::make_unique<std::string>(20000 + i, 'y'));
			bytes += kept.back()->capacity() + 1;
		}
		std::printf("grew %zu\n", bytes);
		std::fflush(stdout);
	}
	stop = true;
	for (auto &t : threads)
		t.join();
	std::printf("right after %u rounds\n", rounds);
	return 0;
}
