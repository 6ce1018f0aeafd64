#include "util/vec.h"

#include <stdint.h>
#include <string.h>

int vec_grow(void **items, size_t *capacity, size_t need, size_t size)
{
	size_t cap = *capacity ? *capacity : 8;
	void *grown;

	while (cap < need) {
		if (cap > SIZE_MAX / 2)
			return -ENOMEM;
		cap += cap / 2 + 8;
	}
	if (size && cap > PTRDIFF_MAX / size)
		return -ENOMEM;
	grown = realloc(*items, cap * size);
	if (!grown)
		return -ENOMEM;
	*items = grown;
	*capacity = cap;
	return 0;
}

int vec_extend(void **items, size_t *count, size_t *capacity, size_t need, size_t size)
{
	if (need > *capacity && vec_grow(items, capacity, need, size))
		return -ENOMEM;
	memset((char *)*items + *count * size, 0, (need - *count) * size);
	*count = need;
	return 0;
}
