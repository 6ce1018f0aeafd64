/* Stacks from definitions in any order, against plain lists of frames. */
#include "../events.h"
#include "trace/definitions/definitions.h"

#define COUNT 6000u
#define FRAMES 400u
#define FAR (1ull << 40)

struct plain {
	uint64_t id, base, keep, frames[12];
	size_t count;
	bool late; /* its base comes after it */
};

/* The frames of an id. */
struct known {
	bool defined;
	const struct plain *by;
	size_t count;
	uint64_t frames[FRAMES];
};

static struct plain list[COUNT];
static struct known known[COUNT + 1];

static size_t dice(uint64_t *seed, size_t below)
{
	*seed = *seed * 6364136223846793005ull + 1442695040888963407ull;
	return (*seed >> 33) % below;
}

/* The distance between ids: a power of two is no worse than others. */
static uint64_t apart = 1;

static uint64_t id_of(uint64_t number)
{
	return apart * (number && number % 50 == 0 ? FAR + number : number);
}

/* Numbers as in the file; most have one of the latest as base, like a recorder's. */
static void make_list(uint64_t *seed)
{
	for (uint64_t i = 0; i < COUNT; i++) {
		struct plain *p = &list[i];
		uint64_t number = i + 1;

		*p = (struct plain){.id = number};
		switch (dice(seed, 16)) {
		case 0:
			break;
		case 1:
			p->base = 1 + dice(seed, number); /* also itself */
			break;
		case 2:
			p->base = 1 + dice(seed, COUNT); /* maybe later */
			break;
		case 3:
			p->id = 1 + dice(seed, number); /* once more */
			p->base = i;
			break;
		default:
			p->base = number - (number > 20 ? 1 + dice(seed, dice(seed, 20) + 1) : 1);
			break;
		}
		p->keep = dice(seed, dice(seed, 4) ? 3 : 30);
		p->count = dice(seed, 12);
		if (!p->base)
			p->keep = 0;
		for (size_t k = 0; k < p->count; k++)
			p->frames[k] = 1 + dice(seed, 3);
	}
}

/* 1: refused. */
static int define(const struct plain *p)
{
	struct known *own = &known[p->id];
	const struct known *base = p->base ? &known[p->base] : NULL;
	uint64_t frames[FRAMES];
	size_t n = 0;

	if (own->defined || p->keep > (base ? base->count : 0) || p->keep + p->count > FRAMES)
		return 1;
	for (; n < p->keep; n++)
		frames[n] = base->frames[n];
	for (size_t k = 0; k < p->count; k++)
		frames[n++] = p->frames[k];
	own->defined = true;
	own->by = p;
	own->count = n;
	memcpy(own->frames, frames, n * sizeof(frames[0]));
	return 0;
}

static bool ready(const struct plain *p)
{
	return !p->base || known[p->base].defined;
}

/* An id that waits for its base and comes again: it is unknown which of the two counts, so there
 * is none. */
static size_t define_all(void)
{
	size_t refused = 0;
	bool more = true;

	memset(known, 0, sizeof(known));
	for (size_t i = 0; i < COUNT; i++) {
		list[i].late = false;
		for (size_t k = 0; k < i && list[i].id <= i; k++)
			if (list[k].id == list[i].id && list[k].late) {
				list[i] = (struct plain){.id = i + 1, .count = 1, .frames = {3}};
				break;
			}
		list[i].late = !ready(&list[i]);
		if (!list[i].late)
			refused += (size_t)define(&list[i]);
	}
	while (more) {
		more = false;
		for (size_t i = 0; i < COUNT; i++)
			if (list[i].late && ready(&list[i]) && !known[list[i].id].defined &&
			    !define(&list[i]))
				more = true;
	}
	return refused;
}

static void compare(struct trace *t)
{
	const struct stacks *s = &t->defs.stacks;
	const struct frame *frames;
	uint32_t distinct = 1;

	for (uint32_t n = 1; n <= COUNT; n++) {
		uint32_t stack = stacks_canonical(s, id_of(n));
		size_t count = trace_stack(t, stack, &frames);

		assert_int_equal(count, known[n].defined ? known[n].count : 0);
		for (size_t k = 0; k < count; k++)
			assert_int_equal(frames[k].address, known[n].frames[k]);
	}
	/* Canonical ids follow the order of the file; equal frames share one. */
	for (size_t i = 0; i < COUNT; i++) {
		uint32_t stack = stacks_canonical(s, id_of(list[i].id));

		if (list[i].late || known[list[i].id].by != &list[i] || !known[list[i].id].count)
			continue;
		assert_in_range(stack, 1, distinct);
		distinct += stack == distinct;
	}
	for (uint32_t a = 1; a < 1500; a++)
		for (uint32_t b = 1; b < a; b++) {
			const struct known *x = &known[a], *y = &known[b];
			bool same = x->count == y->count &&
				    !memcmp(x->frames, y->frames, x->count * sizeof(uint64_t));

			assert_int_equal(
			    stacks_canonical(s, id_of(a)) == stacks_canonical(s, id_of(b)), same);
		}
}

