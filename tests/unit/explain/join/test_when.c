/* The times that logs begin their lines with. */
#include "../../util/unit.h"

#include <string.h>
#include <time.h>

#include "explain/join/when.h"

#define S 1000000000ll

static int64_t utc(int year, int month, int day, int h, int m, int s)
{
	struct tm tm = {.tm_year = year - 1900,
	    .tm_mon = month - 1,
	    .tm_mday = day,
	    .tm_hour = h,
	    .tm_min = m,
	    .tm_sec = s};

	return (int64_t)timegm(&tm) * S;
}

struct line {
	const char *text, *stamp;
	enum when_clock clock;
	bool year;
	int64_t ns;
};

static void test_formats(void **state)
{
	const int64_t may = utc(2026, 5, 1, 12, 34, 56), yearless = utc(1970, 5, 1, 12, 34, 56);
	const struct line lines[] = {
	    {"2026-05-01T12:34:56.789Z stderr F x", "2026-05-01T12:34:56.789Z", WHEN_WALL, true,
		may + 789000000},
	    {"2026-05-01 12:34:56,789 ERROR x", "2026-05-01 12:34:56,789", WHEN_WALL, true,
		may + 789000000},
	    {"2026-05-01 12:34:56.7944269 [E:onnxruntime:, x", "2026-05-01 12:34:56.7944269",
		WHEN_WALL, true, may + 794426900},
	    {"time=2026-05-01T14:34:56.000+02:00 level=INFO", "2026-05-01T14:34:56.000+02:00",
		WHEN_WALL, true, may},
	    {"[2026-05-01 12:34:56 TP0] Decode batch", "2026-05-01 12:34:56", WHEN_WALL, true, may},
	    {"2026/05/01 12:34:56 x", "2026/05/01 12:34:56", WHEN_WALL, true, may},
	    {"[05/01/2026-12:34:56] [TRT] [E] x", "05/01/2026-12:34:56", WHEN_WALL, true, may},
	    {"E0501 12:34:56.000001   1234 a.go:12] x", "E0501 12:34:56.000001", WHEN_WALL, false,
		yearless + 1000},
	    {"I20260501 12:34:56.5 1234 a.cc:12] x", "I20260501 12:34:56.5", WHEN_WALL, true,
		may + S / 2},
	    {"May  1 12:34:56 host kernel: [  518.050606] x", "May  1 12:34:56", WHEN_WALL, false,
		yearless},
	    {"[Fri May  1 12:34:56 2026] Out of memory", "May  1 12:34:56 2026", WHEN_WALL, true,
		may},
	    {"(EngineCore_0 pid=9) ERROR 05-01 12:34:56 [core.py:7] x", "ERROR 05-01 12:34:56",
		WHEN_WALL, false, yearless},
	    {"[ 7063.247407] Memory cgroup out of memory", "[ 7063.247407]", WHEN_UPTIME, false,
		7063 * S + 247407000},
	    {"<3>[39291577.009543] x", "[39291577.009543]", WHEN_UPTIME, false,
		39291577 * S + 9543000},
	    {"{\"level\":\"error\",\"ts\":1777638896.25,\"msg\":\"x\"}", "\"ts\":1777638896.25",
		WHEN_WALL, true, may + S / 4},
	    {"12:34:56.5 x", "12:34:56.5", WHEN_DAY, false, (12 * 3600 + 34 * 60 + 56) * S + S / 2},
	};
	struct whens *whens = whens_new();

	for (size_t i = 0; i < sizeof(lines) / sizeof(*lines); i++) {
		const struct line *l = &lines[i];
		struct when when;

		assert_true(whens_read(whens, l->text, strlen(l->text), &when));
		if (when.bytes != strlen(l->stamp) ||
		    strncmp(l->text + when.at, l->stamp, when.bytes) != 0)
			fail_msg("'%.*s' of '%s'", (int)when.bytes, l->text + when.at, l->text);
		assert_int_equal(when.clock, l->clock);
		assert_int_equal(when.year, l->year);
		assert_true(when.ns == l->ns);
	}
	whens_free(whens);
	(void)state;
}

static void test_none(void **state)
{
	static const char *const lines[] = {"", "torch.OutOfMemoryError: CUDA out of memory.",
	    "  File \"a.py\", line 12, in f", "[12345] uid", "took 12:34 minutes", "v2026-05-01"};
	struct whens *whens = whens_new();
	struct when when;
	char far[400];

	for (size_t i = 0; i < sizeof(lines) / sizeof(*lines); i++)
		assert_false(whens_read(whens, lines[i], strlen(lines[i]), &when));
	memset(far, 'x', sizeof(far));
	memcpy(far + 300, "2026-05-01T12:34:56", 19);
	assert_false(whens_read(whens, far, sizeof(far), &when));
	whens_free(whens);
	whens_free(NULL);
	(void)state;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_formats),
	    cmocka_unit_test(test_none),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
