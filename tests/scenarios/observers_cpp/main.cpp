// Each view registers with the model and is never taken off its list: a shared_ptr keeps it alive.
#include <cstdio>
#include <memory>
#include <new>
#include <string>
#include <vector>

#ifndef SCALE
#define SCALE 1
#endif

struct View {
	std::string title;
	std::vector<int> cells;

	explicit View(unsigned number)
	    : title("view " + std::to_string(number)), cells(20000 * SCALE, int(number))
	{
	}
};

struct Model {
	std::vector<std::shared_ptr<View>> observers;

	void attach(std::shared_ptr<View> view)
	{
		observers.push_back(std::move(view));
	}
};

static int show(Model &model, unsigned number)
{
	auto view = std::make_shared<View>(number);
	std::vector<int> canvas(100000, view->cells[5]);

	model.attach(view);
	return canvas[7];
}

int main()
{
	Model model;
	int sum = 0;

	for (unsigned number = 0; number < 200000; number++)
		sum += show(model, number);
	std::printf("%d\n", sum);
	return 0;
}
