/* cxx.cc - C++: new and delete of every form, exceptions thrown through frames that allocate,
 * bad_alloc as without the recorder, thread_local objects whose destructors allocate. */
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <new>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

struct Guard {
	std::string s;
	explicit Guard(int i) : s(static_cast<size_t>(100 + i), 'x')
	{
	}
	~Guard()
	{
		std::string last(200, 'y');
		if (last[0] != 'y')
			abort();
	}
};
static thread_local Guard per_thread(7);

__attribute__((noinline)) static int thrower(int n)
{
	Guard g(n);
	if (n == 0)
		throw std::runtime_error(std::string(300, 'e'));
	return thrower(n - 1) + 1;
}

struct alignas(256) Wide {
	char c[512];
};

int main()
{
	int caught = 0;
	std::map<std::string, std::vector<int>> m;

	for (int i = 0; i < 5000; i++) {
		try {
			thrower(i % 40);
		} catch (const std::exception &e) {
			caught += strlen(e.what()) == 300;
		}
		m[std::to_string(i % 500) + std::string(40, 'k')].push_back(i);
	}
	std::unique_ptr<Wide> w(new Wide);
	if (reinterpret_cast<uintptr_t>(w.get()) % 256)
		return 3;
	delete[] new (std::nothrow) char[100000];
	try {
		volatile size_t n = static_cast<size_t>(1) << 62;
		char *volatile p = new char[n];
		p[0] = 1;
		return 4;
	} catch (const std::bad_alloc &) {
		caught++;
	}
	volatile size_t huge = static_cast<size_t>(1) << 61;
	if (new (std::nothrow) char[huge] != nullptr)
		return 5;
	std::vector<std::thread> threads;
	for (int i = 0; i < 8; i++)
		threads.emplace_back([] { per_thread.s += "z"; });
	for (auto &t : threads)
		t.join();
	std::printf("%d %zu\n", caught, m.size());
	return 0;
}
