/* traceback.c - see traceback.h. */
#include "explain/traceback.h"

#include <errno.h>
#include <string.h>

/* Returns the start of the last traceback; `text` if there is no title, only frames. */
static const char *last_title(const char *text, size_t bytes)
{
	static const char title[] = "Traceback (most recent call last)";
	const char *found = text, *at = text;
	size_t left = bytes;

	while ((at = memmem(at, left, title, sizeof(title) - 1))) {
		found = at++;
		left = bytes - (size_t)(at - text);
	}
	return found;
}

static size_t until(const char *text, size_t bytes, const char *ends)
{
	size_t n = 0;

	while (n < bytes && !strchr(ends, text[n]))
		n++;
	return n;
}

/* Reads `File "x.py", line 12, in f` from behind `File "`. 0; -ENOENT: it is no frame; -ENOMEM. */
static int read_frame(struct traceback_frame *out, const char *p, size_t bytes, struct arena *arena)
{
	static const char line[] = "\", line ", in[] = ", in ";
	size_t n = until(p, bytes, "\"\n"), word;

	*out = (struct traceback_frame){0};
	if (bytes - n < sizeof(line) || memcmp(p + n, line, sizeof(line) - 1) != 0)
		return -ENOENT;
	out->file = arena_copy(arena, p, n);
	p += n + sizeof(line) - 1;
	bytes -= n + sizeof(line) - 1;
	for (n = 0; n < bytes && n < 9 && p[n] >= '0' && p[n] <= '9'; n++)
		out->line = out->line * 10 + (uint32_t)(p[n] - '0');
	if (bytes - n < sizeof(in) || memcmp(p + n, in, sizeof(in) - 1) != 0)
		return -ENOENT;
	n += sizeof(in) - 1;
	word = until(p + n, bytes - n, " \t\r\n\\");
	out->function = arena_copy(arena, p + n, word);
	return out->file && out->function ? 0 : -ENOMEM;
}

static void callsite_frame(
    struct traceback *t, struct traceback_frame frame, const struct knowledge *knowledge)
{
	struct knowledge_place callsite =
	    knowledge_place(knowledge, frame.function, frame.file, NULL);

	t->frames++;
	frame.framework = callsite.framework;
	t->roles[callsite.role] = frame; /* the innermost frame comes last */
	if (callsite.framework && callsite.role != ROLE_ALLOCATOR)
		t->framework = frame;
	else if (!callsite.framework && !strstr(frame.file, "-packages/") &&
		 !strstr(frame.file, "/lib/python"))
		t->own = frame;
}

int traceback_read(struct traceback *out, const char *text, size_t bytes,
    const struct knowledge *knowledge, struct arena *arena)
{
	static const char mark[] = "File \"";
	const char *end = text + bytes, *at = last_title(text, bytes);

	*out = (struct traceback){0};
	while ((at = memmem(at, (size_t)(end - at), mark, sizeof(mark) - 1))) {
		struct traceback_frame frame;
		int rc;

		at += sizeof(mark) - 1;
		rc = read_frame(&frame, at, (size_t)(end - at), arena);
		if (rc == -ENOMEM)
			return rc;
		if (!rc)
			callsite_frame(out, frame, knowledge);
	}
	out->roles[ROLE_NONE] = (struct traceback_frame){0};
	return 0;
}
