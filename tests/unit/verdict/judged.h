/* judged.h - the whole verdict on a scripted process, for tests of one part of it. */
#ifndef TESTS_UNIT_VERDICT_JUDGED_H
#define TESTS_UNIT_VERDICT_JUDGED_H

#include "model/unit.h"

#include "model/script.h"
#include "verdict/failure/failure.h"
#include "verdict/failure/supervised.h"
#include "verdict/ledger/ledger.h"
#include "verdict/verdict.h"

static inline void judge_script(
    struct script *s, const struct supervised *outside, struct verdict_result *r)
{
	struct err err = {""};

	assert_int_equal(verdict_of_feed(script_feed(s), outside, r, &err), 0);
	assert_true(ledger_adds_up(&r->ledger));
	model_check(r->model);
}

static inline uint64_t row_of(const struct ledger *l, const char *class)
{
	return ledger_get(l, class);
}

#endif
