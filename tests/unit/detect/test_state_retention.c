/* Speaks of kept copies of a state, and of blocks that known stores keep; not of a history, a
 * growing buffer, or a leak. */
#include "detect/scene.h"

static void test_copies_in_one_block(void **state)
{
	struct staged t = {.s = script_new()};
	uint32_t add = script_stack(t.s, "main;step;add"),
		 save = script_stack(t.s, "main;step;save");

	for (uint64_t i = 1; i <= 200; i++) {
		script_alloc(t.s, add, 5000);
		script_alloc(t.s, save, i * 5000 + 300);
	}
	script_failed(t.s, save, 201 * 5000 + 300);
	stage(&t, detect_state_retention, true);
	assert_int_equal(t.rc, 0);
	assert_string_equal(blamed(&t), "save");
	assert_true(t.f.strength > 0.8);
	assert_int_equal(t.f.claim_count, 1);
	strike(&t);
	(void)state;
}

static void test_copies_of_a_buffer(void **state)
{
	struct staged t = {.s = script_new()};
	uint32_t add = script_stack(t.s, "main;step;add"),
		 save = script_stack(t.s, "main;step;save");
	uint64_t buffer = 0;

	for (uint64_t i = 1; i <= 200; i++) {
		uint64_t next = script_alloc(t.s, add, i * 4000);

		if (buffer)
			script_release(t.s, buffer);
		buffer = next;
		script_alloc(t.s, save, i * 4000 + 16);
	}
	script_failed(t.s, save, 201 * 4000);
	stage(&t, detect_state_retention, true);
	assert_int_equal(t.rc, 0);
	assert_string_equal(blamed(&t), "save");
	strike(&t);
	(void)state;
}

/* It holds much from the start, and grows little beside that. Returns the detector's answer. */
static int beside_a_creeping_state(bool copies)
{
	struct staged t = {.s = script_new()};
	uint32_t add = script_stack(t.s, "main;step;add"),
		 save = script_stack(t.s, "main;step;save");
	uint64_t state = script_alloc(t.s, add, 400000);
	int rc;

	for (uint64_t i = 1; i <= 200; i++) {
		state = script_realloc(t.s, state, add, 400000 + i * 700);
		script_alloc(t.s, save, copies ? 400000 + i * 700 : 420000);
	}
	script_failed(t.s, save, 420000);
	stage(&t, detect_state_retention, true);
	rc = t.rc;
	assert_true(rc || t.f.strength > 0.8);
	strike(&t);
	return rc;
}

static void test_creeping_state(void **state)
{
	assert_int_equal(beside_a_creeping_state(true), 0);
	assert_int_equal(beside_a_creeping_state(false), DETECT_SILENT);
	(void)state;
}

/* The parts of a state may become a little larger, too. */
static void test_longer_entries(void **state)
{
	struct staged t = {.s = script_new()};
	uint32_t add = script_stack(t.s, "main;step;add"),
		 save = script_stack(t.s, "main;step;save");
	uint64_t held = 0;

	for (uint64_t i = 1; i <= 200; i++) {
		uint64_t entry = 3000 + i * 15;

		script_alloc(t.s, add, entry);
		held += entry;
		script_alloc(t.s, save, held);
	}
	script_failed(t.s, save, held);
	stage(&t, detect_state_retention, true);
	assert_int_equal(t.rc, 0);
	assert_string_equal(blamed(&t), "save");
	strike(&t);
	(void)state;
}

static void test_copies_in_pieces(void **state)
{
	struct staged t = {.s = script_new()};
	uint32_t add = script_stack(t.s, "main;step;add"),
		 copy = script_stack(t.s, "main;step;copy");

	for (int i = 1; i <= 150; i++) {
		script_alloc(t.s, add, 700);
		for (int k = 0; k < i; k++)
			script_alloc(t.s, copy, 700);
	}
	script_failed(t.s, copy, 700);
	stage(&t, detect_state_retention, true);
	assert_int_equal(t.rc, 0);
	assert_string_equal(blamed(&t), "copy");
	assert_int_equal(t.f.request_bytes, 700);
	strike(&t);
	(void)state;
}

/* One for each step, of something that grows and was not recorded. While no step works in between,
 * they may be anything. */
static void test_snapshots(void **state)
{
	for (int steps = 0; steps < 2; steps++) {
		struct staged t = {.s = script_new()};
		uint32_t save = script_stack(t.s, "main;step;save"),
			 work = script_stack(t.s, "main;step;work");

		for (uint64_t i = 1; i <= 60; i++) {
			script_alloc(t.s, save, i * 5000);
			if (steps)
				script_release(t.s, script_alloc(t.s, work, 70000));
		}
		script_failed(t.s, save, 61 * 5000);
		stage(&t, detect_state_retention, true);
		assert_int_equal(t.rc, steps ? 0 : DETECT_SILENT);
		if (steps) {
			assert_string_equal(blamed(&t), "save");
			assert_true(t.f.strength > 0.75 && t.f.strength < 0.85);
			assert_int_equal(detect_prompt_growth(&t.scene, &t.f), 0);
			assert_true(t.f.strength < 0.5);
		}
		strike(&t);
	}
	(void)state;
}

