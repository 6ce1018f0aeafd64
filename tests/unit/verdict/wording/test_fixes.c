/* Each cause has its advice, which names the blamed function; a framework's own comes first. */
#include "model/unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "verdict/device/device.h"
#include "verdict/ledger/ledger.h"
#include "verdict/wording/fixes.h"

static void advise(struct verdict_result *r, enum cause cause)
{
	r->verdict.cause = cause;
	fixes_for(r);
}

static void test_fixes(void **state)
{
	static const enum cause causes[] = {
	    CAUSE_PROMPT_GROWTH, CAUSE_LEAK, CAUSE_OVERSIZED_INTERMEDIATE};
	static struct verdict_result r;
	const struct fix *fixes = r.verdict.fixes;

	r.verdict.blame.function = "remember";
	for (size_t i = 0; i < 3; i++) {
		advise(&r, causes[i]);
		assert_true(r.verdict.fix_count >= 2);
		assert_non_null(strstr(fixes[0].text, "remember"));
		assert_string_equal(fixes[0].for_, "any");
	}
	advise(&r, CAUSE_HEALTHY);
	assert_int_equal(r.verdict.fix_count, 0);
	arena_free(&r.arena);
	(void)state;
}

/* A winner that is a special case of its cause gets that case's advice. */
static void test_special_cases(void **state)
{
	static const struct {
		enum cause cause;
		enum finding_form form;
		const char *said;
	} cases[] = {{CAUSE_CONCURRENCY, FORM_BACKLOG, "queue that feed fills"},
	    {CAUSE_LEAK, FORM_UNJOINED, "Join each thread"},
	    {CAUSE_EXTERNAL, FORM_STACKS, "fewer threads"}};
	static struct verdict_result r;
	const struct fix *fixes = r.verdict.fixes;

	r.verdict.blame.function = "feed";
	r.ranking.count = 1;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		r.ranking.list[0].finding =
		    (struct finding){.cause = cases[i].cause, .form = cases[i].form};
		advise(&r, cases[i].cause);
		assert_non_null(strstr(fixes[0].text, cases[i].said));
		/* Another candidate's case does not apply to this one. */
		r.ranking.list[0].finding.cause = CAUSE_FRAGMENTATION;
		advise(&r, cases[i].cause);
		assert_null(strstr(fixes[0].text, cases[i].said));
	}
	arena_free(&r.arena);
	(void)state;
}

/* The number of requests that fit: the largest held 40 MiB, and beside the rest 170 MiB are left.
 */
static void test_bound(void **state)
{
	static struct verdict_result r;
	struct finding *f = &r.ranking.list[0].finding;

	r.ranking.count = 1;
	*f = (struct finding){.cause = CAUSE_CONCURRENCY};
	finding_evidence(f, FACT_AT_ONCE, 8);
	finding_evidence(f, FACT_AT_ONCE_BYTES, 160.0 * MiB);
	finding_evidence(f, FACT_AT_ONCE_LARGEST, 40.0 * MiB);
	r.failure.limit_bytes = 200 * MiB;
	r.failure.usage_bytes = 190 * MiB;
	advise(&r, CAUSE_CONCURRENCY);
	assert_non_null(strstr(r.verdict.fixes[0].text, "at once to at most 4 ("));
	assert_non_null(
	    strstr(r.verdict.fixes[0].text, "up to 40.0 MiB, and the limit leaves 170"));
	/* More was asked for than is in use yet. */
	r.failure.usage_bytes = 150 * MiB;
	advise(&r, CAUSE_CONCURRENCY);
	assert_non_null(
	    strstr(r.verdict.fixes[0].text, "up to 40.0 MiB, and the limit leaves 200"));
	/* A part of it was refused, and is not in use. */
	finding_evidence(f, FACT_AT_ONCE_REFUSED, 40.0 * MiB);
	r.failure.usage_bytes = 190 * MiB;
	advise(&r, CAUSE_CONCURRENCY);
	assert_non_null(
	    strstr(r.verdict.fixes[0].text, "up to 40.0 MiB, and the limit leaves 130"));
	/* As many would have fit, but did not. */
	r.failure.limit_bytes = 600 * MiB;
	r.failure.usage_bytes = 320 * MiB;
	advise(&r, CAUSE_CONCURRENCY);
	assert_non_null(strstr(r.verdict.fixes[0].text, "less than 8 ("));
	r.failure.limit_bytes = 200 * MiB;
	/* There was none where memory had not run out. */
	r.failure.kind = FAILURE_KILLED;
	r.failure.usage_bytes = 190 * MiB;
	advise(&r, CAUSE_CONCURRENCY);
	assert_non_null(strstr(r.verdict.fixes[0].text, "beside what stays"));
	r.failure.kind = FAILURE_HOST_ALLOC;
	/* Not one fits, or no limit is known. */
	r.failure.usage_bytes = 340 * MiB;
	advise(&r, CAUSE_CONCURRENCY);
	assert_non_null(strstr(r.verdict.fixes[0].text, "beside what stays"));
	r.failure.limit_bytes = 0;
	advise(&r, CAUSE_CONCURRENCY);
	assert_non_null(strstr(r.verdict.fixes[0].text, "beside what stays"));
	arena_free(&r.arena);
	(void)state;
}

