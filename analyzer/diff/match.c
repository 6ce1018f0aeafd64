/* match.c - see match.h. */
#include "diff/match.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "util/num.h"
#include "util/tuned.h"

TUNED(double, LINE_GAP, 0.75,
    "a line whose bytes differ threefold is the same line; two lines are not one when nothing "
    "about "
    "them is alike");
TUNED(double, LINE_CALLEE, 0.5, "a line that calls another function is less likely the same");
TUNED(double, LINE_LARGEST, 0.25, "blocks of the same size are a hint, and no more");
TUNED(double, RENAMED_TIMES, 2.0,
    "a renamed function that also changes by more is told as one gone and one new");

#define LINES_MAX 512u /* of one function, on a side; more are matched in order */

/* A site, and the key that is compared. */
struct entry {
	uint64_t key;
	uint32_t line, site;
};

static int by_key_and_line(const void *a, const void *b)
{
	const struct entry *x = a, *y = b;

	if (x->key != y->key)
		return x->key < y->key ? -1 : 1;
	if (x->line != y->line)
		return x->line < y->line ? -1 : 1;
	return x->site < y->site ? -1 : x->site > y->site;
}

/* How unlike two numbers are, 0 to 1. */
static double unlike(uint64_t a, uint64_t b)
{
	uint64_t most = num_most(a, b);

	return most ? (double)(most - num_least(a, b)) / (double)most : 0;
}

static double cost_of(const struct site *a, const struct site *b)
{
	return 0.5 * unlike(a->total_bytes, b->total_bytes) +
	       0.5 * unlike(a->total_count, b->total_count) +
	       (a->callee != b->callee ? LINE_CALLEE : 0) +
	       LINE_LARGEST * unlike(a->largest, b->largest);
}

struct matcher {
	const struct site *a, *b;
	size_t a_count, b_count;
	uint32_t *b_of_a, *a_of_b; /* SITE_NONE: not matched */
	bool *renamed; /* by site of b */
	struct entry *list_a, *list_b;
};

static void pair_up(struct matcher *m, uint32_t a, uint32_t b, bool renamed)
{
	m->b_of_a[a] = b;
	m->a_of_b[b] = a;
	m->renamed[b] = renamed;
}

/* Align the lines of one function, in their order, with the least cost. */
static int align(
    struct matcher *m, const struct entry *a, size_t n, const struct entry *b, size_t k)
{
	double *cost;

	if (n > LINES_MAX || k > LINES_MAX) {
		for (size_t i = 0; i < n && i < k; i++)
			pair_up(m, a[i].site, b[i].site, false);
		return 0;
	}
	cost = malloc((n + 1) * (k + 1) * sizeof(*cost));
	if (!cost)
		return -ENOMEM;
#define COST(i, j) cost[(i) * (k + 1) + (j)]
	for (size_t i = n + 1; i-- > 0;)
		for (size_t j = k + 1; j-- > 0;) {
			double best = (double)(n - i + k - j) * LINE_GAP;

			if (i < n && j < k) {
				best = cost_of(&m->a[a[i].site], &m->b[b[j].site]) +
				       COST(i + 1, j + 1);
				best = fmin(best, LINE_GAP + COST(i + 1, j));
				best = fmin(best, LINE_GAP + COST(i, j + 1));
			}
			COST(i, j) = best;
		}
	for (size_t i = 0, j = 0; i < n && j < k;) {
		if (COST(i, j) >= LINE_GAP + COST(i + 1, j))
			i++;
		else if (COST(i, j) >= LINE_GAP + COST(i, j + 1))
			j++;
		else
			pair_up(m, a[i++].site, b[j++].site, false);
	}
#undef COST
	free(cost);
	/* One line that became quite another is still that line. */
	if (n == 1 && k == 1)
		pair_up(m, a[0].site, b[0].site, false);
	return 0;
}

/* List the sites that are not matched yet. */
static size_t list_rest(const struct site *sites, size_t count, const uint32_t *matched,
    uint64_t (*key)(const struct site *s), struct entry *out)
{
	size_t n = 0;

	for (size_t i = 0; i < count; i++)
		if (matched[i] == SITE_NONE && key(&sites[i]))
			out[n++] = (struct entry){key(&sites[i]), sites[i].line, (uint32_t)i};
	qsort(out, n, sizeof(*out), by_key_and_line);
	return n;
}

static size_t run_of(const struct entry *list, size_t count, size_t from)
{
	size_t to = from;

	while (to < count && list[to].key == list[from].key)
		to++;
	return to - from;
}

static bool alike(const struct site *a, const struct site *b)
{
	uint64_t least = num_least(a->total_bytes, b->total_bytes);
	uint64_t most = num_most(a->total_bytes, b->total_bytes);

	return a->python == b->python && a->arenas == b->arenas &&
	       (a->largest == b->largest || (double)most <= RENAMED_TIMES * (double)least);
}

