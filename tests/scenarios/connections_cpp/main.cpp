// Connections come faster and faster; each keeps its buffers until it is done.
#include <chrono>
#include <cstdio>
#include <thread>
#include <vector>

#ifndef SCALE
#define SCALE 1
#endif

struct Connection {
	std::vector<char> in, out;

	explicit Connection(unsigned number)
	    : in(2000000 * SCALE, char(number)), out(1500000 * SCALE, char(number))
	{
	}

	void transfer()
	{
		std::this_thread::sleep_for(std::chrono::milliseconds(250));
	}
};

static void handle(unsigned number)
{
	Connection c(number);

	c.transfer();
}

int main()
{
	for (unsigned wave = 0; wave < 9; wave++) {
		std::vector<std::thread> threads;

		for (unsigned i = 0; i < 1u << wave; i++)
			threads.emplace_back(handle, i);
		for (auto &t : threads)
			t.join();
	}
	return 0;
}
