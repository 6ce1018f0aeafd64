/*
 * needles.c - see needles.h. The automaton of Aho and Corasick, with a whole row of next states for
 * each state: one load a byte. Each load waits for the one before, so two stretches of the text are
 * read by turns.
 */
#include "explain/needles.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "util/num.h"

#define NONE UINT32_MAX
#define STRETCH 4096u /* bytes; far more than the longest needle */

struct needles {
	uint16_t (*next)[256]; /* next[state][byte] */
	uint32_t *ends; /* the first needle that ends in the state, or NONE */
	uint16_t *fail; /* the longest proper suffix that is a state */
	uint16_t *also; /* the nearest state along `fail` in which a needle ends, or 0 */
	uint32_t *same; /* by needle: the next one that ends in the same state */
	uint8_t *tells; /* by state: a needle ends in it, or in one along `fail` */
	size_t states, longest; /* longest: bytes of a needle */
};

static size_t most_states(const char *const *texts, size_t count)
{
	size_t states = 1;

	for (size_t i = 0; i < count; i++)
		states += strlen(texts[i]);
	return states;
}

static int make_room(struct needles *n, size_t states, size_t count)
{
	n->next = calloc(states, sizeof(*n->next));
	n->ends = malloc(states * sizeof(*n->ends));
	n->fail = calloc(states, sizeof(*n->fail));
	n->also = calloc(states, sizeof(*n->also));
	n->same = malloc((count + 1) * sizeof(*n->same));
	n->tells = calloc(states, sizeof(*n->tells));
	if (!n->next || !n->ends || !n->fail || !n->also || !n->same || !n->tells)
		return -ENOMEM;
	memset(n->ends, 0xff, states * sizeof(*n->ends));
	return 0;
}

static void add_text(struct needles *n, const char *text, uint32_t id)
{
	uint16_t state = 0;

	for (const unsigned char *p = (const unsigned char *)text; *p; p++) {
		if (!n->next[state][*p])
			n->next[state][*p] = (uint16_t)n->states++;
		state = n->next[state][*p];
	}
	n->same[id] = n->ends[state];
	n->ends[state] = id;
	n->longest = num_most(n->longest, strlen(text));
}

/* Goes breadth first, so that a state's suffix is linked before the state. */
static int link_suffixes(struct needles *n)
{
	uint16_t *queue = malloc(n->states * sizeof(*queue));
	size_t head = 0, tail = 0;

	if (!queue)
		return -ENOMEM;
	for (unsigned c = 0; c < 256; c++)
		if (n->next[0][c])
			queue[tail++] = n->next[0][c];
	while (head < tail) {
		uint16_t state = queue[head++];
		uint16_t fail = n->fail[state];

		n->also[state] = n->ends[fail] != NONE ? fail : n->also[fail];
		n->tells[state] = n->ends[state] != NONE || n->also[state];
		for (unsigned c = 0; c < 256; c++) {
			uint16_t to = n->next[state][c];

			if (to) {
				n->fail[to] = n->next[fail][c];
				queue[tail++] = to;
			} else {
				n->next[state][c] = n->next[fail][c];
			}
		}
	}
	free(queue);
	return 0;
}

int needles_new(const char *const *texts, size_t count, struct needles **out)
{
	size_t states = most_states(texts, count);
	struct needles *n;
	int rc;

	if (states > UINT16_MAX)
		return -E2BIG;
	n = calloc(1, sizeof(*n));
	rc = n ? make_room(n, states, count) : -ENOMEM;
	if (rc)
		goto out;
	n->states = 1;
	for (size_t i = 0; i < count; i++)
		add_text(n, texts[i], (uint32_t)i);
	rc = link_suffixes(n);
out:
	if (rc)
		needles_free(n);
	else
		*out = n;
	return rc;
}

void needles_free(struct needles *n)
{
	if (!n)
		return;
	free(n->next);
	free(n->ends);
	free(n->fail);
	free(n->also);
	free(n->same);
	free(n->tells);
	free(n);
}

static int report(
    const struct needles *n, uint32_t state, size_t end, needles_found found, void *arg)
{
	for (; state; state = n->also[state])
		for (uint32_t id = n->ends[state]; id != NONE; id = n->same[id]) {
			int rc = found(arg, id, end);

			if (rc)
				return rc;
		}
	return 0;
}

static int scan_one(const struct needles *n, uint32_t *state, const char *text, size_t from,
    size_t to, needles_found found, void *arg)
{
	uint32_t at = *state;
	int rc = 0;

	for (size_t i = from; i < to && !rc; i++) {
		at = n->next[at][(unsigned char)text[i]];
		if (n->tells[at])
			rc = report(n, at, i + 1, found, arg);
	}
	*state = at;
	return rc;
}

/* Scan two stretches from `from` on. Only the last `longest` bytes decide on a state, so the second
 * one's first is found from those before it. What is found there is told after the first's. */
static int scan_two(const struct needles *n, uint32_t *state, const char *text, size_t from,
    needles_found found, void *arg)
{
	const unsigned char *first = (const unsigned char *)text + from, *second = first + STRETCH;
	struct {
		uint16_t state, at;
	} told[STRETCH];
	size_t count = 0;
	uint32_t at = *state, ahead = 0;
	int rc = 0;

	for (size_t i = n->longest; i > 0; i--)
		ahead = n->next[ahead][*(second - i)];
	for (size_t i = 0; i < STRETCH && !rc; i++) {
		at = n->next[at][first[i]];
		ahead = n->next[ahead][second[i]];
		if (__builtin_expect(n->tells[ahead], 0)) {
			told[count].state = (uint16_t)ahead;
			told[count++].at = (uint16_t)i;
		}
		if (__builtin_expect(n->tells[at], 0))
			rc = report(n, at, from + i + 1, found, arg);
	}
	for (size_t i = 0; i < count && !rc; i++)
		rc = report(n, told[i].state, from + STRETCH + told[i].at + 1, found, arg);
	*state = ahead;
	return rc;
}

int needles_scan(const struct needles *n, uint32_t *state, const char *text, size_t bytes,
    needles_found found, void *arg)
{
	size_t at = 0;
	int rc = 0;

	while (!rc && n->longest <= STRETCH && bytes - at >= (size_t)2 * STRETCH) {
		rc = scan_two(n, state, text, at, found, arg);
		at += (size_t)2 * STRETCH;
	}
	return rc ? rc : scan_one(n, state, text, at, bytes, found, arg);
}
