/* threads.c - see threads.h. */
#include "detect/threads.h"

#include <string.h>

/* What further ones hold is left out, the sum included. */
#define THREADS_MAX 256u

struct tally {
	const struct scene *scene;
	bool (*of)(const struct scene *scene, const struct place *p);
	uint64_t since_ns;
	uint32_t threads[THREADS_MAX];
	uint64_t bytes[THREADS_MAX];
	uint32_t count;
};

static int add_block(void *arg, const struct block *b)
{
	struct tally *t = arg;
	const struct places *places = t->scene->places;
	uint32_t i = 0, at = b->stack < places->limits[SITE_HEAP] ? places->of[SITE_HEAP][b->stack]
								  : PLACE_NONE;

	if (at == PLACE_NONE || b->birth_ns < t->since_ns ||
	    (t->of && !t->of(t->scene, &places->list[at])))
		return 0;
	while (i < t->count && t->threads[i] != b->thread)
		i++;
	if (i == THREADS_MAX)
		return 0;
	if (i == t->count) {
		t->threads[t->count] = b->thread;
		t->bytes[t->count++] = 0;
	}
	t->bytes[i] += b->size;
	return 0;
}

bool threads_held(const struct scene *scene,
    bool (*of)(const struct scene *scene, const struct place *p), uint64_t since_ns,
    struct threads_held *out)
{
	struct tally t = {.scene = scene, .of = of, .since_ns = since_ns};

	memset(out, 0, sizeof(*out));
	if (!scene->each_live || scene->each_live(scene, add_block, &t))
		return false;
	for (uint32_t i = 0; i < t.count; i++) {
		out->sum += t.bytes[i];
		if (t.bytes[i] > out->largest)
			out->largest = t.bytes[i];
	}
	for (uint32_t i = 0; i < t.count; i++)
		out->alike += t.bytes[i] >= out->largest / 8;
	return out->sum > 0;
}