/* A limit that is too low is raised; of PyTorch's share only where the device has more. */
static void test_limits(void **state)
{
	static struct verdict_result r;
	struct device_report device = {.free_known = true, .free = 4 * GiB, .total = 6 * GiB};
	const struct fix *fixes = r.verdict.fixes;

	r.ranking.count = 1;
	r.ranking.list[0].finding = (struct finding){.cause = CAUSE_EXTERNAL, .steady = true};
	r.failure.limit = LIMIT_CGROUP;
	advise(&r, CAUSE_EXTERNAL);
	assert_non_null(strstr(fixes[0].text, "Raise the limit (cgroup memory.max):"));
	r.failure.limit_bytes = 100 * MiB;
	r.failure.usage_bytes = 95 * MiB;
	r.failure.requested_bytes = 8 * MiB;
	advise(&r, CAUSE_EXTERNAL);
	assert_non_null(
	    strstr(fixes[0].text, "(cgroup memory.max) by at least 3.00 MiB, better by 10.0 MiB:"));
	r.failure.limit = LIMIT_DEVICE;
	advise(&r, CAUSE_EXTERNAL);
	assert_non_null(strstr(fixes[0].text, "device that is larger by at least 3.00 MiB,"));
	r.ranking.list[0].finding.steady = false;
	advise(&r, CAUSE_EXTERNAL);
	assert_non_null(strstr(fixes[0].text, "what else holds the memory"));
	r.failure.limit = LIMIT_TORCH;
	advise(&r, CAUSE_LEAK);
	assert_null(strstr(fixes[r.verdict.fix_count - 1].text, "allow this process more"));
	r.devices.first = &device;
	advise(&r, CAUSE_LEAK);
	assert_non_null(
	    strstr(fixes[r.verdict.fix_count - 1].text, "had 4.00 GiB of 6.00 GiB free"));
	arena_free(&r.arena);
	(void)state;
}

/* A pool that was still being taken needs more than what the last request lacked. */
static void test_pool(void **state)
{
	static struct verdict_result r;
	struct finding *f = &r.ranking.list[0].finding;

	r.ranking.count = 1;
	*f = (struct finding){.cause = CAUSE_BATCH_PREALLOC, .bytes = 356 * MiB};
	r.failure.limit_bytes = 384 * MiB;
	r.failure.usage_bytes = 383 * MiB;
	r.failure.requested_bytes = 4 * MiB;
	advise(&r, CAUSE_BATCH_PREALLOC);
	assert_non_null(strstr(r.verdict.fixes[0].text, "smaller by at least 3.00 MiB:"));
	finding_evidence(f, FACT_POOL_NEXT, 4.0 * MiB);
	advise(&r, CAUSE_BATCH_PREALLOC);
	assert_non_null(strstr(r.verdict.fixes[0].text, "smaller than the 356 MiB that were"));
	arena_free(&r.arena);
	(void)state;
}

/* Work that varies by more than a tenth of the limit needs as much room again. */
static void test_varying(void **state)
{
	static struct verdict_result r;
	struct finding *f = &r.ranking.list[0].finding;

	r.ranking.count = 1;
	*f = (struct finding){.cause = CAUSE_EXTERNAL, .form = FORM_VARYING};
	finding_evidence(f, FACT_TEETH_USUAL, 10.0 * MiB);
	finding_evidence(f, FACT_TEETH_HIGHEST, 20.0 * MiB);
	finding_evidence(f, FACT_TEETH_LAST, 35.0 * MiB);
	r.failure.limit_bytes = 100 * MiB;
	advise(&r, CAUSE_EXTERNAL);
	assert_non_null(strstr(r.verdict.fixes[0].text, "better by 25.0 MiB:"));
	arena_free(&r.arena);
	(void)state;
}

