/*
 * frames.h - a stack for a person: the frames that matter, and their lines.
 */
#ifndef ANALYZER_REPORT_FRAMES_H
#define ANALYZER_REPORT_FRAMES_H

#include "report/text/style.h"
#include "util/text/json.h"

/*
 * Write the frames from index `from` outwards, innermost first, one a line after `indent` blanks:
 * the first with "in", the others with "from". At most `most` of them; a last line counts those
 * left out and names the option that shows them.
 *
 * Left out are the interpreter's frames between and around Python's, libc's before main() or a
 * thread's function, and Python frames of libraries that only pass the call on: those between two
 * of the user's, and several of one file between two of another package. A Python frame is preceded
 * by the native function that it calls on the way to the block, if no other Python lies between.
 * style->verbose shows all Python frames and cuts no source position; style->native also shows all
 * native frames; with either, no native function is put before.
 */
void frames_write(struct str *out, const struct report_style *style, const struct stack_view *v,
    size_t from, unsigned most, unsigned indent);

/* Set internal[i], which the caller zeroed, for the frames that only style->native shows. */
void frames_find_internal(const struct stack_view *v, bool *internal);

/* Append all frames for a program, innermost first. */
void report_stack_json(struct json *j, const char *key, const struct stack_view *v);

#endif
