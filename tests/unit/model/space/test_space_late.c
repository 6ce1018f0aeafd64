#include "model/spaces.h"

#include <stdlib.h>

static struct event *by(struct event *e, uint32_t thread, uint64_t time_ns)
{
	e->thread = thread;
	e->time_ns = time_ns;
	return e;
}

/* Thread 1, whose clock is 40 us ahead, released before what thread 2 took. */
static void blocks(void **state)
{
	static const char *const names[] = {"cuda:0", "torch:0"};

	for (size_t i = 0; i < 2; i++) {
		struct script *s = script_new();
		uint32_t space = script_space(s, names[i]);
		struct event *e;
		struct model *m;

		by(script_event(s, EV_SPACE_ALLOC, space), 1, 1000)->address = 0x10000000;
		by(script_event(s, EV_SPACE_ALLOC, space), 2, 60000)->address = 0x10000000;
		by(script_event(s, EV_SPACE_FREE, space), 1, 100000)->address = 0x10000000;
		e = by(script_event(s, EV_SPACE_ALLOC, space), 1, 200000);
		e->address = 0x20000000;
		e->size = 1 * MiB;
		m = spaces_model(s);
		assert_int_equal(spaces_find(m->spaces, names[i])->model->blocks.count, 2);
		assert_int_equal(m->spaces->repairs, 1);
		assert_int_equal(m->spaces->unmatched, 0);
		model_free(m);
		/* The thread's own releases at any time, and any thread's after a while, are of
		 * the new block. */
		by(script_event(s, EV_SPACE_ALLOC, space), 1, 205000)->address = 0x30000000;
		by(script_event(s, EV_SPACE_ALLOC, space), 2, 206000)->address = 0x30000000;
		by(script_event(s, EV_SPACE_FREE, space), 2, 207000)->address = 0x30000000;
		by(script_event(s, EV_SPACE_FREE, space), 2, 210000)->address = 0x10000000;
		by(script_event(s, EV_SPACE_ALLOC, space), 2, 300000)->address = 0x20000000;
		by(script_event(s, EV_SPACE_FREE, space), 1, 401000)->address = 0x20000000;
		m = spaces_model(s);
		assert_int_equal(spaces_find(m->spaces, names[i])->model->blocks.count, 0);
		model_free(m);
		script_free(s);
	}
}

/* A handle's mapping, removed by a thread whose clock is ahead. */
static void mappings(void **state)
{
	struct script *s = script_new();
	uint32_t cuda = script_space(s, "cuda:0");
	struct event *e;
	struct model *m;

	handle_new(s, cuda, 0x77, 2 * MiB);
	handle_map(s, 0x77, 0x10000000, 2 * MiB);
	handle_release(s, 0x77);
	handle_new(s, cuda, 0x78, 4 * MiB);
	e = by(script_event(s, EV_SPACE_MAP, 0), 2, 6000);
	e->u.space.handle = 0x78;
	e->address = 0x10000000;
	e->size = 2 * MiB;
	e = by(script_event(s, EV_SPACE_UNMAP, 0), 1, 50000);
	e->address = 0x10000000;
	e->size = 2 * MiB;
	handle_release(s, 0x78);
	m = spaces_model(s);
	assert_int_equal(live(m, "cuda:0"), 4 * MiB);
	assert_int_equal(spaces_find(m->spaces, "cuda:0")->mapped_handles, 1);
	model_free(m);
	script_free(s);
}

struct step {
	uint64_t ns; /* by its thread's clock */
	uint64_t address;
	uint32_t thread;
	bool release;
};

static int by_ns(const void *a, const void *b)
{
	const struct step *x = a, *y = b;

	return x->ns < y->ns ? -1 : x->ns > y->ns;
}

/* Four threads hand a few addresses round, each by its own clock: a thread takes one within a
 * microsecond of its release, and keeps it for longer than clocks differ. */
static void four_threads(void **state)
{
	static const uint64_t ahead[] = {0, 90000, 30000, 60000};
	enum { ROUNDS = 3000, SLOTS = 8 };
	static struct step steps[2 * ROUNDS];
	uint32_t owner[SLOTS] = {0}, count = 0;
	struct script *s = script_new();
	uint32_t torch = script_space(s, "torch:0");
	struct model *m;

	srand(1);
	for (uint64_t i = 0; i < ROUNDS; i++) {
		uint32_t slot = (uint32_t)rand() % SLOTS, thread = (uint32_t)rand() % 4;
		uint64_t now = (i + 1) * 200000, address = (slot + 1) * 0x1000000ull;

		if (owner[slot])
			steps[count++] =
			    (struct step){now + ahead[owner[slot] - 1], address, owner[slot], true};
		steps[count++] =
		    (struct step){now + 1000 + ahead[thread], address, thread + 1, false};
		owner[slot] = thread + 1;
	}
	qsort(steps, count, sizeof(*steps), by_ns);
	for (uint32_t i = 0; i < count; i++) {
		struct event *e =
		    script_event(s, steps[i].release ? EV_SPACE_FREE : EV_SPACE_ALLOC, torch);

		by(e, steps[i].thread, steps[i].ns)->address = steps[i].address;
		e->size = steps[i].release ? 0 : MiB;
	}
	m = spaces_model(s);
	assert_true(m->spaces->repairs > ROUNDS / 4);
	assert_int_equal(live(m, "torch:0"), SLOTS * MiB);
	assert_int_equal(spaces_find(m->spaces, "torch:0")->model->peak.bytes, SLOTS * MiB);
	assert_int_equal(m->spaces->unmatched, 0);
	model_free(m);
	script_free(s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(blocks),
	    cmocka_unit_test(mappings),
	    cmocka_unit_test(four_threads),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
