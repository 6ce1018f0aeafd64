/* Which request waits for which, and how much later its allocations come. */
#include "model/unit.h"

#include "model/script.h"
#include "verdict/judge/put_off.h"

static struct put_off_unit unit(uint64_t start_ns, uint64_t end_ns)
{
	return (struct put_off_unit){
	    .start_ns = start_ns, .end_ns = end_ns, .ended = true, .request = true};
}

static void test_schedule(void **state)
{
	struct put_off p = {0};
	struct put_off_schedule s;

	assert_int_equal(vec_push(&p.units, unit(0, 100)), 0);
	assert_int_equal(vec_push(&p.units, unit(5, 1000)), 0);
	p.units.items[1].request = false; /* a thread of the server's own */
	assert_int_equal(vec_push(&p.units, unit(10, 50)), 0);
	assert_int_equal(vec_push(&p.units, unit(20, 60)), 0);
	assert_int_equal(vec_push(&p.units, unit(500, 600)), 0);

	/* In the order in which they came. */
	assert_int_equal(put_off_schedule(&p, 1, &s), 0);
	assert_int_equal(s.delays[0], 0);
	assert_int_equal(s.delays[1], 0);
	assert_int_equal(s.delays[2], 90); /* at 100, until 140 */
	assert_int_equal(s.delays[3], 120);
	assert_int_equal(s.delays[4], 0);
	assert_int_equal(s.waited, 2);
	put_off_schedule_fini(&s);

	/* The third waits for the one that ends first. */
	assert_int_equal(put_off_schedule(&p, 2, &s), 0);
	assert_int_equal(s.delays[2], 0);
	assert_int_equal(s.delays[3], 30);
	put_off_schedule_fini(&s);

	assert_int_equal(put_off_schedule(&p, 1000, &s), 0);
	assert_int_equal(s.waited, 0);
	put_off_schedule_fini(&s);
	put_off_fini(&p);
	(void)state;
}

static uint64_t asked(struct torch_shift shift, uint64_t serial, uint64_t time_ns, uint64_t *end)
{
	struct torch_block b = {.serial = serial, .time_ns = time_ns, .address = serial};

	*end = UINT64_MAX;
	return shift.delay(shift.arg, &b, end);
}

static void test_blocks(void **state)
{
	struct put_off p = {0};
	struct put_off_schedule s;
	struct torch_shift shift;
	uint64_t end;

	assert_int_equal(vec_push(&p.units, unit(0, 100)), 0);
	assert_int_equal(vec_push(&p.units, unit(10, 50)), 0);
	p.units.items[0].ended = false;
	p.units.items[1].refused = true;
	assert_int_equal(vec_push(&p.owners, 0u), 0);
	assert_int_equal(vec_push(&p.owners, 1u), 0);
	assert_int_equal(vec_push(&p.owners, 2u), 0);
	assert_int_equal(put_off_schedule(&p, 1, &s), 0);
	shift = put_off_shift(&s);

	assert_int_equal(asked(shift, 1, 5, &end), 0); /* no request's */
	assert_int_equal(end, UINT64_MAX);
	assert_int_equal(asked(shift, 2, 30, &end), 0); /* in flight when the record ended */
	assert_int_equal(end, 70);
	assert_true(shift.ends(shift.arg, 2));
	assert_int_equal(asked(shift, 3, 30, &end), 90);
	assert_int_equal(end, 20);
	/* Refused as in the record, it leaves the same blocks; else it goes on, and ends. */
	assert_false(shift.ends(shift.arg, 3));
	shift.granted(shift.arg, 3);
	assert_true(shift.ends(shift.arg, 3));
	assert_int_equal(asked(shift, 4, 30, &end), 0); /* more than was seen */
	put_off_schedule_fini(&s);
	put_off_fini(&p);
	(void)state;
}

