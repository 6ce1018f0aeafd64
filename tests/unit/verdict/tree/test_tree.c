/* What each process of a run held when one of them was refused memory. */
#include <errno.h>
#include <signal.h>

#include "recorded.h"

#include "verdict/ledger/ledger.h"
#include "verdict/verdict.h"

#define MIB (1ull << 20)

static void begin(struct compose *c, uint32_t pid, uint64_t start, const char *visible)
{
	compose_begin(c);
	compose_header(c)->pid = pid;
	compose_header(c)->ppid = 1;
	compose_header(c)->start_ticks = compose_header(c)->start_mono_ns = start;
	compose_header(c)->start_real_ns += start;
	compose_chunk(c, TRACE_CHUNK_DEFINITIONS, 0, 0, start, TRACE_SLOT_BYTES);
	compose_head(c)->mono_ns = start;
	DEF_STACK(c, 1, 0, 0, 0x1000, 0x2000);
	def_info(c, "exe", "/opt/prog");
	if (visible)
		def_info(c, "env.CUDA_VISIBLE_DEVICES", visible);
	def_begin(c, TRACE_DEF_SPACE);
	put_varint(c, 1);
	put_text(c, "cuda:0");
	put_varint(c, 0);
	def_end(c, true);
	compose_chunk(c, TRACE_CHUNK_EVENTS, 1, 0, start, 4 * TRACE_SLOT_BYTES);
	compose_head(c)->mono_ns = start;
}

static void device_block(struct compose *c, uint64_t ns, uint64_t address, uint64_t size)
{
	PUT_EVENT(c, ns, TRACE_SPACE_ALLOC, 1, 0, address, size, 1, 0, 1, 0, 0, 0);
}

static void refused(struct compose *c, uint64_t ns)
{
	compose_header(c)->flags |= TRACE_FLAG_FAILED;
	PUT_EVENT(c, ns, TRACE_FAILED, TRACE_SPACE_HOST, TRACE_API_MALLOC, TRACE_FAIL_ERRNO, 12,
	    1u << 30, 16, 0, 1, 0);
}

static const struct process *process(const struct verdict_result *r, uint32_t pid)
{
	for (size_t i = 0; i < r->tree.count; i++)
		if (r->tree.processes[i].pid == pid)
			return &r->tree.processes[i];
	fail_msg("no process %u", pid);
	return NULL;
}

/* One grows after the moment, one ended before it, one is refused later and uses another GPU. */
static void beside_each_other(void **state)
{
	const uint64_t ms = 1000000;
	struct verdict_result r;
	const struct process *p;
	struct trace_set set;
	struct err err = {""};
	struct compose c;

	begin(&c, 2, 1000 * ms, "1"); /* the first to be refused, though the smallest */
	put_alloc(&c, 1100 * ms, 0x100000, 4 * MIB, 1);
	device_block(&c, 1200 * ms, 0x7f0000000000, 64 * MIB);
	refused(&c, 2000 * ms);
	compose_header(&c)->end_how = TRACE_END_EXIT;
	compose_header(&c)->end_code = 1;
	recorded_save(&c, "d/2.0.whyoom");

	begin(&c, 3, 500 * ms, NULL);
	put_alloc(&c, 600 * ms, 0x100000, 10 * MIB, 1);
	device_block(&c, 700 * ms, 0x7f0000000000, 32 * MIB);
	put_alloc(&c, 2400 * ms, 0x10000000, 100 * MIB, 1);
	refused(&c, 2500 * ms);
	compose_header(&c)->end_how = TRACE_END_EXIT;
	compose_header(&c)->end_code = 1;
	recorded_save(&c, "d/3.0.whyoom");

	begin(&c, 4, 100 * ms, NULL);
	put_alloc(&c, 200 * ms, 0x100000, 50 * MIB, 1);
	compose_header(&c)->end_how = TRACE_END_EXIT;
	recorded_save(&c, "d/4.0.whyoom");

	assert_int_equal(trace_set_open(scratch("d"), &set, &err), 0);
	assert_int_equal(verdict_of_set(&set, NULL, &r, &err), 0);
	assert_int_equal(r.tree.processes[r.tree.subject].pid, 2);
	assert_true(r.tree.siblings_live >= 10 * MIB);
	assert_int_equal(r.tree.siblings_live, process(&r, 3)->memory[0].held);
	p = process(&r, 2);
	assert_int_equal(p->ppid, 1);
	assert_int_equal(p->refused_ns, 1000 * ms);
	assert_int_equal(p->late_ns, 0);
	assert_int_equal(p->memory_count, 2);
	assert_string_equal(p->memory[0].space, "host");
	assert_int_equal(p->memory[0].gpu, GPU_NONE);
	assert_int_equal(p->memory[0].held, 4 * MIB);
	assert_string_equal(p->memory[1].space, "cuda:0");
	assert_int_equal(p->memory[1].gpu, 1); /* the machine's number */
	assert_int_equal(p->memory[1].held, 64 * MIB);
	p = process(&r, 3);
	assert_int_equal(p->late_ns, 500 * ms);
	assert_int_equal(p->memory[0].held, 10 * MIB);
	assert_int_equal(p->memory[0].peak, 110 * MIB);
	assert_int_equal(p->memory[1].gpu, 0);
	assert_int_equal(p->memory[1].held, 32 * MIB);
	p = process(&r, 4); /* ended by then */
	assert_int_equal(p->refused_ns, 0);
	assert_int_equal(p->memory[0].held, 0);
	assert_int_equal(p->memory[0].peak, 50 * MIB);
	verdict_fini(&r);
	trace_set_close(&set);
}

