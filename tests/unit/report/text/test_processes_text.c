/* Each process's memory: rows for those that matter, columns that add up, no line too wide. */
#include "model/unit.h"

#include "report/parts.h"

static struct process_memory engine[] = {{"host", GPU_NONE, 300 * MiB, 300 * MiB},
    {"cuda:0", 1, 700 * MiB, 800 * MiB}, {"pool:0", 1, 50 * MiB, 50 * MiB}};
static struct process_memory worker[] = {
    {"host", GPU_NONE, 200 * MiB, 300 * MiB}, {"cuda:0", 0, 600 * MiB, 900 * MiB}};
static struct process_memory small[] = {{"host", GPU_NONE, 1 * MiB, 5 * MiB}};

static struct process list[] = {
    {.pid = 100, .cmdline = "/bin/sh -c x", .memory = small, .memory_count = 1},
    {.pid = 101,
	.cmdline = "/usr/bin/python /srv/a\033[31mpi.py --port 80",
	.memory = engine,
	.memory_count = 3,
	.refused_ns = 5000000000u},
    {.pid = 102,
	.cmdline = "python worker.py",
	.memory = worker,
	.memory_count = 2,
	.refused_ns = 7000000000u,
	.late_ns = 1500000000u},
    {.pid = 103, .cmdline = "date", .memory = small, .memory_count = 1},
};

static struct verdict_result base(void)
{
	return (struct verdict_result){.tree.processes = list,
	    .tree.count = 4,
	    .tree.subject = 1,
	    .failure.kind = FAILURE_CUDA_OOM};
}

static void test_rows(void **state)
{
	struct verdict_result r = base();
	struct report_style st = {.columns = 80};
	struct str out = {0};
	const char *text;

	processes_text(&r, &st, &out);
	text = str_text(&out);
	assert_non_null(strstr(text, "\nProcesses at the failure\n"));
	assert_non_null(strstr(text, "       host      GPU 0      GPU 1\n"));
	assert_non_null(strstr(text, "* 101 failed: python /srv/"));
	assert_non_null(strstr(text, "    300 MiB          -    750 MiB\n"));
	assert_non_null(strstr(text, "  102 1.50 s later: python worker.py"));
	assert_non_null(strstr(text, "  2 more "));
	assert_non_null(strstr(text, "    502 MiB    600 MiB    750 MiB\n"));
	assert_null(strstr(text, "date"));
	assert_null(strchr(text, '\033'));
	str_clear(&out);
	st.verbose = true;
	processes_text(&r, &st, &out);
	assert_non_null(strstr(str_text(&out), "  103 date"));
	/* Resident bytes are older than the failure. */
	for (size_t i = 0; i < 4; i++)
		list[i].resident = 400 * MiB;
	str_clear(&out);
	processes_text(&r, &st, &out);
	assert_non_null(
	    strstr(str_text(&out), "\nProcesses in the last sample before the failure\n"));
	for (size_t i = 0; i < 4; i++)
		list[i].resident = 0;
	/* A process that holds nothing had ended, or another program replaced it. */
	list[3].memory_count = 0;
	str_clear(&out);
	processes_text(&r, &st, &out);
	assert_non_null(strstr(str_text(&out), "  100 sh -c x"));
	assert_null(strstr(str_text(&out), "  103 date"));
	assert_non_null(strstr(str_text(&out), "  1 more "));
	list[3].memory_count = 1;
	str_free(&out);
}

/* Resident bytes if every process that held memory was sampled. */
static void test_resident(void **state)
{
	struct verdict_result r = base();
	struct report_style st = {.columns = 80};
	struct str out = {0};

	for (int i = 0; i < 4; i++)
		list[i].resident = (uint64_t)(i + 1) * 100 * MiB;
	processes_text(&r, &st, &out);
	assert_non_null(strstr(str_text(&out), "   resident      GPU 0      GPU 1\n"));
	assert_non_null(strstr(str_text(&out), "   0.98 GiB    600 MiB    750 MiB\n"));
	for (int i = 0; i < 4; i++)
		list[i].resident = 0;
	str_free(&out);
}

static void test_matter(void **state)
{
	struct verdict_result r = base();

	assert_true(processes_matter(&r));
	r.tree.count = 2; /* a shell, and its children */
	assert_false(processes_matter(&r));
}

static void test_widths(void **state)
{
	struct verdict_result r = base();

	for (unsigned columns = 40; columns <= 200; columns++) {
		struct report_style st = {.columns = columns, .unicode = columns % 2};
		struct str out = {0};

		processes_text(&r, &st, &out);
		for (const char *p = str_text(&out); *p; p += strcspn(p, "\n") + 1) {
			char line[512];

			snprintf(line, sizeof(line), "%.*s", (int)strcspn(p, "\n"), p);
			assert_true(term_columns(line) <= columns);
		}
		assert_null(strstr(str_text(&out), " \n"));
		str_free(&out);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_rows),
	    cmocka_unit_test(test_resident),
	    cmocka_unit_test(test_matter),
	    cmocka_unit_test(test_widths),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
