/* cpp_string.h - a block is a std::string. */
#include "common.h"
#include <string>

typedef std::string holder;
#define MAKE(n) new holder((size_t)(n), 'x')
#define bytes_of(b) ((long)(b)->size())
#include "cpp_store.h"
