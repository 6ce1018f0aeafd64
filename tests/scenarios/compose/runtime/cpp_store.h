/* cpp_store.h - a store in C++: containers of the library, blocks by pointer. `holder` says what a
 * block points to, `filled(n)` makes one, `bytes_of(b)` says its size. */
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <new>

typedef holder *block;
static std::mutex store_lock;

struct store {
	std::deque<block> blocks;
	std::map<long, block> placed;
};
#define NONE() nullptr
#define SIZE(b) ((b) ? bytes_of(b) : 0)
#define DROP(b) delete (b)
#define store_keep(s, b)                                                                           \
	do {                                                                                       \
		block added = (b);                                                                 \
		std::lock_guard<std::mutex> held(store_lock);                                      \
		(s)->blocks.push_back(added);                                                      \
	} while (0)
#define store_put(s, k, b)                                                                         \
	do {                                                                                       \
		block added = (b);                                                                 \
		std::lock_guard<std::mutex> held(store_lock);                                      \
		block &there = (s)->placed[k];                                                     \
		delete there;                                                                      \
		there = added;                                                                     \
	} while (0)

__attribute__((unused)) static void store_pop(store *s)
{
	std::lock_guard<std::mutex> held(store_lock);
	if (s->blocks.empty())
		return;
	delete s->blocks.front();
	s->blocks.pop_front();
}

__attribute__((unused)) static void store_pop_last(store *s)
{
	std::lock_guard<std::mutex> held(store_lock);
	if (s->blocks.empty())
		return;
	delete s->blocks.back();
	s->blocks.pop_back();
}

__attribute__((unused)) static void store_clear(store *s)
{
	std::lock_guard<std::mutex> held(store_lock);
	for (block b : s->blocks)
		delete b;
	for (auto &p : s->placed)
		delete p.second;
	s->blocks.clear();
	s->placed.clear();
}

__attribute__((unused)) static block store_item(store *s, long place)
{
	std::lock_guard<std::mutex> held(store_lock);
	auto found = s->placed.find(place);
	if (found != s->placed.end())
		return found->second;
	return place < (long)s->blocks.size() ? s->blocks[(size_t)place] : nullptr;
}

__attribute__((unused)) static long store_len(store *s)
{
	std::lock_guard<std::mutex> held(store_lock);
	return (long)(s->blocks.size() + s->placed.size());
}

__attribute__((unused)) static long store_total(store *s)
{
	std::lock_guard<std::mutex> held(store_lock);
	long sum = 0;
	for (block b : s->blocks)
		sum += bytes_of(b);
	for (auto &p : s->placed)
		sum += SIZE(p.second);
	return sum;
}
