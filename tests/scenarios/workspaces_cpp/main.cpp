// A solver with a workspace for each of the largest batch's matrices, taken before the first one
// comes.
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <new>
#include <vector>

#ifndef SCALE
#define SCALE 1
#endif

constexpr size_t MAX_BATCH = 64, SIDE = 1000;

class Solver
{
	std::vector<std::unique_ptr<std::vector<double>>> workspaces;

      public:
	void reserve()
	{
		for (size_t i = 0; i < MAX_BATCH; i++)
			workspaces.push_back(
			    std::make_unique<std::vector<double>>(SIDE * SIDE * SCALE, 1.0));
	}

	double solve(unsigned number)
	{
		std::vector<double> right(SIDE, number);
		auto &w = *workspaces[number % 4];

		for (size_t i = 0; i < SIDE; i++)
			w[i * SIDE] += right[i];
		return w[0];
	}
};

int main()
{
	Solver solver;
	double sum = 0;

	solver.reserve();
	for (unsigned i = 0; i < 3000; i++)
		sum += solver.solve(i);
	std::printf("%g\n", sum);
	return 0;
}
