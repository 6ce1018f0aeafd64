#include "verdict/judged.h"

#include "model/space/space.h"
#include "verdict/device/device.h"
#include "verdict/ledger/classes.h"

/* The verdict on a device: weights, requests, a fragmented cache, and a request that no level can
 * serve. */
static struct script *out_of_memory(void)
{
	struct script *s = script_new();
	uint32_t cuda = script_space(s, "cuda:0"), torch = script_space(s, "torch:0");
	uint32_t load = script_stack(s, "main@/app/serve.py:3;load@/app/model.py:9");
	uint32_t work = script_stack(s, "main@/app/serve.py:3;answer@/app/serve.py:20");
	uint32_t blas = script_stack(s, "main@/app/serve.py:3;blas@/lib/libcublas.so");

	script_space_level(
	    s, cuda, TRACE_LEVEL_DEV_FREE, 900 * MiB, TRACE_LEVEL_DEV_TOTAL, 1024 * MiB);
	script_space_alloc(s, cuda, load, 0x10000000, 400 * MiB);
	script_space_alloc(s, torch, load, 0x10000000, 400 * MiB);
	script_space_alloc(s, cuda, blas, 0x40000000, 32 * MiB);
	for (uint64_t i = 0; i < 10; i++) {
		script_space_alloc(s, cuda, work, 0x50000000 + i * 20 * MiB, 20 * MiB);
		for (int k = 0; k < 2; k++) {
			script_space_alloc(s, torch, work, 0x50000000 + i * 20 * MiB, 12 * MiB);
			script_space_free(s, torch, 0x50000000 + i * 20 * MiB);
		}
		script_space_alloc(s, torch, work, 0x50000000 + i * 20 * MiB, 12 * MiB);
	}
	script_space_level(
	    s, torch, TRACE_LEVEL_RESERVED, 600 * MiB, TRACE_LEVEL_ALLOCATED, 520 * MiB);
	script_space_level(
	    s, cuda, TRACE_LEVEL_DEV_FREE, 268 * MiB, TRACE_LEVEL_DEV_TOTAL, 1024 * MiB);
	script_space_failed(s, cuda, work, 600 * MiB, 1);
	script_space_failed(s, torch, work, 599 * MiB, 1);
	script_exit(s, 1);
	return s;
}

/* The request is larger than every earlier one of its call site, and than every free range. */
static void one_large_request(void **state)
{
	struct script *s = out_of_memory();
	struct verdict_result r;
	const struct device_report *d;

	judge_script(s, NULL, &r);
	d = r.devices.first;
	assert_int_equal(r.failure.kind, FAILURE_CUDA_OOM);
	assert_string_equal(failure_kind_name(r.failure.kind), "cuda-oom");
	assert_int_equal(r.failure.requested_bytes, 599 * MiB);
	assert_int_equal(r.verdict.cause, CAUSE_OVERSIZED_INTERMEDIATE);
	assert_string_equal(r.verdict.blame.function, "answer");
	assert_non_null(strstr(r.verdict.summary, "599 MiB"));
	assert_true(r.what_ifs.count >= 2);
	assert_true(r.verdict.fix_count >= 1);
	assert_true(d->failed);
	assert_string_equal(d->space, "torch:0");
	assert_string_equal(d->below, "cuda:0");
	assert_int_equal(d->segment, 600 * MiB);
	assert_int_equal(d->reserved, 600 * MiB);
	assert_int_equal(d->live_bytes, 520 * MiB);
	assert_int_equal(d->largest_hole, 8 * MiB);
	assert_int_equal(d->unattributed, 124 * MiB);
	assert_string_equal(d->stats_list[0].function, "load");
	assert_string_equal(d->stats_list[1].function, "answer");
	assert_int_equal(d->stats_list[1].bytes, 120 * MiB);
	verdict_fini(&r);
	script_free(s);
}

static uint64_t live_rows(const struct ledger *l)
{
	uint64_t sum = row_of(l, "other live blocks");

	for (unsigned i = 0; i < CLASS_COUNT; i++)
		sum += row_of(l, class_name(i));
	return sum;
}

