/*
 * frames.h - a stack for a person: which of its frames say something, and its lines.
 */
#ifndef ANALYZER_REPORT_FRAMES_H
#define ANALYZER_REPORT_FRAMES_H

#include "report/text/style.h"
#include "util/text/json.h"

/*
 * Writes the frames from index `from` outwards, innermost first, one a line after `indent` blanks:
 * the first with "in", the others with "from". At most `most` of them; those that are skipped or
 * did not fit are counted on a last line, with the option that shows them.
 *
 * Skipped are the interpreter's own frames between and around Python's, what libc does before
 * main() or a thread's function, and Python frames of libraries that only pass the call on: those
 * between two frames of the user's, and several of one file between two frames of another package.
 * In front of a Python frame comes the native function that it calls on the way to the block, if
 * that is no other Python's. With style->verbose nothing of Python is skipped and no place is cut;
 * with style->native nothing of native code either; with either nothing is put in front.
 */
void frames_write(struct str *out, const struct report_style *style, const struct stack_view *v,
    size_t from, unsigned most, unsigned indent);

/* For a program: all of its frames, innermost first. */
void report_stack_json(struct json *j, const char *key, const struct stack_view *v);

#endif