/* Threads stand for requests: those that ended, not the one that waits for them. */
static void test_threads(void **state)
{
	struct script *script = script_new();
	uint32_t cuda = script_space(script, "cuda:0"), torch = script_space(script, "torch:0");
	uint32_t stack = script_stack(script, "main;serve@/app/serve.py:12");
	struct callsites callsites = {.moment_ns = 1000000};
	struct verdict_result r = {.callsites = &callsites};
	struct put_off p;
	struct err err;

	script_space_alloc(script, cuda, stack, 1 << 20, 100 << 20);
	script_thread(script, 1, 0);
	script_space_alloc(script, torch, stack, 1 << 20, MiB);
	script_thread(script, 2, 0);
	script_space_alloc(script, torch, stack, 2 << 20, MiB);
	script_thread(script, 3, 0);
	script_space_alloc(script, torch, stack, 3 << 20, MiB);
	script_space_failed(script, torch, stack, 50 * MiB, 0);
	script_event(script, EV_THREAD_EXIT, TRACE_SPACE_HOST);
	script_thread(script, 2, 0);
	script_event(script, EV_THREAD_EXIT, TRACE_SPACE_HOST);
	script_thread(script, 1, 0);
	script_space_alloc(script, torch, stack, 4 << 20, MiB);

	assert_int_equal(put_off_read(&r, script_feed(script), 0, &p, &err), 0);
	assert_int_equal(p.owners.count, 5);
	assert_int_equal(p.units.count, 3);
	assert_int_equal(p.owners.items[0], p.owners.items[4]);
	assert_false(p.units.items[p.owners.items[0] - 1].request);
	assert_true(p.units.items[p.owners.items[1] - 1].request);
	assert_false(p.units.items[p.owners.items[1] - 1].refused);
	assert_true(p.units.items[p.owners.items[3] - 1].refused);
	assert_int_equal(p.owners.items[2], p.owners.items[3]);
	put_off_fini(&p);
	script_free(script);
	(void)state;
}

static uint64_t peak(const struct put_off *p, uint64_t most, uint64_t moment_ns, uint64_t *live)
{
	struct put_off_schedule s;
	uint64_t out;

	assert_int_equal(put_off_schedule(p, most, &s), 0);
	assert_int_equal(put_off_peak(&s, moment_ns, &out, live), 0);
	put_off_schedule_fini(&s);
	return out;
}

/* Three threads on the host, each with 10 MiB and for a while 20 more; one is refused 40, and
 * two MiB belong to no thread. */
static void test_host(void **state)
{
	struct script *script = script_new();
	uint32_t stack = script_stack(script, "main;serve@/app/serve.py:12");
	struct callsites callsites = {0};
	struct verdict_result r = {.callsites = &callsites};
	uint64_t kept[4], scratch[4], live, moment;
	struct put_off p;
	struct err err;

	script_alloc(script, stack, 2 * MiB);
	for (uint32_t i = 1; i < 4; i++) {
		script_thread(script, i + 1, 0);
		kept[i] = script_alloc(script, stack, 10 * MiB);
	}
	for (uint32_t i = 1; i < 3; i++) {
		script_thread(script, i + 1, 0);
		scratch[i] = script_alloc(script, stack, 20 * MiB);
	}
	script_thread(script, 4, 0);
	script_failed(script, stack, 40 * MiB);
	moment = script_now(script);
	r.failure = (struct failure_view){.time_ns = moment, .requested_bytes = 40 * MiB};
	callsites.moment_ns = moment;
	for (uint32_t i = 1; i < 4; i++) {
		script_thread(script, i + 1, 0);
		if (i < 3)
			script_release(script, scratch[i]);
		script_release(script, kept[i]);
		script_event(script, EV_THREAD_EXIT, TRACE_SPACE_HOST);
	}
	assert_int_equal(put_off_read(&r, script_feed(script), PUT_OFF_HOST, &p, &err), 0);
	assert_int_equal(p.units.count, 4);
	for (uint32_t i = 1; i < 4; i++)
		p.units.items[i].request = true;

	/* As it was, with the refused block; two at once; one after another. */
	assert_int_equal(peak(&p, 3, moment, &live), 2 * MiB + 70 * MiB + 40 * MiB);
	assert_int_equal(live, 2 * MiB + 70 * MiB);
	/* The third begins when the first is done, and asks for the 40 when the second is done,
	 * too. */
	assert_int_equal(peak(&p, 2, moment, &live), 2 * MiB + 60 * MiB);
	assert_int_equal(peak(&p, 1, moment, &live), 2 * MiB + 50 * MiB);
	put_off_fini(&p);
	script_free(script);
	(void)state;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_schedule),
	    cmocka_unit_test(test_blocks),
	    cmocka_unit_test(test_threads),
	    cmocka_unit_test(test_host),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
