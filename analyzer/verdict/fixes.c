/* fixes.c - see fixes.h. */
#include "verdict/fixes.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static void add(struct fix *fixes, size_t *count, struct arena *arena, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

static void add(struct fix *fixes, size_t *count, struct arena *arena, const char *format, ...)
{
	char text[1024];
	va_list args;
	int n;

	va_start(args, format);
	n = vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	if (n < 0 || *count == FIXES_MAX)
		return;
	fixes[*count].for_ = "any";
	fixes[*count].text = arena_copy(arena, text, strlen(text));
	*count += fixes[*count].text != NULL;
}

void fixes_for(const struct verdict_result *r, const char *cause, fixes_hook hook, void *arg,
    struct fix *fixes, size_t *count, struct arena *arena)
{
	const char *function = r->verdict.blame.function;
	const char *where = function ? function : "the blamed function";

	*count = 0;
	if (hook)
		hook(arg, cause, &r->verdict.blame.stack, fixes, count, arena);
	if (strcmp(cause, "prompt-growth") == 0) {
		add(fixes, count, arena,
		    "Bound what %s builds from: keep the last N messages or a token budget, and "
		    "trim or "
		    "summarise the rest before each call.",
		    where);
		add(fixes, count, arena,
		    "Count the tokens before the call and refuse or shorten an input that is too "
		    "long; "
		    "short requests would have passed.");
	} else if (strcmp(cause, "leak") == 0) {
		add(fixes, count, arena,
		    "Release what %s makes when its request is done: find who still refers to it "
		    "(a "
		    "global list, a cache without a bound, a handler that is never removed, a "
		    "missing "
		    "free).",
		    where);
		add(fixes, count, arena,
		    "If it is kept on purpose, give the store a bound: a largest size, an age, or "
		    "one "
		    "entry for each key.");
	} else if (strcmp(cause, "oversized-intermediate") == 0) {
		add(fixes, count, arena,
		    "Do not hold it whole: let %s work in pieces (stream, chunk, a generator, a "
		    "memory "
		    "map), or keep only the fields and rows that the next step needs.",
		    where);
		add(fixes, count, arena,
		    "Put an upper bound on one request's input, and drop references as soon as a "
		    "step "
		    "is done.");
	}
}
