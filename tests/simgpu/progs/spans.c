/* Compares spans.c with a plain array, over random inserts and removals. */
#include "simgpu/device/spans.h"

#include "check.h"

enum { N = 300, SPACE = 100000 };

static struct span nodes[N];
static int used[N];
static uint64_t seed = 1;

static unsigned next(unsigned below)
{
	seed = seed * 6364136223846793005ull + 1442695040888963407ull;
	return (unsigned)(seed >> 33) % below;
}

static struct span *slow(uint64_t at, int how, uint64_t size)
{
	struct span *best = NULL;

	for (int i = 0; i < N; i++) {
		struct span *s = &nodes[i];
		int fits = how == 0   ? at >= s->start && at < s->start + s->size
			   : how == 1 ? s->start >= at
			   : how == 2 ? s->start < at
				      : s->size >= size;

		if (used[i] && fits &&
		    (!best || (how == 2 ? s->start > best->start : s->start < best->start)))
			best = s;
	}
	return best;
}

int main(void)
{
	struct spans spans = {0};

	for (int round = 0; round < 20000; round++) {
		int i = (int)next(N);
		uint64_t at = next(SPACE), size = 1 + next(200);

		if (used[i]) {
			spans_remove(&spans, &nodes[i]);
			used[i] = 0;
		} else if (!slow(at, 0, 0) &&
			   (!slow(at, 1, 0) || slow(at, 1, 0)->start >= at + size)) {
			nodes[i].start = at;
			nodes[i].size = size;
			spans_insert(&spans, &nodes[i]);
			used[i] = 1;
		}
		at = next(SPACE);
		size = 1 + next(220);
		if (spans_find(&spans, at) != slow(at, 0, 0) ||
		    spans_find_from(&spans, at) != slow(at, 1, 0) ||
		    spans_find_before(&spans, at) != slow(at, 2, 0) ||
		    spans_first_fit(&spans, size) != slow(0, 3, size)) {
			CHECK(!"it differs from the plain search");
			break;
		}
		passed++;
	}
	CHECK(!spans_find(&spans, UINT64_MAX));
	return done();
}
