/* Prints reports as JSON, one a line argument, for schema.py: "leak", "none" (nothing recorded),
 * "recovered", "served". */
#include "sample.h"

/* A phase, and two requests, of which one goes on. */
static void serve(struct script *s)
{
	struct event *e = script_event(s, EV_MARK, 0);

	e->u.mark.phase = TRACE_MARK_BEGIN;
	e->u.mark.what = TRACE_MARK_PHASE;
	e->u.mark.name = "serving";
	for (uint32_t i = 1; i <= 2; i++) {
		e = script_event(s, EV_MARK, 0);
		e->u.mark.phase = TRACE_MARK_BEGIN;
		e->u.mark.id = i;
		e->u.mark.name = "ask";
		script_alloc(s, script_stack(s, "main;answer"), 1000);
		e = script_event(s, EV_MARK, 0);
		e->u.mark.phase = i == 1 ? TRACE_MARK_END : TRACE_MARK_POINT;
		e->u.mark.id = i;
	}
}

int main(int argc, char **argv)
{
	struct verdict_result r;
	struct str out = {0};
	struct script *s;
	struct err err;

	if (argc < 2)
		return 2;
	if (strcmp(argv[1], "leak") == 0) {
		s = sample(&r);
	} else {
		s = script_new();
		if (strcmp(argv[1], "recovered") == 0) {
			script_alloc(s, script_stack(s, "main"), 100);
			script_failed(s, script_stack(s, "main;probe"), 1 << 30);
			script_alloc(s, script_stack(s, "main;probe"), 1 << 20);
		}
		if (strcmp(argv[1], "served") == 0)
			serve(s);
		script_exit(s, 0);
		if (verdict_of_feed(script_feed(s), NULL, &r, &err))
			return 1;
	}
	report_json(&(struct report_view){.result = &r}, NULL, &out);
	fputs(str_text(&out), stdout);
	str_free(&out);
	verdict_fini(&r);
	script_free(s);
	return 0;
}
