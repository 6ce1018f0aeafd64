/* templates.cc - a program that leans on the C++ standard library, for a compiler: many headers,
 * containers of containers, algorithms, regular expressions, futures, variants. */
#include <algorithm>
#include <array>
#include <chrono>
#include <deque>
#include <fstream>
#include <functional>
#include <future>
#include <iomanip>
#include <iostream>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <numeric>
#include <optional>
#include <queue>
#include <random>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <thread>
#include <tuple>
#include <unordered_map>
#include <unordered_set>
#include <variant>
#include <vector>

namespace
{

template <int N> struct record {
	std::string name;
	std::map<std::string, std::vector<std::array<int, N>>> rows;
	std::unordered_map<int, std::list<std::string>> index;
	std::variant<int, double, std::string, std::vector<std::optional<int>>> value;
	std::tuple<int, std::string, std::set<std::pair<int, std::string>>> key;
};

template <int N> struct store {
	std::vector<std::shared_ptr<record<N>>> records;
	std::priority_queue<std::pair<double, int>> order;
	std::deque<std::function<int(const record<N> &)>> steps;

	int fill(std::mt19937 &random)
	{
		for (int i = 0; i < N * 3; i++) {
			auto r = std::make_shared<record<N>>();
			std::ostringstream text;
			text << std::setw(8) << i << ':' << N;
			r->name = text.str();
			r->rows[r->name].push_back({});
			r->index[i % 7].push_back(r->name + "x");
			if (i % 3)
				r->value = r->name;
			else
				r->value = std::vector<std::optional<int>>{i, std::nullopt, N};
			std::get<2>(r->key).insert({i, r->name});
			order.push({std::uniform_real_distribution<>(0, N)(random), i});
			records.push_back(std::move(r));
		}
		return static_cast<int>(records.size());
	}

	int sift(const std::regex &pattern)
	{
		std::stable_sort(records.begin(), records.end(), [](const auto &a, const auto &b) {
			return std::tie(a->name, a->key) < std::tie(b->name, b->key);
		});
		auto end = std::remove_if(records.begin(), records.end(),
		    [&](const auto &r) { return std::regex_match(r->name, pattern); });
		records.erase(end, records.end());
		return std::accumulate(
		    records.begin(), records.end(), 0, [](int sum, const auto &r) {
			    return sum + std::visit(
					     [](const auto &v) -> int {
						     if constexpr (std::is_arithmetic_v<
								       std::decay_t<decltype(v)>>)
							     return static_cast<int>(v);
						     else
							     return static_cast<int>(v.size());
					     },
					     r->value);
		    });
	}

	int run()
	{
		steps.push_back(
		    [this](const record<N> &r) { return int(r.rows.size() + order.size()); });
		steps.push_back([](const record<N> &r) { return int(r.index.count(N)); });
		int sum = 0;
		for (auto &step : steps)
			for (auto &r : records)
				sum += step(*r);
		return sum;
	}
};

template <int N> int round(std::mt19937 &random)
{
	store<N> s;
	std::regex pattern("([0-9]+):(" + std::to_string(N) + ")|x+(y|z)*");
	auto later = std::async(std::launch::deferred, [&] { return s.fill(random); });
	int sum = later.get() + s.sift(pattern) + s.run();
	std::unordered_set<std::string> names;
	for (auto &r : s.records)
		names.insert(r->name);
	std::multimap<std::size_t, std::string, std::greater<>> sizes;
	for (auto &n : names)
		sizes.emplace(n.size(), n);
	for (auto &[size, name] : sizes)
		sum += static_cast<int>(size * name[0]);
	return sum;
}

template <int... N> int rounds(std::mt19937 &random, std::integer_sequence<int, N...>)
{
	return (round<N + 1>(random) + ... + 0);
}

} // namespace

int main()
{
	std::mt19937 random(42);
	std::cout << rounds(random, std::make_integer_sequence<int, INSTANCES>()) << '\n';
	return 0;
}
