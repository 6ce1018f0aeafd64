#include "util/note.h"

#include <stdarg.h>
#include <stdio.h>

#include "util/progress.h"

static void (*note_sink)(void *arg, const char *text);
static void *note_arg;

void note_redirect(void (*sink)(void *arg, const char *text), void *arg)
{
	note_sink = sink;
	note_arg = arg;
}

void note(const char *format, ...)
{
	char text[1024];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	if (note_sink) {
		note_sink(note_arg, text);
		return;
	}
	progress_clear();
	fprintf(stderr, "whyoom: %s\n", text);
}
