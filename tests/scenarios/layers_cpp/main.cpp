/* An engine whose constructor reads tensor by tensor, each in half precision and then widened, all
 * by one function: of a layer four of one shape, and one each of two others. Then it would answer.
 */
#include <cstdint>
#include <cstdio>
#include <map>
#include <string>
#include <vector>

#ifndef SCALE
#define SCALE 1
#endif

class Engine
{
	std::map<std::string, std::vector<float>> tensors;

	std::vector<float> read(const std::string &name, size_t count)
	{
		std::vector<uint16_t> raw(count * SCALE, static_cast<uint16_t>(name.size()));
		std::vector<float> wide;

		wide.reserve(count * SCALE);
		for (uint16_t value : raw)
			wide.push_back(static_cast<float>(value) / 16);
		return wide;
	}

      public:
	explicit Engine(int layers)
	{
		tensors["embed"] = read("embed", 16000 * 256);
		for (int l = 0; l < layers; l++) {
			std::string at = "layers." + std::to_string(l);

			for (const char *part : {".q", ".k", ".v", ".o"})
				tensors[at + part] = read(at + part, 512 * 512);
			tensors[at + ".up"] = read(at + ".up", 512 * 2048);
			tensors[at + ".down"] = read(at + ".down", 2048 * 512);
		}
	}

	float answer(size_t number) const
	{
		float sum = 0;

		for (const auto &[name, values] : tensors)
			sum += values[number % values.size()];
		return sum;
	}
};

int main()
{
	Engine engine(32);
	float sum = 0;

	for (size_t number = 0; number < 2000; number++)
		sum += engine.answer(number);
	return sum < 0;
}
