/*
 * frames.h - a stack for a person: the frames that matter, and their lines.
 */
#ifndef ANALYZER_REPORT_FRAMES_H
#define ANALYZER_REPORT_FRAMES_H

#include "report/text/style.h"
#include "util/text/json.h"

/*
 * Write the frames from index `from` outwards, innermost first, one a line after `indent` blanks:
 * the first with "in", the others with "from". At most `most` of them; a last line counts the
 * frames that were skipped or did not fit, and names the option that shows them.
 *
 * Skipped are the interpreter's own frames between and around Python's, libc's frames before main()
 * or a thread's function, and Python frames of libraries that only pass the call on: those between
 * two of the user's, and several of one file between two of another package. Before a Python frame
 * comes the native function that it calls on the way to the block, if no other Python lies between.
 * With style->verbose no Python frame is skipped and no source position is cut; with style->native
 * no native frame is skipped either; with either, no native function is put before.
 */
void frames_write(struct str *out, const struct report_style *style, const struct stack_view *v,
    size_t from, unsigned most, unsigned indent);

/* Append all frames for a program, innermost first. */
void report_stack_json(struct json *j, const char *key, const struct stack_view *v);

#endif
