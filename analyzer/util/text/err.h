/*
 * err.h - the message of an error, passed up with a negative errno. Only cmd/ prints it.
 */
#ifndef ANALYZER_UTIL_ERR_H
#define ANALYZER_UTIL_ERR_H

struct err {
	char text[512]; /* what failed, where (file, offset, line), what to do; no newline */
};

/* Format the message into `err`, which may be NULL, and return `code`, a negative errno. */
int err_set(struct err *err, int code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

#endif
