/* Prints reports as JSON, one a line argument, for schema.py: "leak", "none" (nothing recorded). */
#include "sample.h"

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
		script_exit(s, 0);
		if (verdict_of_feed(script_feed(s), NULL, &r, &err))
			return 1;
	}
	report_json(&r, NULL, &out);
	fputs(str_text(&out), stdout);
	str_free(&out);
	verdict_fini(&r);
	script_free(s);
	return 0;
}