/* Memory from before an exec no longer exists. */
static void after_exec(void **state)
{
	const uint64_t ms = 1000000;
	struct verdict_result r;
	struct trace_set set;
	struct err err = {""};
	struct compose c;

	begin(&c, 2, 100 * ms, NULL);
	put_alloc(&c, 200 * ms, 0x100000, 50 * MIB, 1);
	recorded_save(&c, "d/2.0.whyoom");
	begin(&c, 2, 300 * ms, NULL);
	compose_header(&c)->image = 1;
	put_alloc(&c, 400 * ms, 0x100000, 7 * MIB, 1);
	refused(&c, 500 * ms);
	compose_header(&c)->end_how = TRACE_END_EXIT;
	compose_header(&c)->end_code = 1;
	recorded_save(&c, "d/2.1.whyoom");
	assert_int_equal(trace_set_open(scratch("d"), &set, &err), 0);
	assert_int_equal(verdict_of_set(&set, NULL, &r, &err), 0);
	assert_int_equal(r.tree.subject, 1);
	assert_int_equal(r.tree.processes[0].memory[0].held, 0);
	assert_int_equal(r.tree.processes[1].memory[0].held, 7 * MIB);
	verdict_fini(&r);
	trace_set_close(&set);
}

/* A waiting worker records nothing: it lived for as long as the supervisor saw it. */
static void while_it_waits(void **state)
{
	const uint64_t ms = 1000000;

	for (int seen = 0; seen < 2; seen++) {
		struct verdict_result r;
		struct trace_set set;
		struct err err = {""};
		struct compose c;

		begin(&c, 2, 100 * ms, NULL);
		put_alloc(&c, 200 * ms, 0x100000, 4 * MIB, 1);
		refused(&c, 2000 * ms);
		compose_header(&c)->end_how = TRACE_END_EXIT;
		compose_header(&c)->end_code = 1;
		recorded_save(&c, "d/2.0.whyoom");
		begin(&c, 3, 100 * ms, NULL);
		compose_header(&c)->end_how = TRACE_END_NONE;
		put_alloc(&c, 600 * ms, 0x100000, 10 * MIB, 1);
		recorded_save(&c, "d/3.0.whyoom");
		compose_begin(&c);
		compose_header(&c)->mode = TRACE_MODE_SUPERVISOR;
		compose_header(&c)->start_mono_ns = 100 * ms;
		compose_chunk(&c, TRACE_CHUNK_EVENTS, 1, 0, 100 * ms, TRACE_SLOT_BYTES);
		compose_head(&c)->mono_ns = 100 * ms;
		PUT_EVENT(&c, 700 * ms, TRACE_LEVEL_OF, 3, 1, TRACE_LEVEL_RSS, 12 * MIB);
		if (seen)
			PUT_EVENT(&c, 2500 * ms, TRACE_LEVEL_OF, 3, 1, TRACE_LEVEL_RSS, 12 * MIB);
		recorded_save(&c, "d/run.whyoom");
		assert_int_equal(trace_set_open(scratch("d"), &set, &err), 0);
		assert_int_equal(verdict_of_set(&set, NULL, &r, &err), 0);
		assert_int_equal(r.tree.processes[r.tree.subject].pid, 2);
		assert_int_equal(process(&r, 3)->resident, seen ? 12 * MIB : 0);
		assert_int_equal(process(&r, 3)->memory[0].held, seen ? 10 * MIB : 0);
		verdict_fini(&r);
		trace_set_close(&set);
	}
	(void)state;
}

/* A worker is refused memory beside siblings: one that does as much, one that ended just then,
 * one that does next to nothing, one that ended long before. */
