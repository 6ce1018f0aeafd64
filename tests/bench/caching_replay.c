/* caching_replay.c - caching_replay STREAM MEMORY ROUNDS: puts recorded requests of PyTorch's
 * allocator, as `whyoom replay --through torch` writes them (through_torch.py says how), to its
 * model. Prints events, the nanoseconds of the quickest round, and the peak of reserved memory. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "model/torch/caching_allocator.h"
#include "util/vec.h"

struct op {
	char what;
	bool granted;
	uint64_t serial, size, stream, pool;
};

struct device {
	uint64_t used, room, next;
};

static bool take(void *arg, uint64_t size, uint64_t *address)
{
	struct device *d = arg;

	if (size > d->room || d->used > d->room - size)
		return false;
	d->used += size;
	*address = d->next;
	d->next += size;
	return true;
}

static void give(void *arg, uint64_t address, uint64_t size)
{
	((struct device *)arg)->used -= size;
	(void)address;
}

static bool reserve(void *arg, uint64_t size, uint64_t *address)
{
	struct device *d = arg;

	*address = d->next;
	d->next += size;
	return true;
}

static void unreserve(void *arg, uint64_t address, uint64_t size)
{
	(void)arg, (void)address, (void)size;
}

static bool map_page(void *arg, uint64_t address, uint64_t size)
{
	struct device *d = arg;

	(void)address;
	if (size > d->room || d->used > d->room - size)
		return false;
	d->used += size;
	return true;
}

static VEC(struct op) ops;
static struct caching_block **blocks;

static uint64_t read_ops(const char *path)
{
	FILE *f = fopen(path, "r");
	uint64_t most = 0;
	char line[256];

	if (!f)
		return 0;
	while (fgets(line, sizeof(line), f)) {
		struct op op = {.what = line[0], .granted = true};
		int granted = 1;

		if (op.what == 'a')
			sscanf(line + 2, "%" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64 " %d",
			    &op.serial, &op.size, &op.stream, &op.pool, &granted);
		else if (op.what != 'e')
			sscanf(line + 2, "%" SCNu64, op.what == 'f' ? &op.serial : &op.size);
		op.granted = granted;
		if (op.serial > most)
			most = op.serial;
		if (vec_push(&ops, op))
			exit(1);
	}
	fclose(f);
	return most;
}

static void request(struct caching_allocator *a, const struct op *op)
{
	struct caching_where where = {.pool = op->pool, .stream = op->stream};
	struct caching_block *b = NULL;

	if (caching_allocator_request(a, where, op->size, &b))
		return;
	if (op->granted)
		blocks[op->serial] = b;
	else
		caching_allocator_release(a, b);
}

static uint64_t play(struct caching_allocator *a, struct device *d)
{
	struct timespec from, to;

	clock_gettime(CLOCK_MONOTONIC, &from);
	for (size_t i = 0; i < ops.count; i++) {
		const struct op *op = &ops.items[i];

		if (op->what == 'a') {
			request(a, op);
		} else if (op->what == 'f') {
			if (blocks[op->serial])
				caching_allocator_release(a, blocks[op->serial]);
			blocks[op->serial] = NULL;
		} else if (op->what == 'r') {
			d->room = op->size;
		} else if (op->what == 'e') {
			caching_allocator_flush(a);
		}
	}
	clock_gettime(CLOCK_MONOTONIC, &to);
	return (uint64_t)(to.tv_sec - from.tv_sec) * 1000000000u + (uint64_t)to.tv_nsec -
	       (uint64_t)from.tv_nsec;
}

int main(int argc, char **argv)
{
	uint64_t best = UINT64_MAX, most = argc == 4 ? read_ops(argv[1]) : 0;
	struct caching_stats stats = {0};

	if (!most)
		return 2;
	for (int round = atoi(argv[3]); round > 0; round--) {
		struct device device = {.room = UINT64_MAX, .next = 1ull << 45};
		struct caching_config config = {.memory = strtoull(argv[2], NULL, 10),
		    .allowed = UINT64_MAX,
		    .driver = {&device, take, give, reserve, unreserve, map_page, give}};
		struct caching_allocator *a;
		uint64_t ns;

		caching_settings_init(&config.settings);
		blocks = calloc(most + 1, sizeof(*blocks));
		if (!blocks || caching_allocator_new(&config, &a))
			return 1;
		ns = play(a, &device);
		if (ns < best)
			best = ns;
		caching_allocator_stats(a, &stats);
		caching_allocator_free(a);
		free(blocks);
	}
	printf("%zu %" PRIu64 " %" PRIu64 "\n", ops.count, best, stats.peak_reserved);
	return 0;
}