static void rows(void **state)
{
	struct script *s = out_of_memory();
	struct verdict_result r;
	const struct ledger *l = &r.ledger;

	judge_script(s, NULL, &r);
	assert_string_equal(l->space, "cuda:0");
	assert_int_equal(l->limit, LIMIT_DEVICE);
	assert_int_equal(l->limit_bytes, 1024 * MiB);
	assert_int_equal(live_rows(l), 520 * MiB);
	assert_int_equal(row_of(l, "PyTorch slack, fragmented"), 80 * MiB);
	assert_int_equal(row_of(l, "PyTorch slack, can be used"), 0);
	assert_int_equal(row_of(l, "non-PyTorch"), 32 * MiB);
	assert_int_equal(row_of(l, "free"), 268 * MiB);
	assert_int_equal(l->unaccounted, 124 * MiB);
	verdict_fini(&r);
	script_free(s);
}

/* Blocks that a checkpoint replaced have no event and look like free ranges. PyTorch's own count
 * tells their size. */
static void not_known_one_by_one(void **state)
{
	for (int past = 0; past < 2; past++) {
		struct script *s = script_new();
		uint32_t cuda = script_space(s, "cuda:0"), torch = script_space(s, "torch:0");
		uint32_t work = script_stack(s, "main@/app/serve.py:3;answer@/app/serve.py:20");
		struct verdict_result r;
		struct event *e;

		script_space_alloc(s, cuda, work, 1 << 28, 100 * MiB);
		script_space_alloc(s, torch, work, 1 << 28, 60 * MiB);
		script_space_level(
		    s, cuda, TRACE_LEVEL_DEV_FREE, 1 * MiB, TRACE_LEVEL_DEV_TOTAL, 101 * MiB);
		script_space_level(
		    s, torch, TRACE_LEVEL_RESERVED, 100 * MiB, TRACE_LEVEL_ALLOCATED, 90 * MiB);
		script_space_failed(s, cuda, work, 64 * MiB, 1);
		script_space_failed(s, torch, work, 64 * MiB, 1);
		e = script_event(s, EV_CHECKPOINT, TRACE_SPACE_HOST);
		script_facts(s)->checkpoint.number = 1;
		script_facts(s)->checkpoint.until_ns = past ? e->time_ns : 1;
		script_exit(s, 1);
		judge_script(s, NULL, &r);
		assert_true(ledger_adds_up(&r.devices.first->ledger));
		assert_int_equal(row_of(&r.devices.first->ledger, "live, not known one by one"),
		    past ? 30 * MiB : 0);
		assert_int_equal(row_of(&r.devices.first->ledger, "PyTorch slack, fragmented"),
		    past ? 10 * MiB : 40 * MiB);
		verdict_fini(&r);
		script_free(s);
	}
	(void)state;
}

/* After a refusal, a segment without a block is beyond the flush, and a free range that fits
 * belongs to another stream. Without a refusal, both are usable. */
static void slack(void **state)
{
	for (int refused = 0; refused < 2; refused++) {
		struct script *s = script_new();
		uint32_t cuda = script_space(s, "cuda:0"), torch = script_space(s, "torch:0");
		uint32_t work = script_stack(s, "main@/app/serve.py:3;answer@/app/serve.py:20");
		struct verdict_result r;
		const struct ledger *l;

		for (uint64_t i = 1; i <= 3; i++)
			script_space_alloc(s, cuda, work, i << 28, 100 * MiB);
		script_space_alloc(s, torch, work, 1 << 28, 60 * MiB);
		script_space_alloc(s, torch, work, 2 << 28, 95 * MiB);
		script_space_alloc(s, torch, work, 3 << 28, 90 * MiB);
		script_space_free(s, torch, 3 << 28);
		script_space_level(
		    s, cuda, TRACE_LEVEL_DEV_FREE, 1 * MiB, TRACE_LEVEL_DEV_TOTAL, 301 * MiB);
		if (refused) {
			script_space_failed(s, cuda, work, 40 * MiB, 1);
			script_space_failed(s, torch, work, 40 * MiB, 1);
		} else {
			script_space_alloc(s, cuda, work, 4ull << 28, 1 * MiB);
		}
		script_exit(s, refused);
		judge_script(s, NULL, &r);
		l = &r.devices.first->ledger;
		assert_true(ledger_adds_up(l));
		if (refused) {
			assert_int_equal(row_of(l, "PyTorch slack, kept apart"), 140 * MiB);
			assert_int_equal(row_of(l, "PyTorch slack, fragmented"), 5 * MiB);
		} else {
			assert_int_equal(row_of(l, "PyTorch slack, can be used"), 145 * MiB);
		}
		assert_int_equal(l->unaccounted, 0);
		verdict_fini(&r);
		script_free(s);
	}
	(void)state;
}