static void workers_of_a_pool(void **state)
{
	static const struct {
		uint64_t resident, end_ms;
	} of[] = {{100 * MIB, 0}, {90 * MIB, 0}, {80 * MIB, 1980}, {10 * MIB, 0}, {90 * MIB, 900}};
	const uint64_t ms = 1000000;
	struct verdict_result r;
	struct trace_set set;
	struct err err = {""};
	struct compose c;

	for (uint32_t i = 0; i < sizeof(of) / sizeof(*of); i++) {
		char name[32];

		begin(&c, i + 2, 100 * ms, NULL);
		put_alloc(&c, 200 * ms, 0x100000, 4 * MIB, 1);
		PUT_EVENT(&c, 300 * ms, TRACE_LEVEL, TRACE_SPACE_HOST, 1, TRACE_LEVEL_RSS,
		    of[i].resident);
		if (i) {
			put_alloc(
			    &c, (of[i].end_ms ? of[i].end_ms : 2100) * ms, 0x10000000, MIB, 1);
		} else {
			refused(&c, 2000 * ms);
			compose_header(&c)->end_code = 1;
		}
		compose_header(&c)->end_how = TRACE_END_EXIT;
		snprintf(name, sizeof(name), "d/%u.0.whyoom", i + 2);
		recorded_save(&c, name);
	}
	assert_int_equal(trace_set_open(scratch("d"), &set, &err), 0);
	assert_int_equal(verdict_of_set(&set, NULL, &r, &err), 0);
	assert_int_equal(r.tree.processes[r.tree.subject].pid, 2);
	assert_int_equal(r.tree.workers.count, 2);
	assert_int_equal(r.tree.workers.bytes, 170 * MIB);
	verdict_fini(&r);
	trace_set_close(&set);
	(void)state;
}

#define SHM_SIZE (64 * MIB)
/* Nobody saw these end: a process without a known end is not taken for a running one. */
#define TRAINER 5000002u
#define WORKER 5000003u

/* A file of /dev/shm, with `used` bytes in use there and `written` of the file's own before. */
static void shm_file(struct compose *c, uint64_t ns, uint64_t number, uint64_t bytes, uint64_t used,
    uint64_t written)
{
	PUT_EVENT(c, ns, TRACE_MAP, 0x7f0000000000 + (number << 30), bytes, 3, TRACE_API_MMAP,
	    TRACE_MAP_SHARED, TRACE_BACKING_SHM, 0, 0, 1, 5, TRACE_LEVEL_SHM_TOTAL, SHM_SIZE,
	    TRACE_LEVEL_SHM_FREE, SHM_SIZE - used, TRACE_LEVEL_SHM_DEVICE, 39, TRACE_LEVEL_SHM_FILE,
	    number, TRACE_LEVEL_SHM_WRITTEN, written);
}

/* A worker dies of a full /dev/shm, or is refused there; the process that keeps its files filled
 * it. If no process does, it is the worker. Files that both have mapped count once. */
static void full_shm(void **state)
{
	const uint64_t ms = 1000000;

	for (int kept = 0; kept < 2; kept++)
		for (int asked = 0; asked < 2; asked++) {
			struct verdict_result r;
			struct trace_set set;
			struct err err = {""};
			struct compose c;
			uint64_t files, siblings, used = 4 * MIB; /* of another process */

			begin(&c, TRAINER, 100 * ms, NULL); /* the trainer */
			for (uint64_t i = 1; kept && i <= 29; i++)
				shm_file(
				    &c, (200 + i) * ms, i, 2 * MIB, used + i * 2 * MIB, 2 * MIB);
			put_alloc(&c, 900 * ms, 0x100000, 64, 1);
			PUT_EVENT(&c, 950 * ms, TRACE_EXIT, TRACE_END_EXIT, 1);
			compose_header(&c)->end_how = TRACE_END_EXIT;
			compose_header(&c)->end_code = 1;
			recorded_save(&c, "d/2.0.whyoom");

			begin(&c, WORKER, 110 * ms, NULL); /* the worker */
			used += kept ? 58 * MIB : 0;
			for (uint64_t i = kept ? 29 : 1; i <= 31; i++) {
				bool there = kept && i == 29;

				shm_file(&c, (300 + i) * ms, i, 2 * MIB, used, there ? 2 * MIB : 0);
				used += there ? 0 : 2 * MIB;
			}
			if (asked)
				PUT_EVENT(&c, 400 * ms, TRACE_FAILED, TRACE_SPACE_HOST,
				    TRACE_API_FALLOCATE, TRACE_FAIL_ERRNO, 28, 2 * MIB, 0, 0, 1, 3,
				    TRACE_LEVEL_SHM_TOTAL, SHM_SIZE, TRACE_LEVEL_SHM_FREE, 0,
				    TRACE_LEVEL_SHM_DEVICE, 39);
			compose_header(&c)->end_how = asked ? TRACE_END_EXIT : TRACE_END_NONE;
			recorded_save(&c, "d/3.0.whyoom");

			assert_int_equal(trace_set_open(scratch("d"), &set, &err), 0);
			assert_int_equal(verdict_of_set(&set, NULL, &r, &err), 0);
			assert_int_equal(r.failure.limit, LIMIT_SHM);
			assert_int_equal(r.failure.kind, asked ? FAILURE_HOST_ALLOC : FAILURE_BUS);
			assert_int_equal(r.failure.pid, WORKER);
			assert_int_equal(
			    r.tree.processes[r.tree.subject].pid, kept ? TRAINER : WORKER);
			assert_int_equal(r.ledger.pid, kept ? TRAINER : WORKER);
			assert_int_equal(r.ledger.unaccounted, 0);
			assert_int_equal(r.ledger.limit_bytes, SHM_SIZE);
			files = ledger_get(&r.ledger, "other files");
			siblings = ledger_get(&r.ledger, "other processes");
			/* One of the worker's last two has no memory, and it is unknown which. */
			assert_int_equal(files + siblings, kept ? 6 * MIB : 4 * MIB);
			assert_int_equal(siblings, kept ? 4 * MIB : 0);
			verdict_fini(&r);
			trace_set_close(&set);
		}
	(void)state;
}

