/* cpp_vector.h - a block is a std::vector of doubles. */
#include "common.h"
#include <vector>

typedef std::vector<double> holder;
#define MAKE(n) new holder((size_t)(n) / sizeof(double) + 1, 1.0)
#define bytes_of(b) ((long)((b)->size() * sizeof(double)))
#include "cpp_store.h"