/* Stacks that take much of a limit on address space are named, whatever the cause. */
static void test_stacks(void **state)
{
	static struct verdict_result r;
	const char *last;

	r.failure.limit = LIMIT_DATA;
	r.failure.limit_bytes = 300 * MiB;
	ledger_row(&r.ledger, LEDGER_STACKS, 112 * MiB);
	advise(&r, CAUSE_CONCURRENCY);
	last = r.verdict.fixes[r.verdict.fix_count - 1].text;
	assert_non_null(strstr(last, "take 112 MiB of the limit"));
	assert_non_null(strstr(last, "in place of RLIMIT_DATA"));
	r.failure.limit = LIMIT_CGROUP;
	advise(&r, CAUSE_CONCURRENCY);
	last = r.verdict.fixes[r.verdict.fix_count - 1].text;
	assert_null(strstr(last, "of the limit"));
	arena_free(&r.arena);
	(void)state;
}

/* With memory left, somebody else than the kernel killed it. */
static void test_killer(void **state)
{
	static struct verdict_result r;

	r.kill = (struct kill_view){
	    .killed = true, .seen = true, .counter = KILL_COUNTER_QUIET, .outlook.plenty = true};
	advise(&r, CAUSE_HEALTHY);
	assert_int_equal(r.verdict.fix_count, 1);
	assert_non_null(strstr(r.verdict.fixes[0].text, "who sent SIGKILL"));
	r.kill.seen = false;
	advise(&r, CAUSE_HEALTHY);
	assert_int_equal(r.verdict.fix_count, 0);
	arena_free(&r.arena);
	(void)state;
}

/* What was loaded before goes first; on a device nothing is known of that. */
static void test_loaded_again(void **state)
{
	static struct verdict_result r;
	const struct fix *fixes = r.verdict.fixes;

	r.verdict.blame.function = "load";
	r.ranking.count = 1;
	r.ranking.list[0].finding = (struct finding){.cause = CAUSE_OVERSIZED_MODEL, .late = true};
	advise(&r, CAUSE_OVERSIZED_MODEL);
	assert_non_null(strstr(fixes[0].text, "what load loaded before"));
	r.failure.kind = FAILURE_CUDA_OOM;
	advise(&r, CAUSE_OVERSIZED_MODEL);
	assert_null(strstr(fixes[0].text, "loaded before"));
	arena_free(&r.arena);
	(void)state;
}

/* A knowledge file that is deleted after reading. */
static void add_knowledge(struct knowledge *knowledge, const char *text)
{
	char path[] = "/tmp/whyoom-fixes-XXXXXX";
	struct err err = {""};
	int fd = mkstemp(path);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
	close(fd);
	assert_int_equal(knowledge_add(knowledge, path, &err), 0);
	unlink(path);
}

static const struct symbol *in_python(const char *function, const char *file, uint32_t id)
{
	static struct symbol symbols[8];

	symbols[id] = (struct symbol){.function = function, .file = file, .python = true, .id = id};
	return &symbols[id];
}

#define ACME                                                                                       \
	"framework = acme\nname = Acme\npackage = acme/\n\n[role history]\n"                       \
	"python = acme/store.py: keep\n\n[fix leak]\ntext = Give the store a bound.\n"
#define NUMBERS                                                                                    \
	"framework = numbers\nname = Numbers\npackage = numbers/\n\n[fix leak]\ntext = "           \
	"Copy.\n\n[fix "                                                                           \
	"fragmentation]\ntext = Use pools.\n"
#define SERVER                                                                                     \
	"framework = server\nname = Server\npackage = server/\n\n[role request-entry]\n"           \
	"python = server/app.py: answer\n\n[fix leak]\ntext = Build handlers once.\n"

/* A framework's advice, by the frames of the blamed stack: known participants come first, code
 * that merely computes inside it last; except where its allocator splits memory up. */
static void test_frameworks(void **state)
{
	struct symbol symbols[] = {*in_python("main", "/app/main.py", 1),
	    *in_python("keep", "/lib/site-packages/acme/store.py", 2),
	    *in_python("ones", "/lib/site-packages/numbers/make.py", 3)};
	struct verdict_result r = {.verdict = {.blame = {.stack = {symbols, 3}}}};
	const struct fix *fixes = r.verdict.fixes;

	r.frameworks.knowledge = knowledge_new();
	add_knowledge(r.frameworks.knowledge, ACME);
	add_knowledge(r.frameworks.knowledge, NUMBERS);
	advise(&r, CAUSE_LEAK);
	assert_string_equal(fixes[0].for_, "Acme");
	assert_string_equal(fixes[0].text, "Give the store a bound.");
	assert_string_equal(fixes[1].for_, "any");
	assert_string_equal(fixes[r.verdict.fix_count - 1].for_, "Numbers");
	advise(&r, CAUSE_FRAGMENTATION);
	assert_string_equal(fixes[0].for_, "Numbers");
	advise(&r, CAUSE_PROMPT_GROWTH);
	assert_string_equal(fixes[0].for_, "any");
	knowledge_free(r.frameworks.knowledge);
	arena_free(&r.arena);
	(void)state;
}

