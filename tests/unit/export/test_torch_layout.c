/* Segments and blocks that always fit together, whatever the trace says. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "export/torch_layout.h"

struct told {
	char text[512];
	struct torch_layout l;
};

static void note(struct told *t, const char *what, const struct torch_piece *p)
{
	size_t n = strlen(t->text);

	snprintf(t->text + n, sizeof(t->text) - n, "%s%llu-%llu ", what,
	    (unsigned long long)p->start, (unsigned long long)p->end);
}

static void on_change(void *arg, enum torch_layout_change change, const struct torch_piece *p)
{
	static const char *const names[] = {"A", "F", "M", "U", "+", "-"};

	note(arg, names[change], p);
}

static void on_segment(void *arg, const struct torch_piece *p)
{
	note(arg, p->expandable ? "M" : "A", p);
}

static void on_block(void *arg, const struct torch_piece *p)
{
	note(arg, "+", p);
}

static void begin(struct told *t)
{
	t->text[0] = 0;
	torch_layout_init(&t->l);
	t->l.changed = on_change;
	t->l.arg = t;
}

/* What was told since the last time. */
static void is(struct told *t, const char *text)
{
	assert_string_equal(t->text, text);
	t->text[0] = 0;
}

static void shows(struct told *t, const char *text)
{
	struct torch_layout_visit visit = {t, on_segment, on_block};

	torch_layout_each(&t->l, &visit);
	is(t, text);
}

static struct torch_piece piece(uint64_t start, uint64_t end, bool expandable)
{
	return (struct torch_piece){.start = start, .end = end, .expandable = expandable};
}

static void memory(struct told *t, uint64_t start, uint64_t end, bool expandable)
{
	struct torch_piece p = piece(start, end, expandable);

	assert_int_equal(torch_layout_memory(&t->l, &p), 0);
}

static void block(struct told *t, uint64_t start, uint64_t end)
{
	struct torch_piece p = piece(start, end, false);

	assert_int_equal(torch_layout_block(&t->l, &p), 0);
}

static void no_block(struct told *t, uint64_t start)
{
	assert_int_equal(torch_layout_no_block(&t->l, start), 0);
}

static void no_memory(struct told *t, uint64_t start, uint64_t end)
{
	assert_int_equal(torch_layout_no_memory(&t->l, start, end), 0);
}

static void makes_segments_of_used_memory(void **state)
{
	struct told t;

	begin(&t);
	memory(&t, 100, 200, false);
	memory(&t, 300, 400, false); /* another library's */
	is(&t, "");
	block(&t, 110, 120);
	is(&t, "A100-200 +110-120 ");
	block(&t, 120, 200);
	is(&t, "+120-200 ");
	shows(&t, "A100-200 +110-120 +120-200 ");
	no_block(&t, 110);
	no_block(&t, 110);
	no_block(&t, 150);
	is(&t, "-110-120 ");
	no_block(&t, 120);
	no_memory(&t, 100, 200);
	no_memory(&t, 300, 400);
	is(&t, "-120-200 F100-200 ");
	torch_layout_fini(&t.l);
	(void)state;
}

static void joins_expandable_parts(void **state)
{
	struct told t;

	begin(&t);
	memory(&t, 100, 200, true);
	memory(&t, 200, 300, true);
	memory(&t, 300, 400, true);
	block(&t, 150, 250);
	is(&t, "M100-200 M200-300 +150-250 ");
	shows(&t, "M100-300 +150-250 ");
	no_block(&t, 150);
	no_memory(&t, 150, 250);
	is(&t, "-150-250 U150-200 U200-250 ");
	shows(&t, "M100-150 M250-300 ");
	torch_layout_fini(&t.l);
	(void)state;
}

static void makes_segments_of_the_unrecorded(void **state)
{
	struct told t;

	begin(&t);
	memory(&t, 120, 140, true);
	block(&t, 100, 150);
	is(&t, "M120-140 M100-120 M140-150 +100-150 ");
	shows(&t, "M100-150 +100-150 ");
	no_block(&t, 100);
	shows(&t, "-100-150 U100-120 U120-140 U140-150 ");
	block(&t, 500, 600);
	block(&t, 600, 700);
	is(&t, "M500-600 +500-600 M600-700 +600-700 ");
	no_block(&t, 500);
	is(&t, "-500-600 U500-600 ");
	torch_layout_fini(&t.l);
	(void)state;
}

static void leaves_out_what_does_not_fit(void **state)
{
	struct told t;

	begin(&t);
	memory(&t, 100, 200, false);
	block(&t, 100, 150);
	is(&t, "A100-200 +100-150 ");
	block(&t, 140, 160); /* in another */
	block(&t, 190, 210); /* across the end */
	block(&t, 1, UINT64_MAX); /* no number of JavaScript */
	block(&t, UINT64_MAX, 5);
	block(&t, 170, 170); /* of no size */
	is(&t, "");
	assert_int_equal(t.l.left_out, 4);
	torch_layout_fini(&t.l);
	(void)state;
}

static void keeps_blocks_whose_memory_goes(void **state)
{
	struct told t;

	begin(&t);
	memory(&t, 100, 200, false);
	block(&t, 110, 120);
	is(&t, "A100-200 +110-120 ");
	no_memory(&t, 100, 200);
	is(&t, "-110-120 F100-200 M110-120 +110-120 ");
	memory(&t, 100, 300, false);
	is(&t, "-110-120 U110-120 A100-300 +110-120 ");
	shows(&t, "A100-300 +110-120 ");
	assert_int_equal(t.l.left_out, 0);
	torch_layout_fini(&t.l);
	(void)state;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(makes_segments_of_used_memory),
	    cmocka_unit_test(joins_expandable_parts),
	    cmocka_unit_test(makes_segments_of_the_unrecorded),
	    cmocka_unit_test(leaves_out_what_does_not_fit),
	    cmocka_unit_test(keeps_blocks_whose_memory_goes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
