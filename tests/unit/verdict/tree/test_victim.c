/* Which process a kernel's log names: by pid, else by name if only one fits. */
#include <signal.h>

#include "../../cmd/recorded.h"

#include "verdict/tree/tree.h"

static void process(uint32_t pid, const char *exe, uint32_t how, uint32_t code)
{
	struct compose c;
	char name[32];

	snprintf(name, sizeof(name), "d/%u.0.whyoom", pid);
	compose_begin(&c);
	compose_header(&c)->pid = pid;
	compose_header(&c)->end_how = how;
	compose_header(&c)->end_code = code;
	compose_header(&c)->start_real_ns += pid;
	compose_chunk(&c, TRACE_CHUNK_DEFINITIONS, 0, 0, 0, TRACE_SLOT_BYTES);
	def_info(&c, "exe", exe);
	compose_chunk(&c, TRACE_CHUNK_EVENTS, 1, 0, 0, TRACE_SLOT_BYTES);
	put_alloc(&c, 1000, 0x1000, 10, 0);
	recorded_save(&c, name);
}

/* The pids of the victims, as bits by their order. */
static unsigned found(const struct log_victim *victims, size_t count)
{
	struct verdict_hints hints = {.victims = victims, .victim_count = count};
	struct trace_set set;
	struct err err = {""};
	bool victim[8] = {false};
	unsigned bits = 0;

	assert_int_equal(trace_set_open(scratch("d"), &set, &err), 0);
	victim_find(&set, victims ? &hints : NULL, victim);
	for (size_t i = 0; i < set.count; i++)
		bits |= (unsigned)victim[i] << i;
	trace_set_close(&set);
	return bits;
}

#define FOUND(...)                                                                                 \
	found((const struct log_victim[]){__VA_ARGS__},                                            \
	    sizeof((struct log_victim[]){__VA_ARGS__}) / sizeof(struct log_victim))

static void by_pid(void **state)
{
	process(1, "/bin/sh", TRACE_END_EXIT, 137);
	process(2, "/opt/python3.11", TRACE_END_SIGNAL, SIGKILL);
	process(3, "/opt/python3.11", TRACE_END_NONE, 0);
	assert_int_equal(found(NULL, 0), 0);
	assert_int_equal(FOUND({2, "x"}), 1u << 1);
	assert_int_equal(FOUND({3, "x"}, {2, "y"}), 3u << 1);
	/* It ended by itself: another process with that pid. */
	assert_int_equal(FOUND({1, "sh"}), 0);
	/* Two fit. */
	assert_int_equal(FOUND({900, "python3.11"}), 0);
}

static void by_name(void **state)
{
	process(1, "/bin/sh", TRACE_END_EXIT, 137);
	process(2, "/opt/a-program-with-a-long-name", TRACE_END_SIGNAL, SIGKILL);
	assert_int_equal(FOUND({900, "a-program-with-"}), 1u << 1);
	assert_int_equal(FOUND({900, "sh"}), 0);
	assert_int_equal(FOUND({900, ""}), 0);
	assert_int_equal(FOUND({900, "a-program-without"}), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    scratch_test(by_pid),
	    scratch_test(by_name),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
