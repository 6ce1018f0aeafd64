// A session for each user, which nothing ever erases.
#include <cstdio>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#ifndef SCALE
#define SCALE 1
#endif

struct Session {
	std::vector<double> features;
	std::string name;
};

static std::unordered_map<int, std::unique_ptr<Session>> sessions;

__attribute__((noinline)) static void log_in(int user)
{
	auto s = std::make_unique<Session>();
	s->features.resize(600 * SCALE);
	s->name = "user number " + std::to_string(user) + " of this rather small server";
	sessions[user] = std::move(s);
}

__attribute__((noinline)) static double score(int user)
{
	std::vector<double> scratch(20000, user);
	return scratch[user % 20000] + sessions[user]->features[0];
}

int main()
{
	double sum = 0;
	for (int user = 0; user < 10000000; user++) {
		log_in(user);
		sum += score(user);
	}
	printf("%f\n", sum);
}
