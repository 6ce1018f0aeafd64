/* cpp_map.h - a block is a std::map of short texts: nodes of 72 bytes and a text of 40 each. */
#include "common.h"
#include <map>
#include <string>

typedef std::map<long, std::string> holder;
#define MAKE(n)                                                                                    \
	({                                                                                         \
		holder *made = new holder;                                                         \
		for (long left = (n) / 128; left >= 0; left--)                                     \
			made->emplace_hint(made->begin(), left, std::string(40, 'x'));             \
		made;                                                                              \
	})
#define bytes_of(b) ((long)((b)->size() * 128))
#include "cpp_store.h"
