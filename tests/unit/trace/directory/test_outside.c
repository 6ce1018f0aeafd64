#include "../events.h"

#define SHIFT 1000u /* the supervisor began earlier by this; its clock counts from there */

/* Two devices; pid 4711 uses the second one. */
static struct trace *supervisor(struct compose *c)
{
	compose_begin(c);
	compose_header(c)->mode = TRACE_MODE_SUPERVISOR;
	compose_chunk(c, TRACE_CHUNK_DEFINITIONS, 0, 0, 0, TRACE_SLOT_BYTES);
	def_space(c, 1, "gpu:0");
	def_space(c, 2, "gpu:1");
	def_info(c, "gpu.0.uuid", "GPU-aaaa-1");
	def_info(c, "gpu.1.uuid", "GPU-bbbb-2");
	compose_chunk(c, TRACE_CHUNK_EVENTS, 1, 0, 0, TRACE_SLOT_BYTES);
	PUT_EVENT(c, SHIFT + 100, TRACE_LEVEL_OF, 4711, 1, TRACE_LEVEL_RSS, 5); /* of 1.0 */
	PUT_EVENT(c, SHIFT + 200, TRACE_LEVEL, 2, 3, TRACE_LEVEL_DEV_FREE, 90,
	    TRACE_LEVEL_DEV_TOTAL, 100, TRACE_LEVEL_AGE_NS, 50);
	PUT_EVENT(c, SHIFT + 300, TRACE_LEVEL_OF, 4711, 1, TRACE_LEVEL_DEV_USED, 30, 2);
	PUT_EVENT(c, SHIFT + 300, TRACE_LEVEL_OF, 4712, 1, TRACE_LEVEL_DEV_USED, 20, 2);
	PUT_EVENT(c, SHIFT + 300, TRACE_LEVEL_OF, 4712, 1, TRACE_LEVEL_DEV_USED, 7, 1);
	PUT_EVENT(c, SHIFT + 300, TRACE_LEVEL, 2, 2, TRACE_LEVEL_DEV_FREE, 50,
	    TRACE_LEVEL_DEV_TOTAL, 100);
	PUT_EVENT(c, SHIFT + 400, TRACE_LEVEL_OF, 4712, 1, TRACE_LEVEL_DEV_USED, 0, 2);
	PUT_EVENT(c, SHIFT + 400, TRACE_LEVEL, 2, 2, TRACE_LEVEL_DEV_FREE, 70,
	    TRACE_LEVEL_DEV_TOTAL, 100);
	return open_composed(c);
}

static struct trace *process(struct compose *c, const char *visible)
{
	compose_begin(c);
	compose_header(c)->start_ticks = compose_header(c)->start_mono_ns = SHIFT;
	compose_chunk(c, TRACE_CHUNK_DEFINITIONS, 0, 0, SHIFT, TRACE_SLOT_BYTES);
	compose_head(c)->mono_ns = SHIFT;
	if (visible)
		def_info(c, "env.CUDA_VISIBLE_DEVICES", visible);
	compose_chunk(c, TRACE_CHUNK_EVENTS, 1, 0, SHIFT, TRACE_SLOT_BYTES);
	compose_head(c)->mono_ns = SHIFT;
	put_alloc(c, SHIFT + 180, 0x1000, 1, 0);
	put_alloc(c, SHIFT + 350, 0x2000, 2, 0);
	return open_composed(c);
}

/* Samples at their own times, with the devices' processes of then; samples after the last event
 * are dropped. */
static void in_order(void **state)
{
	struct compose a, b;
	struct trace *outside = supervisor(&a), *t = process(&b, NULL);
	struct event e;
	struct err err;

	outside_set(t, outside);
	for (int pass = 0; pass < 2; pass++) {
		assert_int_equal(trace_next_outside(t, &e, &err), 1);
		assert_int_equal(e.kind, EV_OUTSIDE);
		assert_int_equal(e.time_ns, 150); /* it was 50 old */
		assert_int_equal(e.u.device.number, 1);
		assert_int_equal(e.u.device.free, 90);
		assert_false(e.u.device.named);
		assert_false(e.u.device.own_known);
		assert_int_equal(trace_next_outside(t, &e, &err), 1);
		assert_int_equal(e.kind, EV_ALLOC);
		assert_int_equal(e.time_ns, 180);
		assert_int_equal(trace_next_outside(t, &e, &err), 1);
		assert_int_equal(e.kind, EV_OUTSIDE);
		assert_int_equal(e.time_ns, 300);
		assert_int_equal(e.u.device.total, 100);
		assert_true(e.u.device.own_known && e.u.device.named);
		assert_int_equal(e.u.device.own, 30);
		assert_int_equal(e.u.device.others, 20);
		assert_int_equal(trace_next_outside(t, &e, &err), 1);
		assert_int_equal(e.kind, EV_ALLOC);
		assert_int_equal(e.address, 0x2000);
		assert_int_equal(trace_next_outside(t, &e, &err), 0);
		if (!pass) /* from the middle, too */
			trace_rewind(t);
	}
	trace_close(t);
	trace_close(outside);
	compose_free(&a);
	compose_free(&b);
}

/* The number of samples that the process gets of the second device, and that device's number. */
static void numbers(void **state)
{
	static const struct {
		const char *visible;
		int number; /* -1: not seen */
	} tries[] = {{"1", 0}, {"0,1", 1}, {"1,0", 0}, {"0", -1}, {"", -1}, {"GPU-bbbb", 0},
	    {"GPU-aaaa-1,GPU-bbbb-2", 1}, {"GPU-cccc,1", 1}, {"-1,1", -1}, {"none,1", -1},
	    {"1x", -1}};

	for (size_t i = 0; i < sizeof(tries) / sizeof(*tries); i++) {
		struct compose a, b;
		struct trace *outside = supervisor(&a), *t = process(&b, tries[i].visible);
		int samples = 0, r;
		struct event e;
		struct err err;

		outside_set(t, outside);
		while ((r = trace_next_outside(t, &e, &err)) > 0)
			if (e.kind == EV_OUTSIDE) {
				samples++;
				assert_int_equal(e.u.device.number, tries[i].number);
			}
		assert_int_equal(r, 0);
		assert_int_equal(samples, tries[i].number < 0 ? 0 : 2);
		trace_close(t);
		trace_close(outside);
		compose_free(&a);
		compose_free(&b);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(in_order),
	    cmocka_unit_test(numbers),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
