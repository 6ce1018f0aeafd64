/* attached_cxx.cc - a C++ program that attaches the library itself: LIBRARY DIRECTORY. Then makes
 * 1000 vectors of 3000 bytes and as many nodes, and throws and catches between them. */
#include <cstdio>
#include <cstring>
#include <dlfcn.h>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

int main(int argc, char **argv)
{
	std::vector<std::unique_ptr<std::vector<char>>> kept;
	std::map<int, std::string> nodes;
	auto old = std::make_unique<std::vector<char>>(5000);

	if (argc < 3)
		return 2;
	std::string settings = std::string("WHYOOM_DIR=") + argv[2];
	void *handle = dlopen(argv[1], RTLD_NOW);

	if (!handle)
		return 3;
	auto attach =
	    reinterpret_cast<int (*)(const char *, size_t)>(dlsym(handle, "whyoom_attach"));
	if (attach(settings.c_str(), settings.size() + 1))
		return 4;
	old.reset();
	for (int i = 0; i < 1000; i++) {
		kept.push_back(std::make_unique<std::vector<char>>(3000));
		nodes[i] = std::string(100, 'x');
		try {
			if (i % 10 == 0)
				throw std::runtime_error("thrown");
		} catch (const std::exception &) {
			nodes[i] += '!';
		}
	}
	return 0;
}
