#include "events.h"

static struct trace *opened(struct compose *c)
{
	struct err err = {""};
	struct trace *t = NULL;

	compose_chunk(c, 1, 1, 0, 0, 65536);
	put_alloc(c, 10, 0x1000, 1, 0);
	compose_end(c);
	assert_int_equal(trace_open(compose_save(c), &t, &err), 0);
	return t;
}

static void told(const struct trace *t, const char *why, const char *list)
{
	struct str text = {0};

	trace_rights_why(&trace_facts(t)->rights, &text);
	assert_string_equal(str_text(&text), why);
	str_clear(&text);
	trace_rights_list(&trace_facts(t)->rights, &text);
	assert_string_equal(str_text(&text), list);
	str_free(&text);
}

/* A trace of a process that kept its rights, or of an older recorder. */
static void none(void **state)
{
	struct compose c;
	struct trace *t;

	compose_begin(&c);
	t = opened(&c);
	assert_false(trace_facts(t)->rights.any);
	assert_int_equal(trace_facts(t)->rights.stopped_ns, 0);
	told(t, "rights were given up by a call that was not seen", "");
	trace_close(t);
	compose_free(&c);
}

static void given_up(void **state)
{
	struct trace_header *h;
	struct compose c;
	struct trace *t;

	compose_begin(&c);
	h = compose_header(&c);
	h->ticks_hz = 1000; /* a millisecond each */
	h->rights.ticks[TRACE_RIGHT_USER] = h->start_ticks + 12300;
	h->rights.ticks[TRACE_RIGHT_SECCOMP] = h->start_ticks + 13000;
	h->rights.stopped_ticks = h->start_ticks + 14000;
	h->rights.stopped = TRACE_RIGHT_SECCOMP;
	h->rights.children = 3;
	h->dropped[TRACE_DROP_RIGHTS] = 7;
	t = opened(&c);
	assert_true(trace_facts(t)->rights.any);
	assert_int_equal(trace_facts(t)->rights.children, 3);
	assert_int_equal(trace_facts(t)->rights.reason, TRACE_RIGHT_SECCOMP);
	assert_true(trace_facts(t)->rights.stopped_ns > trace_facts(t)->rights.given_up_ns[6]);
	assert_true(trace_facts(t)->rights.given_up_ns[6] > trace_facts(t)->rights.given_up_ns[1]);
	assert_int_equal(trace_facts(t)->dropped_total, 7);
	assert_string_equal(trace_right_key(trace_facts(t)->rights.reason), "seccomp");
	trace_close(t);
	compose_free(&c);
}

static void words(void **state)
{
	struct trace_rights_facts f = {.any = true, .reason = TRACE_RIGHT_SECCOMP};
	struct str text = {0};

	f.given_up_ns[TRACE_RIGHT_USER] = 12300000000;
	f.given_up_ns[TRACE_RIGHT_SECCOMP] = 13000000000;
	trace_rights_why(&f, &text);
	assert_string_equal(str_text(&text), "rights were given up at 13.0 s: seccomp");
	str_clear(&text);
	trace_rights_list(&f, &text);
	assert_string_equal(str_text(&text), "the user (setuid) at 12.3 s, seccomp at 13.0 s");
	str_free(&text);
}

/* A kind of a newer recorder, and impossible times. */
static void hostile(void **state)
{
	struct trace_header *h;
	struct compose c;
	struct trace *t;

	compose_begin(&c);
	h = compose_header(&c);
	for (unsigned i = 0; i < TRACE_RIGHT_SLOTS; i++)
		h->rights.ticks[i] = UINT64_MAX - i;
	h->rights.stopped_ticks = 1;
	h->rights.stopped = 4711;
	t = opened(&c);
	assert_int_equal(trace_facts(t)->rights.reason, TRACE_RIGHT_UNKNOWN);
	trace_close(t);
	compose_free(&c);
}

static void places(void **state)
{
	assert_true(trace_is_user_directory("uid.0"));
	assert_true(trace_is_user_directory("uid.4294967295"));
	assert_false(trace_is_user_directory("uid."));
	assert_false(trace_is_user_directory("uid.1x"));
	assert_false(trace_is_user_directory("uid.1/../.."));
	assert_false(trace_is_user_directory("uid.12345678901"));
	assert_false(trace_is_user_directory("1.0.whyoom"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(none), cmocka_unit_test(given_up),
	    cmocka_unit_test(words), cmocka_unit_test(hostile), cmocka_unit_test(places)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