/* A framework that runs the process's requests gives advice even without a frame on the stack; a
 * library does not. */
static void test_serving(void **state)
{
	struct verdict_result r = {
	    .verdict = {.blame = {.stack = {in_python("make", "/app/main.py", 1), 1}}}};
	const struct fix *fixes = r.verdict.fixes;

	r.frameworks.knowledge = knowledge_new();
	add_knowledge(r.frameworks.knowledge, NUMBERS);
	add_knowledge(r.frameworks.knowledge, SERVER);
	r.frameworks.frames = framework_frames_new(r.frameworks.knowledge);
	framework_frame(
	    r.frameworks.frames, in_python("ones", "/lib/site-packages/numbers/make.py", 2));
	framework_frame(
	    r.frameworks.frames, in_python("route", "/lib/site-packages/server/route.py", 3));
	advise(&r, CAUSE_LEAK);
	assert_string_equal(fixes[0].for_, "Server");
	assert_string_equal(fixes[1].for_, "any");
	framework_frames_free(r.frameworks.frames);
	knowledge_free(r.frameworks.knowledge);
	arena_free(&r.arena);
	(void)state;
}

/* Advice about threads is only for a process in which several allocate. */
static void test_threads(void **state)
{
	struct lane lanes[] = {{0}, {.thread = 1}, {.thread = 1, .task = 7}, {.thread = 2}};
	struct symbol symbols[] = {*in_python("ones", "/lib/site-packages/numbers/make.py", 1)};
	struct verdict_result r = {.verdict = {.blame = {.stack = {symbols, 1}}}};
	struct requests requests = {.lanes = {.items = lanes}};
	const struct fix *fixes = r.verdict.fixes;

	r.frameworks.knowledge = knowledge_new();
	add_knowledge(r.frameworks.knowledge,
	    NUMBERS "\n[fix fragmentation]\nwhere = threads\ntext = Share arenas.\n");
	r.flow.requests = &requests;
	for (requests.lanes.count = 3; requests.lanes.count <= 4; requests.lanes.count++) {
		advise(&r, CAUSE_FRAGMENTATION);
		assert_string_equal(fixes[0].text, "Use pools.");
		assert_int_equal(
		    strcmp(fixes[1].text, "Share arenas.") == 0, requests.lanes.count == 4);
	}
	knowledge_free(r.frameworks.knowledge);
	arena_free(&r.arena);
	(void)state;
}

/* What gives pages back helps against a limit on resident memory only. */
static void test_resident(void **state)
{
	struct symbol symbols[] = {*in_python("ones", "/lib/site-packages/numbers/make.py", 1)};
	struct verdict_result r = {.verdict = {.blame = {.stack = {symbols, 1}}}};

	r.frameworks.knowledge = knowledge_new();
	add_knowledge(r.frameworks.knowledge,
	    NUMBERS "\n[fix fragmentation]\nwhere = resident\ntext = Trim.\n");
	r.failure.limit = LIMIT_CGROUP;
	advise(&r, CAUSE_FRAGMENTATION);
	assert_string_equal(r.verdict.fixes[1].text, "Trim.");
	r.failure.limit = LIMIT_AS;
	advise(&r, CAUSE_FRAGMENTATION);
	assert_string_not_equal(r.verdict.fixes[1].text, "Trim.");
	knowledge_free(r.frameworks.knowledge);
	arena_free(&r.arena);
	(void)state;
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_fixes),
	    cmocka_unit_test(test_varying), cmocka_unit_test(test_pool),
	    cmocka_unit_test(test_stacks), cmocka_unit_test(test_killer),
	    cmocka_unit_test(test_loaded_again), cmocka_unit_test(test_resident),
	    cmocka_unit_test(test_special_cases), cmocka_unit_test(test_limits),
	    cmocka_unit_test(test_bound), cmocka_unit_test(test_frameworks),
	    cmocka_unit_test(test_serving), cmocka_unit_test(test_threads)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