/* Match what has the same key. `renamed`: only where either side has one such line, and both are
 * alike. */
static int match_by(struct matcher *m, uint64_t (*key)(const struct site *s), bool renamed)
{
	size_t n = list_rest(m->a, m->a_count, m->b_of_a, key, m->list_a);
	size_t k = list_rest(m->b, m->b_count, m->a_of_b, key, m->list_b);
	int rc = 0;

	for (size_t i = 0, j = 0; i < n && j < k && !rc;) {
		size_t in_a = run_of(m->list_a, n, i), in_b = run_of(m->list_b, k, j);
		const struct entry *a = &m->list_a[i], *b = &m->list_b[j];

		if (a->key != b->key) {
			i += a->key < b->key ? in_a : 0;
			j += a->key < b->key ? 0 : in_b;
			continue;
		}
		if (!renamed)
			rc = align(m, a, in_a, b, in_b);
		else if (in_a == 1 && in_b == 1 && alike(&m->a[a->site], &m->b[b->site]))
			pair_up(m, a->site, b->site, true);
		i += in_a;
		j += in_b;
	}
	return rc;
}

static uint64_t key_of_all(const struct site *s)
{
	return s->names.all ^ s->arenas;
}

/* The function, in another file. */
static uint64_t key_of_function(const struct site *s)
{
	return s->names.function ^ s->arenas;
}

static uint64_t key_of_surroundings(const struct site *s)
{
	return (s->names.file * 31 + s->caller) * 31 + s->callee + s->arenas;
}

/* Another function of the same file, with the same caller and callee. */
static uint64_t key_of_caller(const struct site *s)
{
	return s->names.file && s->caller ? key_of_surroundings(s) : 0;
}

/* The same, where the caller was renamed, too. */
static uint64_t key_of_size(const struct site *s)
{
	return s->names.file ? (s->names.file * 31 + s->callee) * 31 + s->largest + s->arenas : 0;
}

static int list_pairs(struct matcher *m, struct pairs *out)
{
	int rc = vec_reserve(&out->list, m->a_count + m->b_count);

	if (rc)
		return rc;
	for (uint32_t i = 0; i < m->b_count; i++) {
		out->of_b[i] = (uint32_t)out->list.count;
		if (m->a_of_b[i] != SITE_NONE)
			out->of_a[m->a_of_b[i]] = (uint32_t)out->list.count;
		out->list.items[out->list.count++] = (struct pair){m->a_of_b[i], i, m->renamed[i]};
	}
	for (uint32_t i = 0; i < m->a_count; i++) {
		if (m->b_of_a[i] != SITE_NONE)
			continue;
		out->of_a[i] = (uint32_t)out->list.count;
		out->list.items[out->list.count++] = (struct pair){i, SITE_NONE, false};
	}
	return 0;
}

int match_sites(
    const struct site *a, size_t a_count, const struct site *b, size_t b_count, struct pairs *out)
{
	struct matcher m = {.a = a, .b = b, .a_count = a_count, .b_count = b_count};
	int rc = -ENOMEM;

	memset(out, 0, sizeof(*out));
	m.b_of_a = malloc((a_count + 1) * sizeof(*m.b_of_a));
	m.a_of_b = malloc((b_count + 1) * sizeof(*m.a_of_b));
	m.renamed = calloc(b_count + 1, sizeof(*m.renamed));
	m.list_a = malloc((a_count + 1) * sizeof(*m.list_a));
	m.list_b = malloc((b_count + 1) * sizeof(*m.list_b));
	out->of_a = calloc(a_count + 1, sizeof(*out->of_a));
	out->of_b = calloc(b_count + 1, sizeof(*out->of_b));
	if (!m.b_of_a || !m.a_of_b || !m.renamed || !m.list_a || !m.list_b || !out->of_a ||
	    !out->of_b)
		goto out;
	memset(m.b_of_a, 0xff, (a_count + 1) * sizeof(*m.b_of_a));
	memset(m.a_of_b, 0xff, (b_count + 1) * sizeof(*m.a_of_b));
	if ((rc = match_by(&m, key_of_all, false)) || (rc = match_by(&m, key_of_function, true)) ||
	    (rc = match_by(&m, key_of_caller, true)) || (rc = match_by(&m, key_of_size, true)))
		goto out;
	rc = list_pairs(&m, out);
out:
	free(m.b_of_a);
	free(m.a_of_b);
	free(m.renamed);
	free(m.list_a);
	free(m.list_b);
	if (rc)
		match_fini(out);
	return rc;
}

void match_fini(struct pairs *pairs)
{
	vec_free(&pairs->list);
	free(pairs->of_a);
	free(pairs->of_b);
	memset(pairs, 0, sizeof(*pairs));
}
