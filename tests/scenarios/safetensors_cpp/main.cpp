// Reads a model in the manner of safetensors: a table of names and offsets, then tensor after
// tensor, each converted on the way.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <new>
#include <string>
#include <unistd.h>
#include <vector>

#ifndef SCALE
#define SCALE 1
#endif

struct Tensor {
	std::vector<float> data;
};

class Model
{
	std::map<std::string, Tensor> tensors;

      public:
	void load(FILE *file);

	float forward(size_t token)
	{
		std::vector<float> x(512, float(token));
		const auto &e = tensors["embedding"].data;

		for (size_t i = 0; i < x.size(); i++)
			x[i] += e[(token * 512 + i) % e.size()];
		return x[7];
	}
};

static size_t count_of(const std::string &name)
{
	if (name == "embedding" || name == "head")
		return 4000000ul * SCALE;
	return name.find("mlp") != std::string::npos ? 2000000ul * SCALE : 700000ul * SCALE;
}

void Model::load(FILE *file)
{
	std::vector<std::string> names{"embedding"};

	for (int layer = 0; layer < 24; layer++)
		for (const char *part : {"query", "key", "value", "out", "mlp.up", "mlp.down"})
			names.push_back("layer" + std::to_string(layer) + "." + part);
	names.push_back("head");
	for (const auto &name : names) {
		std::vector<signed char> packed(count_of(name));
		Tensor &t = tensors[name];

		if (std::fread(packed.data(), 1, packed.size(), file) != packed.size())
			std::exit(2);
		t.data.assign(packed.begin(), packed.end());
	}
}

int main()
{
	FILE *file = std::tmpfile();
	Model model;
	float sum = 0;

	if (!file || ftruncate(fileno(file), 400000000l * SCALE))
		return 2;
	model.load(file);
	for (size_t token = 0; token < 500; token++)
		sum += model.forward(token);
	std::printf("%g\n", sum);
	return 0;
}
