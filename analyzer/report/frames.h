/*
 * frames.h - a stack for a person: which of its frames say something, and its lines.
 */
#ifndef ANALYZER_REPORT_FRAMES_H
#define ANALYZER_REPORT_FRAMES_H

#include "report/style.h"
#include "util/json.h"

/*
 * A mark for each frame: true when a reader skips it, because it is the interpreter's own between
 * or around Python frames, or what libc does before main() or a thread's function. To be freed;
 * NULL: no memory, or no frames.
 */
bool *frames_internal(const struct stack_view *v);

/*
 * Writes the frames from index `from` outwards, innermost first, one a line after `indent` blanks:
 * the first with "in", the others with "from". At most `most` of them; those that are skipped or
 * did not fit are counted on a last line, with the option that shows them. With style->native none
 * is skipped, with style->verbose no name is cut.
 */
void frames_write(struct str *out, const struct report_style *style, const struct stack_view *v,
    size_t from, unsigned most, unsigned indent);

/* For a program: all of its frames, innermost first. */
void report_stack_json(struct json *j, const char *key, const struct stack_view *v);

#endif
