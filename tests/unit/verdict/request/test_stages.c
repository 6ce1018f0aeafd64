/* Each stage's bytes by the innermost frame that has a role: live now, and at the peak. */
#include "model/unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "model/script.h"
#include "verdict/request/stages.h"

static struct knowledge *known(void)
{
	struct knowledge *k = knowledge_new();
	char path[] = "/tmp/whyoom-stages-XXXXXX";
	struct err err = {""};
	int fd = mkstemp(path);

	assert_true(fd >= 0);
	assert_true(dprintf(fd, "framework = acme\nname = Acme\npackage = acme/\n\n"
				"[role document-loader]\npython = acme/load.py\n\n"
				"[role splitter]\npython = acme/split.py: Splitter.cut\n\n"
				"[role request-entry]\npython = acme/chain.py: invoke\n\n"
				"[role allocator-internal]\npython = acme/arena.py\n") > 0);
	close(fd);
	assert_int_equal(knowledge_add(k, path, &err), 0);
	unlink(path);
	return k;
}

static void test_stages(void **state)
{
	struct script *s = script_new();
	struct feed feed = script_feed(s);
	struct knowledge *k = known();
	struct framework_frames *frames = framework_frames_new(k);
	struct stages st;
	struct stage list[ROLE_COUNT];
	uint32_t load = script_stack(s, "main;read@/x/acme/load.py:3;take@/x/acme/arena.py:9"),
		 cut =
		     script_stack(s, "main;read@/x/acme/load.py:3;Splitter.cut@/x/acme/split.py:4"),
		 own = script_stack(s, "main;invoke@/x/acme/chain.py:1;mine@/app/mine.py:2");

	stages_init(&st, &feed, frames);
	assert_true(stages_in_request(&st, own));
	assert_false(stages_in_request(&st, load));
	stages_acquired(&st, load, 500, 1);
	stages_acquired(&st, cut, 300, 2);
	stages_acquired(&st, cut, 300, 3);
	stages_acquired(&st, own, 9000, 3);
	stages_acquired(&st, 0, 9000, 3);
	stages_released(&st, cut, 300);
	stages_acquired(&st, cut, 100, 4);
	assert_int_equal(stages_list(&st, list), 2);
	assert_int_equal(list[0].role, ROLE_SPLITTER);
	assert_int_equal(list[0].peak, 600);
	assert_int_equal(list[0].peak_ns, 3);
	assert_int_equal(list[0].held, 400);
	assert_int_equal(list[0].total, 700);
	assert_int_equal(list[1].role, ROLE_DOCUMENT_LOADER);
	assert_int_equal(list[1].held, 500);
	framework_frames_free(frames);
	knowledge_free(k);
	script_free(s);
	(void)state;
}

static void test_nothing_known(void **state)
{
	struct script *s = script_new();
	struct feed feed = script_feed(s);
	struct stage list[ROLE_COUNT];
	struct stages st;
	uint32_t load = script_stack(s, "main;read@/x/acme/load.py:3");

	stages_init(&st, &feed, NULL);
	stages_acquired(&st, load, 500, 1);
	assert_false(stages_in_request(&st, load));
	assert_int_equal(stages_list(&st, list), 0);
	script_free(s);
	(void)state;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_stages), cmocka_unit_test(test_nothing_known)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
