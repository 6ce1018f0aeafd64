/* Rows that add up to the limit, small ones in one, no line too wide. */
#include "model/unit.h"

#include "report/parts.h"
#include "verdict/device/device.h"

static struct verdict_result base(void)
{
	struct verdict_result r = {0};

	r.verdict.cause = CAUSE_LEAK;
	r.failure.kind = FAILURE_HOST_ALLOC;
	r.failure.time_ns = 4460000000u;
	r.ledger = (struct ledger){.limit = LIMIT_CGROUP,
	    .limit_bytes = 1000 * MiB,
	    .at = "failure",
	    .rows = {{"leaked", 5 * MiB}, {"other live blocks", 600 * MiB},
		{"interpreter arenas", 9 * MiB}, {"allocator overhead and free", 9 * MiB},
		{"kernel", 4 * MiB}, {"free", 2 * MiB}},
	    .row_count = 6,
	    .unaccounted = 371 * MiB};
	return r;
}

static unsigned widest(const char *text)
{
	unsigned most = 0;

	for (; *text; text += strcspn(text, "\n") + 1) {
		char line[256];
		unsigned n;

		snprintf(line, sizeof(line), "%.*s", (int)strcspn(text, "\n"), text);
		n = term_columns(line);
		most = n > most ? n : most;
	}
	return most;
}

static void test_small_rows(void **state)
{
	struct verdict_result r = base();
	struct report_style st = {.columns = 80};
	struct str out = {0};

	ledger_text(&r, &st, &out);
	assert_non_null(strstr(str_text(&out),
	    "\nWhere 0.98 GiB went (cgroup memory.max) at the failure, after 4.46 s\n"));
	/* The blamed and the free bytes have rows of their own, however small. */
	assert_non_null(strstr(str_text(&out), "  leaked "));
	assert_non_null(strstr(str_text(&out), "  free "));
	assert_non_null(strstr(str_text(&out), "  3 more, each under 1 %"));
	assert_non_null(strstr(str_text(&out), "22.0 MiB"));
	assert_null(strstr(str_text(&out), "kernel"));
	assert_non_null(strstr(str_text(&out), "  unaccounted "));
	str_clear(&out);
	/* One alone is not hidden behind a row of the same size. */
	r.ledger.rows[2].bytes = r.ledger.rows[3].bytes = 100 * MiB;
	ledger_text(&r, &st, &out);
	assert_non_null(strstr(str_text(&out), "  kernel "));
	assert_null(strstr(str_text(&out), "more, each"));
	str_free(&out);
	(void)state;
}

/* The sentence counts allocated bytes, the row resident ones; of address space both are the same.
 */
static void test_allocated_and_resident(void **state)
{
	struct verdict_result r = base();
	struct report_style st = {.columns = 80};
	struct str out = {0};

	r.ranking.count = 1;
	r.ranking.list[0].finding = (struct finding){.cause = CAUSE_LEAK, .bytes = 8 * MiB};
	ledger_text(&r, &st, &out);
	assert_non_null(strstr(str_text(&out),
	    "\n  leaked: of 8.00 MiB that were allocated, 5.00 MiB were resident.\n"));
	str_clear(&out);
	r.ledger.limit = LIMIT_AS;
	ledger_text(&r, &st, &out);
	assert_null(strstr(str_text(&out), "were resident"));
	str_clear(&out);
	r.ledger.limit = LIMIT_CGROUP;
	r.ranking.list[0].finding.bytes = 5 * MiB;
	ledger_text(&r, &st, &out);
	assert_null(strstr(str_text(&out), "were resident"));
	str_free(&out);
	(void)state;
}

/* Verbose: every row, and the printed exact bytes are the ledger's. */
static void test_exact(void **state)
{
	struct verdict_result r = base();
	struct report_style st = {.columns = 100, .verbose = true};
	struct str out = {0};
	uint64_t sum = 0;
	unsigned rows = 0;

	r.ledger.unaccounted = -7;
	r.ledger.limit_bytes = 629 * MiB - 7;
	ledger_text(&r, &st, &out);
	for (const char *p = strchr(str_text(&out) + 1, '\n') + 1; *p; p += strcspn(p, "\n") + 1) {
		long long value;
		const char *percent = memchr(p, '%', strcspn(p, "\n"));

		if (!percent && !strstr(p, "-7 B"))
			break;
		assert_int_equal(
		    sscanf(percent ? percent + 1 : strstr(p, "-7 B") + 4, "%lld", &value), 1);
		sum += (uint64_t)value;
		rows++;
	}
	assert_int_equal(rows, 7);
	assert_int_equal(sum, r.ledger.limit_bytes);
	assert_non_null(strstr(str_text(&out), "-7 B"));
	str_free(&out);
	(void)state;
}

