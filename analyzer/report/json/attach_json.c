/* attach_json.c - the result of `whyoom attach` and `detach` as JSON: attach-schema.json. One line,
 * as `attach --for` writes two results. */
#include "report/format.h"
#include "util/text/json.h"

void attach_json(const struct attached_view *v, const struct report_style *style, struct str *out)
{
	struct json j = {.out = out};

	(void)style;
	json_object(&j, NULL);
	json_u64(&j, "schema", 1);
	json_string(&j, "state", v->begun ? "recording" : "ended");
	json_u64(&j, "pid", (uint64_t)v->pid);
	json_string(&j, "name", v->name);
	json_string(&j, "mode", v->mode);
	json_string(&j, "trace", v->trace);
	json_string(&j, "trace_here", v->trace_here);
	json_u64_or_null(&j, "for_ns", v->for_ns, v->for_ns > 0);
	json_u64(&j, "thread", (uint64_t)v->thread);
	json_string(&j, "thread_was", v->asleep ? "asleep" : "entering malloc");
	json_u64(&j, "paused_ns", v->pause_ns);
	json_bool(&j, "own_thread", v->own_thread);
	json_object_end(&j);
	str_putc(out, '\n');
}