/* A neighbour came after the context. Later levels of this process tell what the context takes. */
static void context_beside_others(void **state)
{
	struct script *s = script_new();
	static const struct event_level after[] = {
	    {TRACE_LEVEL_DEV_FREE, 872 * MiB}, {TRACE_LEVEL_DEV_TOTAL, 1000 * MiB}};
	uint32_t cuda = script_space(s, "cuda:0");
	uint32_t work = script_stack(s, "main@/app/serve.py:3;answer@/app/serve.py:20");
	struct event *e = script_event(s, EV_SPACE_CALL, cuda);
	struct verdict_result r;

	e->u.space.api = "cuDevicePrimaryCtxRetain";
	e->levels = after;
	e->level_count = 2;
	script_space_alloc(s, cuda, work, 1 << 28, 300 * MiB);
	e = script_event(s, EV_OUTSIDE, 0);
	e->u.device.free = 172 * MiB;
	e->u.device.total = 1000 * MiB;
	e->u.device.own = 428 * MiB;
	e->u.device.own_known = e->u.device.named = true;
	e->u.device.others = 400 * MiB;
	script_space_level(
	    s, cuda, TRACE_LEVEL_DEV_FREE, 172 * MiB, TRACE_LEVEL_DEV_TOTAL, 1000 * MiB);
	script_space_failed(s, cuda, work, 200 * MiB, 1);
	script_exit(s, 1);
	judge_script(s, NULL, &r);
	assert_int_equal(row_of(&r.ledger, "CUDA context and modules"), 128 * MiB);
	assert_int_equal(row_of(&r.ledger, "other processes"), 400 * MiB);
	assert_int_equal(r.ledger.unaccounted, 0);
	verdict_fini(&r);
	script_free(s);
	(void)state;
}

/* PyTorch refused although the device has room: the limit is its allowed share. */
static void capped(void **state)
{
	struct script *s = script_new();
	uint32_t cuda = script_space(s, "cuda:0"), torch = script_space(s, "torch:0");
	uint32_t work = script_stack(s, "main@/app/serve.py:3;answer@/app/serve.py:20");
	struct verdict_result r;

	script_info(s, "env.PYTORCH_CUDA_ALLOC_CONF", "per_process_memory_fraction:0.5");
	script_space_level(
	    s, cuda, TRACE_LEVEL_DEV_FREE, 1000 * MiB, TRACE_LEVEL_DEV_TOTAL, 1000 * MiB);
	script_space_alloc(s, cuda, work, 1 << 28, 400 * MiB);
	script_space_alloc(s, torch, work, 1 << 28, 400 * MiB);
	script_space_failed(s, torch, work, 200 * MiB, 1);
	script_exit(s, 1);
	judge_script(s, NULL, &r);
	assert_int_equal(r.ledger.limit, LIMIT_TORCH);
	assert_string_equal(limit_kind_name(r.failure.limit), "PyTorch memory fraction");
	assert_int_equal(r.ledger.limit_bytes, 500 * MiB);
	assert_int_equal(live_rows(&r.ledger), 400 * MiB);
	assert_int_equal(row_of(&r.ledger, "free"), 100 * MiB);
	assert_int_equal(r.failure.usage_bytes, 400 * MiB);
	verdict_fini(&r);
	script_free(s);
	(void)state;
}

