/* Loads a model shard by shard, each tensor read in half precision into a buffer that is used again
 * and widened from there; then answers. */
#include <cstdio>
#include <cstdlib>
#include <map>
#include <string>
#include <vector>

#ifndef SCALE
#define SCALE 1
#endif

using Weights = std::map<std::string, std::vector<float>>;

static std::vector<float> read_tensor(FILE *f, size_t count, std::vector<unsigned short> &half)
{
	std::vector<float> values(count);

	half.resize(count);
	if (fread(half.data(), 2, count, f) != count)
		abort();
	for (size_t i = 0; i < count; i++)
		values[i] = (float)half[i] * 1e-4f;
	return values;
}

static void load_shard(FILE *f, int shard, Weights &weights)
{
	std::string name = "shard." + std::to_string(shard);
	std::vector<unsigned short> half;

	rewind(f);
	weights[name + ".wide"] = read_tensor(f, (10u << 20) * SCALE, half);
	weights[name + ".narrow"] = read_tensor(f, (3u << 20) * SCALE, half);
}

static float answer(const Weights &weights, int number)
{
	std::vector<float> x(4096, (float)number);
	float sum = 0;

	for (const auto &[name, values] : weights)
		for (size_t i = 0; i < x.size(); i += 64)
			sum += x[i] * values[i];
	return sum;
}

int main()
{
	FILE *f = tmpfile();
	Weights weights;
	float sum = 0;

	if (!f || fseek(f, (40l << 20) * SCALE, SEEK_SET) || fputc(0, f) == EOF)
		return 2;
	for (int shard = 0; shard < 12; shard++)
		load_shard(f, shard, weights);
	for (int number = 0; number < 2000; number++)
		sum += answer(weights, number);
	return sum < 0;
}
