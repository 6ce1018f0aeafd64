#include "watch/history.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "util/num.h"
#include "util/text/str.h"
#include "util/vec.h"

struct series {
	uint64_t hash;
	struct history_key key; /* its strings are the series' */
	uint64_t first, last; /* looks, counted from 1 */
	uint64_t bytes[HISTORY_POINTS]; /* by look, modulo */
};

struct history {
	uint64_t look; /* 0: none yet */
	double seconds[HISTORY_POINTS]; /* by look, modulo */
	VEC(struct series) series;
};

struct history *history_new(void)
{
	return calloc(1, sizeof(struct history));
}

static void series_fini(struct series *s)
{
	free((char *)s->key.function);
	free((char *)s->key.file);
}

void history_free(struct history *h)
{
	if (!h)
		return;
	for (size_t i = 0; i < h->series.count; i++)
		series_fini(&h->series.items[i]);
	vec_free(&h->series);
	free(h);
}

static void drop(struct history *h, size_t at)
{
	series_fini(&h->series.items[at]);
	h->series.items[at] = h->series.items[--h->series.count];
}

void history_look(struct history *h, double seconds)
{
	h->seconds[++h->look % HISTORY_POINTS] = seconds;
	for (size_t i = 0; i < h->series.count;)
		if (h->series.items[i].last + HISTORY_POINTS <= h->look)
			drop(h, i);
		else
			i++;
}

static uint64_t hash_of(const struct history_key *key)
{
	uint64_t hash = STR_HASH ^ key->pid ^ (uint64_t)key->line << 32 ^ (uint64_t)key->space;

	/* The mark between the two: "ab" in "c" is not "a" in "bc". */
	return str_hash(str_hash(str_hash(hash, key->function), "\n"), key->file);
}

static struct series *find(const struct history *h, const struct history_key *key)
{
	uint64_t hash = hash_of(key);

	for (size_t i = 0; i < h->series.count; i++) {
		struct series *s = &h->series.items[i];

		if (s->hash == hash && s->key.pid == key->pid && s->key.space == key->space &&
		    s->key.line == key->line && str_same(s->key.function, key->function) &&
		    str_same(s->key.file, key->file))
			return s;
	}
	return NULL;
}

static void drop_oldest(struct history *h)
{
	size_t oldest = 0;

	for (size_t i = 1; i < h->series.count; i++)
		if (h->series.items[i].last < h->series.items[oldest].last)
			oldest = i;
	drop(h, oldest);
}

static struct series *make(struct history *h, const struct history_key *key)
{
	struct series s = {.hash = hash_of(key), .key = *key, .first = h->look};

	s.key.function = key->function ? strdup(key->function) : NULL;
	s.key.file = key->file ? strdup(key->file) : NULL;
	if (h->series.count == HISTORY_SERIES_MAX)
		drop_oldest(h);
	if ((key->function && !s.key.function) || (key->file && !s.key.file) ||
	    vec_push(&h->series, s)) {
		series_fini(&s);
		return NULL;
	}
	return &h->series.items[h->series.count - 1];
}

int history_add(struct history *h, const struct history_key *key, uint64_t bytes)
{
	struct series *s = find(h, key);

	if (!s) {
		s = make(h, key);
		if (!s)
			return -ENOMEM;
	} else {
		uint64_t before = s->bytes[s->last % HISTORY_POINTS];

		for (uint64_t look = s->last + 1; look < h->look; look++)
			s->bytes[look % HISTORY_POINTS] = before;
	}
	s->last = h->look;
	s->bytes[s->last % HISTORY_POINTS] = bytes;
	return 0;
}

/* The oldest look that is kept of a series. */
static uint64_t oldest_of(const struct series *s)
{
	return num_most(s->first, num_less(s->last + 1, HISTORY_POINTS));
}

void history_levels(
    const struct history *h, const struct history_key *key, unsigned columns, uint8_t *levels)
{
	const struct series *s = find(h, key);
	double least, most = 0, span;
	uint64_t from, count;
	unsigned used;

	memset(levels, 0, columns);
	if (!s || !columns)
		return;
	from = oldest_of(s);
	count = s->last + 1 - from;
	used = (unsigned)num_least(count, columns);
	least = (double)s->bytes[from % HISTORY_POINTS];
	for (uint64_t look = from; look <= s->last; look++) {
		double bytes = (double)s->bytes[look % HISTORY_POINTS];

		least = bytes < least ? bytes : least;
		most = bytes > most ? bytes : most;
	}
	span = most - least > most / 10 ? most - least : most / 10;
	for (unsigned i = 0; i < used; i++) {
		uint64_t begin = from + i * count / used, end = from + (i + 1) * count / used;
		double sum = 0, share;

		for (uint64_t look = begin; look < end; look++)
			sum += (double)s->bytes[look % HISTORY_POINTS];
		share = span > 0 ? (sum / (double)(end - begin) - least) / span : 0;
		levels[columns - used + i] = (uint8_t)(1 + share * (HISTORY_LEVELS - 1) + 0.5);
	}
}

int64_t history_change(const struct history *h, const struct history_key *key, double *seconds)
{
	const struct series *s = find(h, key);
	uint64_t from;

	*seconds = 0;
	if (!s)
		return 0;
	from = oldest_of(s);
	*seconds = h->seconds[s->last % HISTORY_POINTS] - h->seconds[from % HISTORY_POINTS];
	return (int64_t)(s->bytes[s->last % HISTORY_POINTS] - s->bytes[from % HISTORY_POINTS]);
}
