// Each picture that comes has another size, and all of them stay.
#include <cstdlib>
#include <string>
#include <vector>

#ifndef SCALE
#define SCALE 1
#endif

static std::vector<std::string> pictures;

static void receive(size_t bytes)
{
	pictures.emplace_back(bytes, 'p');
}

int main()
{
	unsigned state = 1;

	for (;;) {
		state = state * 1103515245 + 12345;
		receive(SCALE * (60000 + (state >> 8) % 300000));
	}
}