static void shm_closed(struct compose *c, uint64_t ns, uint64_t number, uint64_t bytes)
{
	PUT_EVENT(c, ns, TRACE_UNMAP, 0x7f0000000000 + (number << 30), bytes, TRACE_API_MUNMAP, 0);
}

/* A loader writes each batch to a file, and closes it. The trainer maps it and removes it; or
 * forgets to, until the file system is full. */
static void files_left_behind(void **state)
{
	const uint64_t ms = 1000000;

	for (int removes = 0; removes < 2; removes++) {
		struct verdict_result r;
		struct trace_set set;
		struct err err = {""};
		struct compose c;
		/* Of another process, when each is removed. */
		uint64_t others = removes ? 60 * MIB : 0, count = removes ? 200 : 30;

		begin(&c, TRAINER, 100 * ms, NULL);
		for (uint64_t i = 1; i <= count; i++) {
			shm_file(&c, (200 + 2 * i) * ms, i, 2 * MIB,
			    others + (removes ? 2 : 2 * i) * MIB, 2 * MIB);
			shm_closed(&c, (201 + 2 * i) * ms, i, 2 * MIB);
		}
		put_alloc(&c, 900 * ms, 0x100000, 64, 1);
		PUT_EVENT(&c, 950 * ms, TRACE_EXIT, TRACE_END_EXIT, 1);
		compose_header(&c)->end_how = TRACE_END_EXIT;
		compose_header(&c)->end_code = 1;
		recorded_save(&c, "d/2.0.whyoom");

		begin(&c, WORKER, 110 * ms, NULL);
		for (uint64_t i = 1; i <= count; i++) {
			shm_file(&c, (190 + 2 * i) * ms, i, 2 * MIB,
			    others + (removes ? 0 : 2 * (i - 1)) * MIB, 0);
			shm_closed(&c, (191 + 2 * i) * ms, i, 2 * MIB);
		}
		shm_file(&c, 800 * ms, 999, 4 * MIB, others + (removes ? 2 : 60) * MIB, 0);
		shm_file(&c, 801 * ms, 1000, 4 * MIB, SHM_SIZE - MIB, 0);
		compose_header(&c)->end_how = TRACE_END_NONE;
		recorded_save(&c, "d/3.0.whyoom");

		assert_int_equal(trace_set_open(scratch("d"), &set, &err), 0);
		assert_int_equal(verdict_of_set(&set, NULL, &r, &err), 0);
		assert_int_equal(r.failure.limit, LIMIT_SHM);
		assert_int_equal(r.tree.unmapped_volume, count * 2 * MIB);
		assert_int_equal(r.ledger.unaccounted, 0);
		if (removes) {
			assert_int_equal(ledger_get(&r.ledger, "files left behind"), 0);
			assert_true(ledger_get(&r.ledger, "other files") > 50 * MIB);
		} else {
			assert_true(ledger_get(&r.ledger, "files left behind") > 50 * MIB);
			assert_int_equal(ledger_get(&r.ledger, "other files"), 0);
			assert_int_equal(r.verdict.cause, CAUSE_LEAK);
			assert_int_equal(r.ranking.list[0].finding.form, FORM_FILES);
		}
		verdict_fini(&r);
		trace_set_close(&set);
	}
	(void)state;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    scratch_test(beside_each_other),
	    scratch_test(after_exec),
	    scratch_test(while_it_waits),
	    scratch_test(workers_of_a_pool),
	    scratch_test(full_shm),
	    scratch_test(files_left_behind),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
