/* sample.h - a verdict to report on: a leak whose names try to steer the terminal. */
#ifndef TESTS_UNIT_REPORT_SAMPLE_H
#define TESTS_UNIT_REPORT_SAMPLE_H

#include "model/unit.h"

#include "model/script.h"
#include "report/format.h"
#include "verdict/verdict.h"

static inline struct script *sample(struct verdict_result *r)
{
	struct script *s = script_new();
	uint32_t leak = script_stack(
	    s, "main@/app/main.py:3;ev\033[31mil\"name@/app/lo\nng.py:77;malloc@/lib/libc.so.6");
	uint32_t work = script_stack(s, "main;work");
	struct err err;

	for (int i = 0; i < 3000; i++) {
		script_alloc(s, leak, 50 * KiB);
		if (i < 1500)
			script_release(s, script_alloc(s, work, 50 * KiB));
	}
	script_set(s, TRACE_LEVEL_LIMIT_AS, 160 * MiB);
	script_set(s, TRACE_LEVEL_VSIZE, 159 * MiB);
	script_set(s, TRACE_LEVEL_VIRT_FILE, 9 * MiB);
	script_failed(s, leak, 2 * MiB);
	script_exit(s, 1);
	assert_int_equal(verdict_of_feed(script_feed(s), NULL, r, &err), 0);
	assert_int_equal(r->verdict.cause, CAUSE_LEAK);
	return s;
}

static inline unsigned lines(const char *text)
{
	unsigned n = 0;

	for (; *text; text++)
		n += *text == '\n';
	return n;
}

#endif
