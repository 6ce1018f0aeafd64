#include "util/consecutive.h"

#include <stdlib.h>

/* The most pieces that still save memory and are found quickly: one for this many numbers. */
#define PIECE_PART 64u

static uint32_t count_pieces(const uint32_t *numbers, uint32_t count)
{
	uint32_t pieces = count != 0;

	for (uint32_t i = 1; i < count; i++)
		pieces += numbers[i] != numbers[i - 1] + 1;
	return pieces;
}

int consecutive_init(struct consecutive *c, const uint32_t *numbers, uint32_t count)
{
	uint32_t pieces = count_pieces(numbers, count), n = 0;

	*c = (struct consecutive){0};
	if (!count || pieces > count / PIECE_PART || count == UINT32_MAX)
		return 0;
	c->pieces = malloc((pieces + 1) * sizeof(*c->pieces));
	c->first = malloc((count / CONSECUTIVE_STRIDE + 1) * sizeof(*c->first));
	if (!c->pieces || !c->first) {
		consecutive_fini(c);
		return 0;
	}
	for (uint32_t i = 0; i < count; i++) {
		if (!i || numbers[i] != numbers[i - 1] + 1)
			c->pieces[n++] = (struct consecutive_piece){i, numbers[i]};
		if (i % CONSECUTIVE_STRIDE == 0)
			c->first[i / CONSECUTIVE_STRIDE] = n - 1;
	}
	c->pieces[n] = (struct consecutive_piece){.from = UINT32_MAX};
	return 1;
}

void consecutive_fini(struct consecutive *c)
{
	free(c->pieces);
	free(c->first);
	*c = (struct consecutive){0};
}
