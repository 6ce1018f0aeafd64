/* Which of many processes the report is about, and the reason for each. */
#include <errno.h>
#include <signal.h>

#include "recorded.h"

#include "verdict/verdict.h"

/* `blocks` of one stack, one by one; its end; whether a request was refused at the end. */
struct made {
	uint32_t pid;
	unsigned blocks;
	uint32_t how, code;
	bool refused, root;
	uint64_t start_ns; /* monotonic, after the usual one */
};

static void make(const struct made *p)
{
	struct compose c;
	char name[32];
	uint64_t ns = 0;

	snprintf(name, sizeof(name), "d/%u.0.whyoom", p->pid);
	compose_begin(&c);
	compose_header(&c)->pid = p->pid;
	compose_header(&c)->end_how = p->how;
	compose_header(&c)->end_code = p->code;
	compose_header(&c)->start_real_ns += p->pid;
	compose_header(&c)->start_mono_ns += p->start_ns;
	compose_header(&c)->flags = (p->root ? 2 : 0) | (p->refused ? TRACE_FLAG_FAILED : 0);
	compose_chunk(&c, TRACE_CHUNK_DEFINITIONS, 0, 0, 0, TRACE_SLOT_BYTES);
	DEF_STACK(&c, 1, 0, 0, 0x1000, 0x2000);
	def_info(&c, "exe", "/opt/prog");
	compose_chunk(&c, TRACE_CHUNK_EVENTS, 1, 0, 0, 4 * TRACE_SLOT_BYTES);
	for (unsigned i = 0; i < p->blocks; i++)
		put_alloc(&c, ns += 1000, 0x100000 + i * 0x40000ull, 100000, 1);
	if (p->refused)
		PUT_EVENT(&c, ns + 1000, TRACE_FAILED, TRACE_SPACE_HOST, TRACE_API_MALLOC,
		    TRACE_FAIL_ERRNO, 12, 1u << 30, 16, 0, 1, 0);
	recorded_save(&c, name);
}

/* The chosen pid. */
static uint32_t chosen(const struct made *list, size_t count)
{
	struct trace_set set;
	struct verdict_result r;
	struct err err = {""};
	uint32_t pid;

	scratch_teardown(NULL);
	assert_int_equal(scratch_setup(NULL), 0);
	for (size_t i = 0; i < count; i++)
		make(&list[i]);
	assert_int_equal(trace_set_open(scratch("d"), &set, &err), 0);
	assert_int_equal(verdict_of_set(&set, NULL, &r, &err), 0);
	assert_int_equal(r.tree.count, count);
	pid = r.tree.processes[r.tree.subject].pid;
	assert_ptr_equal(r.trace, set.images[r.tree.subject]);
	for (size_t i = 0; i < count; i++) { /* by start; each described */
		assert_int_equal(r.tree.processes[i].pid, list[i].pid);
		assert_int_equal(r.tree.processes[i].events, list[i].blocks + list[i].refused);
		assert_string_equal(r.tree.processes[i].cmdline, "/opt/prog");
		assert_int_equal(r.tree.processes[i].how, list[i].how == TRACE_END_EXIT ? END_EXIT
							  : list[i].how == TRACE_END_SIGNAL
							      ? END_SIGNAL
							      : END_UNKNOWN);
		assert_int_equal(r.tree.processes[i].code, list[i].code);
	}
	verdict_fini(&r);
	trace_set_close(&set);
	return pid;
}

#define ROOT                                                                                       \
	{                                                                                          \
		1, 900, TRACE_END_EXIT, 0, false, true, 0                                          \
	}
#define OTHER                                                                                      \
	{                                                                                          \
		2, 950, TRACE_END_EXIT, 0, false, false, 0                                         \
	}
#define GOT_OVER                                                                                   \
	{                                                                                          \
		3, 20, TRACE_END_EXIT, 0, true, false, 0                                           \
	}
#define KILLED                                                                                     \
	{                                                                                          \
		4, 30, TRACE_END_SIGNAL, SIGKILL, false, false, 0                                  \
	}
#define DIED                                                                                       \
	{                                                                                          \
		5, 10, TRACE_END_EXIT, 1, true, false, 0                                           \
	}
#define VANISHED                                                                                   \
	{                                                                                          \
		6, 40, TRACE_END_NONE, 0, false, false, 0                                          \
	}
#define TERMINATED                                                                                 \
	{                                                                                          \
		7, 990, TRACE_END_SIGNAL, SIGTERM, false, false, 0                                 \
	}
#define CHOSEN(...)                                                                                \
	chosen((const struct made[]){__VA_ARGS__},                                                 \
	    sizeof((struct made[]){__VA_ARGS__}) / sizeof(struct made))

/* Each outranks all before it, whatever their sizes. */
static void order(void **state)
{
	assert_int_equal(CHOSEN(OTHER), 2);
	assert_int_equal(CHOSEN(ROOT, OTHER), 1);
	assert_int_equal(CHOSEN(ROOT, OTHER, VANISHED), 6);
	assert_int_equal(CHOSEN(ROOT, OTHER, GOT_OVER, VANISHED), 3);
	assert_int_equal(CHOSEN(ROOT, OTHER, GOT_OVER, KILLED, VANISHED), 4);
	assert_int_equal(CHOSEN(ROOT, OTHER, GOT_OVER, KILLED, DIED, VANISHED), 5);
	/* Operators send SIGTERM. */
	assert_int_equal(CHOSEN(ROOT, TERMINATED), 1);
}

