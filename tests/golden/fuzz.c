/* fuzz.c - damages traces at random, reads them to the end with stacks and names, and builds a
 * model, whose invariants must hold. Nothing is compared: the sanitizers, the clock and the
 * memory limit judge. fuzz SECONDS SEED TRACE... A crash names the seed of its round; `fuzz 0
 * SEED TRACE` repeats that round alone. */
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "model/space/space_map.h"
#include "trace/reader.h"

static uint64_t state;

static uint64_t draw(uint64_t below)
{
	state = state * 6364136223846793005ull + 1442695040888963407ull;
	return (state >> 20) % below;
}

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* A position worth damaging: the file's header, or a chunk's header or its first bytes. */
static size_t place(size_t bytes)
{
	size_t slots = bytes / TRACE_SLOT_BYTES + 1, slot = draw(slots) * TRACE_SLOT_BYTES, span;

	switch (draw(8)) {
	case 0:
		span = 272;
		slot = 0;
		break;
	case 1:
		span = TRACE_SLOT_BYTES;
		break;
	case 2:
	case 3:
		span = 64;
		break;
	default:
		span = 1200;
		break;
	}
	return slot + draw(span) < bytes ? slot + draw(span) : bytes - 1;
}

static void damage(uint8_t *data, size_t *bytes)
{
	static const uint64_t odd[] = {0, 1, 0x7f, 0x80, 0xff, 0xffff, 1u << 16, 0x7fffffff,
	    UINT32_MAX, 1ull << 40, INT64_MAX, UINT64_MAX};
	uint64_t value;
	size_t at, other, n;

	for (uint64_t times = 1 + draw(6); times; times--) {
		at = place(*bytes);
		switch (draw(6)) {
		case 0:
			data[at] ^= (uint8_t)(1u << draw(8));
			break;
		case 1:
			data[at] = (uint8_t)draw(256);
			break;
		case 2: /* an unexpected number, in some width */
			value = odd[draw(sizeof(odd) / sizeof(odd[0]))];
			n = (size_t)1 << draw(4);
			at &= ~(n - 1);
			if (at + n <= *bytes)
				memcpy(data + at, &value, n);
			break;
		case 3: /* a piece from elsewhere */
			other = place(*bytes);
			n = 1 + draw(64);
			if (at + n <= *bytes && other + n <= *bytes)
				memmove(data + at, data + other, n);
			break;
		case 4: /* a whole chunk from elsewhere */
			at &= ~(size_t)(TRACE_SLOT_BYTES - 1);
			other = place(*bytes) & ~(size_t)(TRACE_SLOT_BYTES - 1);
			if (at && at + TRACE_SLOT_BYTES <= *bytes &&
			    other + TRACE_SLOT_BYTES <= *bytes)
				memmove(data + at, data + other, TRACE_SLOT_BYTES);
			break;
		default:
			if (!draw(8))
				*bytes = 1 + draw(*bytes);
			else
				data[at]++;
			break;
		}
	}
}

/* The model of the rest, and a map of each space. */
static void model_everything(struct trace *t)
{
	struct feed feed = feed_of_trace(t);
	struct event event;
	struct model *m;
	struct err err;

	if (model_new(feed, &m, &err) || feed.rewind(feed.self, &err))
		abort();
	while (feed.next(feed.self, &event, &err) > 0)
		if (model_apply(m, &event, &err))
			break;
	model_finish(m);
	model_check(m);
	spaces_check(m->spaces);
	for (uint32_t i = 0; m->spaces && i < m->spaces->count; i++) {
		struct space_map map;

		if (space_map_make(m, m->spaces->list[i], 1 << 20, &map))
			abort();
		space_map_fini(&map);
	}
	model_free(m);
}

static void read_everything(const char *path)
{
	const struct symbol *symbols;
	struct err err;
	struct trace *t;
	struct event event;

	if (trace_open(path, &t, &err))
		return;
	for (int pass = 0; pass < 2; pass++) {
		while (trace_next(t, &event, &err) > 0)
			if (event.stack >= trace_stack_limit(t))
				abort();
		trace_rewind(t);
	}
	model_everything(t);
	for (uint32_t i = 0; i < trace_stack_limit(t) && i < 1000; i++)
		trace_symbols(t, i, &symbols);
	trace_is_running(t);
	trace_close(t);
}

static void round_of(uint64_t seed, char **paths, int count)
{
	static char name[64];
	uint8_t *data;
	size_t bytes;
	FILE *f;
	int fd;

	state = seed;
	draw(2);
	f = fopen(paths[draw((uint64_t)count)], "rb");
	if (!f)
		exit(2);
	fseek(f, 0, SEEK_END);
	bytes = (size_t)ftell(f);
	rewind(f);
	data = malloc(bytes);
	if (!data || fread(data, 1, bytes, f) != bytes)
		exit(2);
	fclose(f);
	damage(data, &bytes);
	fd = memfd_create("fuzz", 0);
	if (fd < 0 || write(fd, data, bytes) != (ssize_t)bytes)
		exit(2);
	snprintf(name, sizeof(name), "/proc/self/fd/%d", fd);
	read_everything(name);
	close(fd);
	free(data);
}

int main(int argc, char **argv)
{
	double end = now() + (argc > 1 ? atof(argv[1]) : 0), longest = 0;
	uint64_t seed = argc > 2 ? strtoull(argv[2], NULL, 0) : 1, rounds = 0;
	char text[64];

	if (argc < 4)
		return 2;
	do {
		double begin = now();

		/* Printed before, since a crash prints no more; the last line counts. */
		if (isatty(2) || rounds % 64 == 0) {
			int n = snprintf(text, sizeof(text), "seed %" PRIu64 "\r", seed);
			if (write(2, text, (size_t)n) < 0)
				return 2;
		}
		alarm(20); /* a hang is a failure */
		round_of(seed++, argv + 3, argc - 3);
		longest = now() - begin > longest ? now() - begin : longest;
		rounds++;
	} while (now() < end);
	printf("%" PRIu64 " rounds, the longest took %.2f s\n", rounds, longest);
	return 0;
}
