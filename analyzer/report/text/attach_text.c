/* attach_text.c - the result of `whyoom attach` and `whyoom detach`, for a person. */
#include <string.h>

#include "report/format.h"
#include "util/text/fmt.h"

static void put_begun(const struct attached_view *v, const char *name, struct str *out)
{
	struct fmt pause, time;

	str_printf(out, "%d (%s): recorded from now on, in mode %s\n", v->pid, name, v->mode);
	str_printf(out, "  trace      %s\n", v->trace);
	if (strcmp(v->trace, v->trace_here) != 0)
		str_printf(
		    out, "             from here: %s, while the process runs\n", v->trace_here);
	str_puts(
	    out, "  recorded   what it allocates from now on; what it had before only in total\n");
	str_puts(out, "  children   what it forks, too; other programs that it starts are not\n");
	str_printf(out, "  paused     thread %d for %s, %s; no other thread\n", v->thread,
	    fmt_duration(&pause, v->pause_ns),
	    v->asleep ? "which was asleep" : "where it was to enter malloc");
	str_printf(out, "  look       whyoom watch %d; whyoom report %s\n", v->pid, v->trace_here);
	if (v->for_ns)
		str_printf(
		    out, "  ends       after %s, or with Ctrl-C\n", fmt_duration(&time, v->for_ns));
	else
		str_printf(out, "  end it     whyoom detach %d\n", v->pid);
}

void attach_text(const struct attached_view *v, const struct report_style *style, struct str *out)
{
	struct str name = {0};
	struct fmt pause;

	(void)style;
	str_safe(&name, v->name); /* a terminal must not become its victim */
	if (v->begun)
		put_begun(v, str_text(&name), out);
	else
		str_printf(out, "%d (%s): recorded no more; thread %d was paused for %s\n", v->pid,
		    str_text(&name), v->thread, fmt_duration(&pause, v->pause_ns));
	str_free(&name);
}