static void test_history(void **state)
{
	struct staged t = {.s = script_new()};
	uint32_t add = script_stack(t.s, "main;turn;add"),
		 build = script_stack(t.s, "main;turn;build");

	for (uint64_t i = 1; i <= 200; i++) {
		script_alloc(t.s, add, 5000);
		script_release(t.s, script_alloc(t.s, build, i * 5000));
	}
	script_failed(t.s, build, 201 * 5000);
	stage(&t, detect_state_retention, true);
	assert_int_equal(t.rc, DETECT_SILENT);
	strike(&t);
	(void)state;
}

/* Two that leak at the same pace are no copies of each other. */
static void test_leaks(void **state)
{
	struct staged t = {.s = script_new()};
	uint32_t a = script_stack(t.s, "main;request;session"),
		 b = script_stack(t.s, "main;request;log");

	for (int i = 0; i < 400; i++) {
		script_alloc(t.s, a, 700);
		script_alloc(t.s, b, 9000);
	}
	script_failed(t.s, b, 9000);
	stage(&t, detect_state_retention, true);
	assert_int_equal(t.rc, DETECT_SILENT);
	strike(&t);
	(void)state;
}

/* An arena that the interpreter took early at that line is no growing state and has no copies:
 * the kept blocks come at the pace of the line's small blocks. */
static void test_leak_beside_an_arena(void **state)
{
	struct staged t = {.s = script_new()};
	uint32_t keep = script_stack(t.s, "main;keep"), start = script_stack(t.s, "main;start"),
		 work = script_stack(t.s, "main;work");

	for (int i = 0; i < 26; i++) {
		script_alloc(t.s, keep, 2000000);
		script_alloc(t.s, keep, 800000);
		script_release(t.s, script_alloc(t.s, work, 50000));
		script_alloc(t.s, start, i == 2 ? 1 * MiB : 768);
		script_wait(t.s, 1000000);
	}
	script_failed(t.s, keep, 2000000);
	stage(&t, detect_state_retention, true);
	assert_int_equal(t.rc, DETECT_SILENT);
	strike(&t);
	(void)state;
}

static void test_known_store(void **state)
{
	struct staged t = {.s = script_new()};
	uint32_t put = script_stack(t.s, "main;request;put");
	enum role roles[] = {ROLE_CACHE, ROLE_CACHE, ROLE_CACHE};

	for (int i = 0; i < 400; i++)
		script_alloc(t.s, put, 9000);
	script_failed(t.s, put, 9000);
	t.scene.roles = roles;
	stage(&t, detect_state_retention, true);
	assert_int_equal(t.rc, 0);
	assert_true(t.f.strength > 0.8);
	/* And to the leak's detector it is none. */
	assert_int_equal(detect_leak(&t.scene, &t.f), 0);
	assert_true(t.f.strength < 0.5);
	strike(&t);
	(void)state;
}

/* A store without a copy keeps another line's blocks: one with each of its own, and smaller. A
 * larger leak at the same pace is no part, nor is one at another pace. */
static void test_kept_with_store(void **state)
{
	static const struct {
		uint64_t size;
		int late; /* from which request on */
		bool with;
	} of[] = {{6000, 0, true}, {60000, 0, false}, {6000, 250, false}};

	for (size_t n = 0; n < sizeof(of) / sizeof(*of); n++) {
		struct staged t = {.s = script_new()};
		uint32_t put = script_stack(t.s, "main;request;put"),
			 photo = script_stack(t.s, "main;request;photo"),
			 work = script_stack(t.s, "main;request;work");
		enum role roles[8] = {ROLE_NONE};
		struct finding f;

		for (int i = 0; i < 400; i++) {
			script_alloc(t.s, put, 4000);
			script_alloc(t.s, put, 5000);
			script_release(t.s, script_alloc(t.s, work, 20000));
			if (i >= of[n].late)
				script_alloc(t.s, photo, of[n].size);
			script_wait(t.s, 1000000);
		}
		script_failed(t.s, put, 9000);
		stage(&t, detect_state_retention, true);
		for (uint32_t i = 0; i < t.p->count; i++)
			if (strcmp(t.p->list[i].function, "put") == 0)
				roles[i] = ROLE_CHECKPOINTER;
		t.scene.roles = roles;
		memset(&f, 0, sizeof(f));
		assert_int_equal(detect_state_retention(&t.scene, &f), 0);
		assert_int_equal(f.bytes > 400 * 9000, of[n].with);
		memset(&f, 0, sizeof(f));
		assert_int_equal(detect_leak(&t.scene, &f), 0);
		assert_int_equal(f.strength < 0.5, of[n].with);
		strike(&t);
	}
	(void)state;
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_copies_in_one_block),
	    cmocka_unit_test(test_copies_of_a_buffer), cmocka_unit_test(test_creeping_state),
	    cmocka_unit_test(test_longer_entries), cmocka_unit_test(test_copies_in_pieces),
	    cmocka_unit_test(test_snapshots), cmocka_unit_test(test_history),
	    cmocka_unit_test(test_leaks), cmocka_unit_test(test_leak_beside_an_arena),
	    cmocka_unit_test(test_known_store), cmocka_unit_test(test_kept_with_store)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
