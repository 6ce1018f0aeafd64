/*
 * note.h - prints remarks beside the result, such as what was left out and why: one line on stderr
 * with the prefix "whyoom: ". A test or another front end can redirect them. One thread.
 */
#ifndef ANALYZER_UTIL_NOTE_H
#define ANALYZER_UTIL_NOTE_H

#include <stdio.h>

/* Print "whyoom: " and a message, escaped by str_safe() as it may have names from a trace. */
void note_safe(FILE *out, const char *text);

void note(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Send notes to `sink`, without a newline; NULL: to stderr again. */
void note_redirect(void (*sink)(void *arg, const char *text), void *arg);

#endif
