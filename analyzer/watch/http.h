/*
 * http.h - answers GET and HEAD over HTTP, a few at a time, in the caller's thread: it polls
 * http_fd() for as long as http_wait_ms(), and then calls http_serve(). What strangers send is
 * bounded: connections, bytes of a request, and the time of each connection, which ends after one
 * answer. One thread.
 */
#ifndef ANALYZER_WATCH_HTTP_H
#define ANALYZER_WATCH_HTTP_H

#include <stdint.h>

#include "util/text/err.h"
#include "util/text/str.h"

#define HTTP_CONNECTIONS 16u /* at once; further ones are closed */
#define HTTP_REQUEST_BYTES (16u << 10) /* of the head of a request */
#define HTTP_SECONDS 10u /* of a connection, from its begin to its end */

struct http_request {
	const char *path; /* decoded, without the query */
	void *connection; /* private */
};
/* Return the value of a key in the query; NULL: there is none. */
const char *http_query(const struct http_request *r, const char *key);

/* What is answered: 200 and no body at first. */
struct http_answer {
	unsigned status;
	const char *type; /* Content-Type; NULL: plain text */
	const char *name; /* offered for a file to save it in; NULL: it is shown */
	struct str text;
	int fd; /* a file with the body, which http.c closes; -1: `text` is the body */
};
typedef void http_answer_fn(void *arg, const struct http_request *r, struct http_answer *out);

struct http;
/* Listen at "PORT", ":PORT", "ADDRESS:PORT" or "[ADDRESS]:PORT"; at the loopback address without an
 * address. Port 0: the kernel chooses one. `answer` is called by http_serve(). 0; negative errno
 * with err, -EINVAL: that is no address, -ENOSYS: this build has no server. */
int http_open(
    const char *address, http_answer_fn *answer, void *arg, struct http **out, struct err *err);
void http_close(struct http *h); /* accepts NULL */
/* Return "127.0.0.1:9400". */
const char *http_address(const struct http *h);
int http_fd(const struct http *h); /* poll it for POLLIN */
/* Return how long a poll may last at most, in ms. */
unsigned http_wait_ms(struct http *h);
/* Read, answer and write what can be done without waiting. */
void http_serve(struct http *h);
uint64_t http_answers(const struct http *h); /* so far */

#endif