/* Among equals the first refused, since each block takes its time; without a refusal the
 * largest; among equally large ones the first. */
static void equals(void **state)
{
	assert_int_equal(CHOSEN({11, 200, TRACE_END_EXIT, 1, true, false, 0},
			     {12, 100, TRACE_END_EXIT, 1, true, false, 0},
			     {13, 300, TRACE_END_EXIT, 1, true, false, 0}),
	    12);
	assert_int_equal(CHOSEN({11, 100, TRACE_END_SIGNAL, SIGKILL, false, false, 0},
			     {12, 300, TRACE_END_SIGNAL, SIGKILL, false, false, 0},
			     {13, 200, TRACE_END_SIGNAL, SIGKILL, false, false, 0}),
	    12);
	assert_int_equal(CHOSEN({11, 100, TRACE_END_EXIT, 0, false, false, 0},
			     {12, 100, TRACE_END_EXIT, 0, false, false, 0}),
	    11);
}

/* The starts of a container fill one directory: its latest failure counts, not a first one that was
 * worse; but a run that ended well, or goes on beside the others, is no such failure. */
static void several_runs(void **state)
{
	const struct made first = DIED;

	assert_int_equal(CHOSEN(first, {6, 9, TRACE_END_NONE, 0, false, false, 1000000}), 6);
	assert_int_equal(CHOSEN(first, {6, 1, TRACE_END_NONE, 0, false, false, 1000000}), 5);
	assert_int_equal(
	    CHOSEN(first, {6, 1, TRACE_END_SIGNAL, SIGKILL, false, false, 1000000}), 6);
	assert_int_equal(CHOSEN(first, {6, 9, TRACE_END_EXIT, 0, false, false, 1000000}), 5);
	assert_int_equal(CHOSEN(first, {6, 9, TRACE_END_NONE, 0, false, false, 2000}), 5);
	assert_int_equal(CHOSEN(first, {6, 9, TRACE_END_NONE, 0, false, false, 1000000},
			     {7, 9, TRACE_END_EXIT, 0, false, false, 2000000}),
	    6);
}

static void nobody(void **state)
{
	struct trace_set set;
	struct verdict_result r;
	struct err err = {""};

	recorded_supervisor("d/run.whyoom");
	assert_int_equal(trace_set_open(scratch("d"), &set, &err), 0);
	assert_int_equal(verdict_of_set(&set, NULL, &r, &err), -ENODATA);
	assert_non_null(strstr(err.text, scratch("d")));
	trace_set_close(&set);
}

/* The supervisor's account counts: the end, and the limit, in the process's own time. */
static void with_a_supervisor(void **state)
{
	struct trace_set set;
	struct verdict_result r;
	struct err err = {""};
	struct compose c;

	make(&(struct made)ROOT);
	make(&(struct made)VANISHED);
	compose_begin(&c);
	compose_header(&c)->mode = TRACE_MODE_SUPERVISOR;
	compose_chunk(&c, TRACE_CHUNK_EVENTS, 1, 0, 0, TRACE_SLOT_BYTES);
	PUT_EVENT(&c, 100, TRACE_LEVEL, TRACE_SPACE_HOST, 2, TRACE_LEVEL_CG_OOM_KILL, 0,
	    TRACE_LEVEL_CG_MAX, 5000000);
	PUT_EVENT(&c, 30000, TRACE_LEVEL_OF, 6, 2, TRACE_LEVEL_RSS, 4800000, TRACE_LEVEL_RSS_ANON,
	    4700000);
	PUT_EVENT(&c, 40000, TRACE_LEVEL, TRACE_SPACE_HOST, 3, TRACE_LEVEL_CG_OOM_KILL, 1,
	    TRACE_LEVEL_CG_MAX, 5000000, TRACE_LEVEL_CG_CURRENT, 4990000);
	PUT_EVENT(&c, 41000, TRACE_CHILD_END, 6, TRACE_END_SIGNAL, SIGKILL, 0);
	recorded_save(&c, "d/run.whyoom");
	assert_int_equal(trace_set_open(scratch("d"), &set, &err), 0);
	assert_int_equal(verdict_of_set(&set, NULL, &r, &err), 0);
	assert_int_equal(r.tree.processes[r.tree.subject].pid, 6);
	assert_int_equal(r.tree.processes[r.tree.subject].how, END_SIGNAL);
	assert_int_equal(r.tree.processes[r.tree.subject].code, SIGKILL);
	assert_int_equal(r.failure.kind, FAILURE_OOM_KILL);
	assert_int_equal(r.failure.limit, LIMIT_CGROUP);
	assert_int_equal(r.failure.limit_bytes, 5000000);
	assert_int_equal(r.failure.pid, 6);
	assert_int_equal(r.tree.processes[1 - r.tree.subject].how, END_EXIT);
	verdict_fini(&r);
	trace_set_close(&set);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    scratch_test(order),
	    scratch_test(equals),
	    scratch_test(several_runs),
	    scratch_test(nobody),
	    scratch_test(with_a_supervisor),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
