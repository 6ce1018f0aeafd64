/*
 * note.h - lines for the person at the terminal that are not the result: what was left out and why.
 * One line on stderr, "whyoom: " before it. Where a test or another front end wants them, it takes
 * them instead. One thread.
 */
#ifndef ANALYZER_UTIL_NOTE_H
#define ANALYZER_UTIL_NOTE_H

#include <stdio.h>

/* "whyoom: " and an error's words, which may have names of a trace in them: as str_safe(). */
void note_safe(FILE *out, const char *text);

void note(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* From here on notes go to `sink`; NULL: to stderr again. The text has no newline. */
void note_redirect(void (*sink)(void *arg, const char *text), void *arg);

#endif