static void test_widths_and_age(void **state)
{
	struct verdict_result r = base();

	for (unsigned columns = 40; columns <= 200; columns += 3) {
		for (int verbose = 0; verbose < 2; verbose++) {
			struct report_style st = {
			    .columns = columns, .verbose = verbose, .unicode = columns % 2};
			struct str out = {0};

			r.ledger.age_ns = 0;
			ledger_text(&r, &st, &out);
			assert_true(widest(str_text(&out)) <= columns);
			assert_null(strstr(str_text(&out), "sample"));
			assert_null(strstr(str_text(&out), " \n"));
			str_clear(&out);
			r.ledger.age_ns = 1500000000;
			ledger_text(&r, &st, &out);
			assert_true(widest(str_text(&out)) <= columns);
			assert_non_null(strstr(str_text(&out), "1.50 s"));
			str_free(&out);
		}
	}
	(void)state;
}

/* The device that refused comes first; another with much memory is shown, an idle one is not. */
static void test_devices(void **state)
{
	struct device_report devices[3] = {{.device = "cuda:1", .failed = true},
	    {.device = "cuda:0", .explained = 300 * MiB}, {.device = "cuda:2", .explained = MiB}};
	struct verdict_result r = base();
	struct report_style st = {.columns = 80};
	struct str out = {0};

	for (int i = 0; i < 3; i++)
		devices[i].ledger = (struct ledger){.space = devices[i].device,
		    .limit = LIMIT_DEVICE,
		    .limit_bytes = 1000 * MiB,
		    .at = "failure",
		    .rows = {{"weights", 1000 * MiB}},
		    .row_count = 1};
	r.failure.kind = FAILURE_CUDA_OOM;
	r.devices.list = r.devices.first = devices;
	r.devices.count = 3;
	r.ledger = devices[0].ledger;
	ledger_text(&r, &st, &out);
	assert_non_null(strstr(str_text(&out), "Where 0.98 GiB of cuda:1 went (device memory)"));
	assert_non_null(strstr(str_text(&out), "Where 0.98 GiB of cuda:0 went (device memory)"));
	assert_null(strstr(str_text(&out), "cuda:2"));
	str_clear(&out);
	/* If the host ran out, only the requested bytes. */
	r.failure.kind = FAILURE_OOM_KILL;
	r.ledger = base().ledger;
	ledger_text(&r, &st, &out);
	assert_null(strstr(str_text(&out), "cuda:"));
	st.verbose = true;
	ledger_text(&r, &st, &out);
	assert_non_null(strstr(str_text(&out), "cuda:2"));
	str_free(&out);
	(void)state;
}

static void test_no_limit(void **state)
{
	struct verdict_result r = base();
	struct report_style st = {.columns = 80, .colour = true};
	struct str out = {0};

	r.verdict.cause = CAUSE_HEALTHY;
	r.failure.kind = FAILURE_NONE;
	r.ledger.limit = LIMIT_NONE;
	r.ledger.at = "peak";
	ledger_text(&r, &st, &out);
	assert_non_null(strstr(str_text(&out), "went (resident) at the peak"));
	/* Nothing is blamed, so nothing is red. */
	assert_null(strstr(str_text(&out), term_style(true, TERM_RED)));
	str_clear(&out);
	r = base();
	ledger_text(&r, &st, &out);
	assert_non_null(strstr(str_text(&out), term_style(true, TERM_RED)));
	str_free(&out);
	(void)state;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_small_rows),
	    cmocka_unit_test(test_allocated_and_resident),
	    cmocka_unit_test(test_exact),
	    cmocka_unit_test(test_widths_and_age),
	    cmocka_unit_test(test_devices),
	    cmocka_unit_test(test_no_limit),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