/* The rows add up, whatever the events and levels. */
static void any_device(void **state)
{
	uint64_t seed = 99;

	for (int i = 0; i < 300; i++) {
		struct script *s = script_new();
		uint32_t cuda = script_space(s, "cuda:0"), pool = script_space(s, "pool:0");
		uint32_t torch = dice(&seed, 3) ? script_space(s, "torch:0") : pool;
		uint32_t stacks[] = {script_stack(s, "main;load"), script_stack(s, "main;work")};
		struct verdict_result r;

		for (uint64_t k = 1; k < 2 + dice(&seed, 40); k++) {
			script_space_alloc(
			    s, cuda, stacks[k % 2], k << 28, (1 + dice(&seed, 99)) * MiB);
			script_space_alloc(
			    s, torch, stacks[dice(&seed, 2)], k << 28, (1 + dice(&seed, 99)) * MiB);
			if (dice(&seed, 2))
				script_space_free(s, torch, k << 28);
			if (!dice(&seed, 4))
				script_space_level(s, cuda, TRACE_LEVEL_DEV_FREE,
				    dice(&seed, 8 * GiB), TRACE_LEVEL_DEV_TOTAL,
				    dice(&seed, 8 * GiB));
		}
		if (dice(&seed, 2))
			script_space_failed(s, cuda, stacks[1], 1 + dice(&seed, GiB), 1);
		if (dice(&seed, 2))
			script_space_failed(s, torch, stacks[1], 1 + dice(&seed, GiB), 1);
		script_exit(s, 1);
		judge_script(s, NULL, &r);
		for (size_t k = 0; k < r.devices.count; k++)
			assert_true(ledger_adds_up(&r.devices.list[k].ledger));
		verdict_fini(&r);
		script_free(s);
	}
	(void)state;
}

/* Without a failure of the device the host's answer stands, and the report shows the device
 * beside it. */
static void beside_the_host(void **state)
{
	struct script *s = script_new();
	uint32_t cuda = script_space(s, "cuda:0");
	struct verdict_result r;
	struct event *e;

	script_space_alloc(s, cuda, script_stack(s, "main"), 0x10000000, 10 * MiB);
	script_space_failed(s, cuda, script_stack(s, "main"), 20 * MiB, 1);
	e = script_event(s, EV_SPACE_ALLOC, cuda);
	e->address = 0x20000000;
	e->size = 20 * MiB;
	e->u.space.retry = 1;
	script_alloc(s, script_stack(s, "main"), 100);
	script_exit(s, 0);
	judge_script(s, NULL, &r);
	assert_int_equal(r.failure.kind, FAILURE_NONE);
	assert_null(r.ledger.space);
	assert_non_null(r.devices.first);
	assert_false(r.devices.first->failed);
	assert_int_equal(r.devices.first->live_bytes, 30 * MiB);
	assert_true(ledger_adds_up(&r.devices.first->ledger));
	assert_int_equal(r.recoveries.count, 1);
	assert_string_equal(r.recoveries.list[0].space, "cuda:0");
	assert_true(r.recoveries.list[0].retried);
	verdict_fini(&r);
	script_free(s);
}

static void no_device(void **state)
{
	struct script *s = script_new();
	struct verdict_result r;

	script_alloc(s, script_stack(s, "main"), 100);
	judge_script(s, NULL, &r);
	assert_null(r.devices.first);
	verdict_fini(&r);
	script_free(s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(one_large_request),
	    cmocka_unit_test(rows),
	    cmocka_unit_test(slack),
	    cmocka_unit_test(not_known_one_by_one),
	    cmocka_unit_test(capped),
	    cmocka_unit_test(context_beside_others),
	    cmocka_unit_test(any_device),
	    cmocka_unit_test(beside_the_host),
	    cmocka_unit_test(no_device),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