static void any_order(void **state)
{
	for (uint64_t round = 1; round <= 4; round++) {
		uint64_t seed = round;
		struct compose c;
		struct trace *t;
		size_t defined = 0, late = 0, refused;

		apart = round % 2 ? 1 : 64;
		make_list(&seed);
		refused = define_all();
		for (size_t i = 0; i < COUNT; i++) {
			defined += known[i + 1].defined;
			late += list[i].late && known[list[i].id].defined;
		}
		/* All cases occur. */
		assert_in_range(defined, COUNT / 4, COUNT - 1);
		assert_in_range(late, 10, COUNT);
		assert_in_range(refused, 10, COUNT);
		compose_begin(&c);
		for (size_t i = 0; i < COUNT; i++) {
			if (i % 1000 == 0)
				compose_chunk(&c, 2, 0, 0, 0, 1 << 17);
			def_stack(&c, id_of(list[i].id), id_of(list[i].base), list[i].keep,
			    list[i].count, list[i].frames);
		}
		t = open_composed(&c);
		compare(t);
		assert_true(trace_facts(t)->torn_chunks > 0); /* the refused ones are reported */
		trace_close(t);
		compose_free(&c);
	}
}

/* A refused stack is counted at its position, even if others were searched at the same time. */
static void refused_ones_are_of_their_chunk(void **state)
{
	struct compose c;
	struct trace *t;

	compose_begin(&c);
	compose_chunk(&c, 2, 0, 0, 0, 65536);
	DEF_STACK(&c, 1, 0, 0, 0x10, 0x20);
	DEF_STACK(&c, 2, 1, 3, 0x30); /* more kept than there is, and its base is on its way */
	DEF_STACK(&c, 3, 2, 1, 0x40); /* has that one as base */
	compose_chunk(&c, 2, 0, 0, 0, 65536);
	DEF_STACK(&c, 1, 0, 0, 0x50); /* defined before */
	DEF_STACK(&c, 4, 1, 1, 0x50);
	compose_chunk(&c, 2, 0, 0, 0, 65536);
	DEF_STACK(&c, 5, 4, 2, 0x60);
	t = open_composed(&c);
	assert_int_equal(t->defs.broken, 3);
	/* Two chunks, and stacks that wait in vain at the end. */
	assert_int_equal(trace_facts(t)->torn_chunks, 3);
	assert_int_equal(trace_stack_limit(t), 4);
	trace_close(t);
	compose_free(&c);
}

/* More frames than are kept together: for any kept part of it, and of stacks on top of it. */
static void long_ones(void **state)
{
	enum { LONG = 1000 };
	uint64_t list_of[LONG], other;
	const struct frame *frames;
	struct compose c;
	struct trace *t;
	size_t n;

	for (uint64_t i = 0; i < LONG; i++)
		list_of[i] = 0x1000 + i % 7;
	compose_begin(&c);
	compose_chunk(&c, 2, 0, 0, 0, 1 << 17);
	def_stack(&c, 1, 0, 0, LONG, list_of);
	for (uint64_t keep = 0; keep < LONG; keep++) {
		other = 0x2000 + keep;
		def_stack(&c, 2 + 3 * keep, 1, keep, 1, &other);
		def_stack(&c, 3 + 3 * keep, keep ? 3 * keep : 1, keep, LONG - keep, list_of + keep);
		def_stack(&c, 4 + 3 * keep, 2 + 3 * keep, keep + 1, 1, &other);
		if (keep % 20 == 19)
			compose_chunk(&c, 2, 0, 0, 0, 1 << 17);
	}
	t = open_composed(&c);
	assert_int_equal(t->defs.broken, 0);
	assert_int_equal(trace_stack_limit(t), 2 + 2 * LONG);
	for (uint32_t keep = 0; keep < LONG; keep++) {
		uint32_t one = stacks_canonical(&t->defs.stacks, 2 + 3 * keep);

		assert_int_equal(one, 2 + 2 * keep);
		assert_int_equal(stacks_canonical(&t->defs.stacks, 3 + 3 * keep), 1);
		for (uint32_t more = 0; more < 2; more++) {
			n = trace_stack(t, one + more, &frames);
			assert_int_equal(n, keep + 1 + more);
			for (size_t i = 0; i < n; i++)
				assert_int_equal(
				    frames[i].address, i < keep ? list_of[i] : 0x2000 + keep);
		}
	}
	trace_close(t);
	compose_free(&c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(any_order),
	    cmocka_unit_test(long_ones),
	    cmocka_unit_test(refused_ones_are_of_their_chunk),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
