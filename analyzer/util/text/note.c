#include "util/text/note.h"

#include <stdarg.h>
#include <stdio.h>

#include "util/progress.h"
#include "util/text/str.h"

static void (*note_sink)(void *arg, const char *text);
static void *note_arg;

void note_redirect(void (*sink)(void *arg, const char *text), void *arg)
{
	note_sink = sink;
	note_arg = arg;
}

static void note_ascii(FILE *out, const char *text)
{
	fputs("whyoom: ", out);
	for (; *text; text++)
		fputc(*text >= ' ' && *text <= '~' ? *text : '?', out);
	fputc('\n', out);
}

void note_safe(FILE *out, const char *text)
{
	struct str safe = {0};

	str_safe(&safe, text);
	if (safe.failed) /* the message may be that there is no memory */
		note_ascii(out, text);
	else
		fprintf(out, "whyoom: %s\n", str_text(&safe));
	str_free(&safe);
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
	note_safe(stderr, text);
}
