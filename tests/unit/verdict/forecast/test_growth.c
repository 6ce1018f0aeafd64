/* Growth by place: who grows, what was kept when, and the sum; of call sites made by hand. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "verdict/forecast/growth.h"

#define S 1000000000ull

static const struct thread_stacks none = {.callsite = CALLSITE_NONE};

/* Ten steps of ten seconds from the 100th second on; half of what each acquired is freed. */
static struct step steps[10];

static struct callsite leak(void)
{
	for (unsigned i = 0; i < 10; i++)
		steps[i] = (struct step){.time_ns = (100 + 10 * i) * S,
		    .last_ns = (110 + 10 * i) * S,
		    .count = 20,
		    .bytes = 2000,
		    .freed_count = 10,
		    .freed_bytes = 1000};
	return (struct callsite){
	    .facts = {.live_bytes = 10000, .first_ns = 100 * S, .steps = steps, .step_count = 10},
	    .survivors = {.count = 100, .bytes = 10000, .stays = true}};
}

/* A list that is made anew, larger each time, until the 200th second. */
static struct callsite list(void)
{
	struct callsite c = {.facts = {.live_bytes = 4000, .first_ns = 100 * S},
	    .size = {.grows = true, .count = 5}};

	for (unsigned i = 0; i < 5; i++)
		c.size.at[i] = (struct size_at){(100 + 25 * i) * S, 1000 + 750 * i};
	return c;
}

static void test_who(void **state)
{
	struct callsite c = leak();

	assert_true(growth_is_of(&c));
	c.facts.imported_bytes = c.facts.live_bytes;
	assert_false(growth_is_of(&c));
	c = leak();
	c.survivors.stays = false;
	assert_false(growth_is_of(&c));
	c.backlog.grows = true; /* a ring on a machine that slows down */
	assert_false(growth_is_of(&c));
	c = list();
	assert_true(growth_is_of(&c));
	c.facts.live_bytes = 0;
	assert_false(growth_is_of(&c));
	(void)state;
}

static void test_kept(void **state)
{
	struct callsite c = leak();

	assert_true(growth_kept(&c, 100 * S) == 0);
	assert_true(growth_kept(&c, 155 * S) == 5500);
	assert_true(growth_kept(&c, 300 * S) == 10000);
	c = list();
	assert_true(growth_kept(&c, 50 * S) == 0);
	assert_true(growth_kept(&c, 150 * S) == 2500);
	assert_true(growth_kept(&c, 300 * S) == 4000);
	(void)state;
}

static void test_sum(void **state)
{
	static struct model m;
	struct forecast_point points[FORECAST_POINTS];
	struct callsite sites[3] = {leak(), list(), {.facts = {.live_bytes = 5000}}};
	struct callsites all = {.list = sites, .count = 3, .live_bytes = 19000};
	struct room room = {.limit = LIMIT_CGROUP, .left = 6500};
	struct forecast f;

	memset(&m, 0, sizeof(m));
	timeline_init(&m.timeline);
	for (unsigned i = 0; i < 200; i++)
		timeline_acquire(&m.timeline, i * S, 0, 100, 100);
	assert_true(growth_points(&m, &all, &none, 200 * S, points));
	assert_true(points[0].seconds == 100 && points[FORECAST_POINTS - 1].seconds == 200);
	assert_true(points[0].kept == 0 + 1000);
	assert_true(points[FORECAST_POINTS - 1].kept == 14000);
	assert_true(points[FORECAST_POINTS / 2].kept == 5000 + 2500);
	assert_true(points[FORECAST_POINTS / 2].work > points[0].work);

	growth_forecast(&m, &all, 200 * S, &room, &f);
	assert_int_equal(f.state, FORECAST_GROWS);
	assert_true(f.rate > 129 && f.rate < 131 && f.seconds > 49 && f.seconds < 51 && f.alarm);
	/* Later it is over. */
	growth_forecast(&m, &all, 400 * S, &room, &f);
	assert_int_equal(f.state, FORECAST_STEADY);

	/* Beside much else it is a log. */
	all.live_bytes = 14000 * 65;
	assert_false(growth_points(&m, &all, &none, 200 * S, points));
	all.live_bytes = 19000;
	sites[0].survivors.stays = sites[1].size.grows = false;
	assert_false(growth_points(&m, &all, &none, 200 * S, points));
	(void)state;
}

/* Blocks that only take the place of those from before an attach are no growth. */
static void test_exchange(void **state)
{
	static struct model m;
	struct forecast_point points[FORECAST_POINTS];
	struct callsite site = leak();
	struct callsites all = {.list = &site, .count = 1, .live_bytes = 10000};
	struct allocator_stats *a = &m.measured.malloc;

	timeline_init(&m.timeline);
	m.base = (struct base){.attached = true, .known = true, .blocks = 20000};
	a->at[0] = (struct allocator_reading){.time_ns = 100 * S, .before = 20000};
	a->at[1] = (struct allocator_reading){.time_ns = 150 * S, .before = 18000};
	a->at[2] = (struct allocator_reading){.time_ns = 200 * S, .before = 16000};
	a->count = 3;
	assert_true(growth_points(&m, &all, &none, 200 * S, points));
	assert_true(points[0].kept == 0);
	assert_true(points[FORECAST_POINTS / 2].kept == 5000 - 2000);
	assert_true(points[FORECAST_POINTS - 1].kept == 10000 - 4000);
	a->at[2].before = 10000;
	assert_false(growth_points(&m, &all, &none, 200 * S, points));
	(void)state;
}

static void test_device(void **state)
{
	static struct model driver, torch;
	static struct space cuda = {.kind = SPACE_CUDA, .device = 1, .model = &driver},
			    other = {.kind = SPACE_TORCH, .device = 0, .model = &torch},
			    own = {.kind = SPACE_TORCH, .device = 1, .model = &torch};
	static struct spaces spaces = {.list = {&cuda, &other}, .count = 2};
	struct device_growth of;

	driver.blocks.bytes = 1000;
	torch.blocks.bytes = 700;
	of = growth_of_device(&spaces, &cuda, 50);
	assert_ptr_equal(of.model, &driver);
	assert_int_equal(of.room, 50);
	spaces.list[spaces.count++] = &own;
	of = growth_of_device(&spaces, &cuda, 50);
	assert_ptr_equal(of.model, &torch);
	assert_int_equal(of.room, 350);
	torch.blocks.bytes = 0;
	of = growth_of_device(&spaces, &cuda, 50);
	assert_ptr_equal(of.model, &driver);
	(void)state;
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_who), cmocka_unit_test(test_kept),
	    cmocka_unit_test(test_sum), cmocka_unit_test(test_exchange),
	    cmocka_unit_test(test_device)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
