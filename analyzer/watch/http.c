/* http.c - see http.h. libmicrohttpd reads and writes; time and connections are bounded here. */
#include "watch/http.h"

#include <errno.h>

#ifndef WHYOOM_MICROHTTPD

#include <stddef.h>

const char *http_query(const struct http_request *r, const char *key)
{
	(void)r;
	(void)key;
	return NULL;
}

int http_open(
    const char *address, http_answer_fn *answer, void *arg, struct http **out, struct err *err)
{
	(void)address;
	(void)answer;
	(void)arg;
	*out = NULL;
	return err_set(err, -ENOSYS,
	    "this whyoom was built without an HTTP server: build it where libmicrohttpd-dev is "
	    "installed, and not statically, or use --textfile");
}

void http_close(struct http *h)
{
	(void)h;
}

const char *http_address(const struct http *h)
{
	(void)h;
	return "";
}

int http_fd(const struct http *h)
{
	(void)h;
	return -1;
}

unsigned http_wait_ms(struct http *h)
{
	(void)h;
	return 1000;
}

void http_serve(struct http *h)
{
	(void)h;
}

uint64_t http_answers(const struct http *h)
{
	(void)h;
	return 0;
}

#else

#include <arpa/inet.h>
#include <dlfcn.h>
#include <microhttpd.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "util/clock_ns.h"
#include "util/num.h"

/* Its TLS library comes along and would cost each start of whyoom 3 MiB, so it is loaded when it is
 * asked for. */
#define LIBRARY "libmicrohttpd.so.12"
#define FUNCTIONS(FUNCTION)                                                                        \
	FUNCTION(add_response_header)                                                              \
	FUNCTION(create_response_from_buffer)                                                      \
	FUNCTION(create_response_from_fd64)                                                        \
	FUNCTION(destroy_response)                                                                 \
	FUNCTION(get_connection_info)                                                              \
	FUNCTION(get_daemon_info)                                                                  \
	FUNCTION(get_timeout)                                                                      \
	FUNCTION(lookup_connection_value)                                                          \
	FUNCTION(queue_response)                                                                   \
	FUNCTION(run)                                                                              \
	FUNCTION(start_daemon)                                                                     \
	FUNCTION(stop_daemon)
static struct {
#define FUNCTION(name) __typeof__(&MHD_##name) name;
	FUNCTIONS(FUNCTION)
#undef FUNCTION
} mhd;

static int load(struct err *err)
{
	void *library = dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL);
	bool all = library != NULL;

#define FUNCTION(name)                                                                             \
	if (all)                                                                                   \
		all = (mhd.name = (__typeof__(mhd.name))dlsym(library, "MHD_" #name)) != NULL;
	FUNCTIONS(FUNCTION)
#undef FUNCTION
	return all ? 0
		   : err_set(err, -ENOSYS,
			 "the HTTP server cannot be loaded (%s): install libmicrohttpd, or use "
			 "--textfile",
			 dlerror());
}

#define WAIT_MS 1000u /* how long the end of a connection's time may pass unnoticed */

union any_address {
	struct sockaddr any;
	struct sockaddr_in v4;
	struct sockaddr_in6 v6;
};

struct open_connection {
	int fd; /* -1: the slot is free */
	uint64_t since_ns;
};

struct http {
	struct MHD_Daemon *daemon;
	http_answer_fn *answer;
	void *arg;
	struct open_connection open[HTTP_CONNECTIONS];
	unsigned count;
	uint64_t answers;
	char address[64 + INET6_ADDRSTRLEN];
};

const char *http_query(const struct http_request *r, const char *key)
{
	return mhd.lookup_connection_value(r->connection, MHD_GET_ARGUMENT_KIND, key);
}

static bool take_port(const char *text, uint16_t *out)
{
	char *end;
	unsigned long port = strtoul(text, &end, 10);

	*out = htons((uint16_t)port);
	return *text >= '0' && *text <= '9' && !*end && port <= UINT16_MAX;
}

/* Names of hosts are not looked up: what listens must be plain from the command line. */
static int take_address(const char *text, union any_address *out, socklen_t *bytes, struct err *err)
{
	const char *colon = strrchr(text, ':'), *port = colon ? colon + 1 : text;
	size_t n = colon ? (size_t)(colon - text) : 0;
	char host[INET6_ADDRSTRLEN + 2] = "";
	bool known;

	memset(out, 0, sizeof(*out));
	known = n < sizeof(host);
	if (known)
		memcpy(host, text, n);
	if (!n || !strcmp(host, "localhost"))
		strcpy(host, "127.0.0.1");
	n = strlen(host);
	if (known && host[0] == '[' && host[n - 1] == ']') {
		host[n - 1] = '\0';
		out->v6.sin6_family = AF_INET6;
		*bytes = sizeof(out->v6);
		known = inet_pton(AF_INET6, host + 1, &out->v6.sin6_addr) == 1 &&
			take_port(port, &out->v6.sin6_port);
	} else if (known) {
		out->v4.sin_family = AF_INET;
		*bytes = sizeof(out->v4);
		known = inet_pton(AF_INET, host, &out->v4.sin_addr) == 1 &&
			take_port(port, &out->v4.sin_port);
	}
	return known ? 0
		     : err_set(err, -EINVAL,
			   "'%s' is no PORT, ADDRESS:PORT or [ADDRESS]:PORT to listen at", text);
}

static void name_address(int fd, char *out, size_t room)
{
	union any_address bound;
	socklen_t bytes = sizeof(bound);
	char host[INET6_ADDRSTRLEN] = "";

	memset(&bound, 0, sizeof(bound));
	getsockname(fd, &bound.any, &bytes);
	if (bound.any.sa_family == AF_INET6) {
		inet_ntop(AF_INET6, &bound.v6.sin6_addr, host, sizeof(host));
		snprintf(out, room, "[%s]:%u", host, ntohs(bound.v6.sin6_port));
	} else {
		inet_ntop(AF_INET, &bound.v4.sin_addr, host, sizeof(host));
		snprintf(out, room, "%s:%u", host, ntohs(bound.v4.sin_port));
	}
}

static int listen_at(const char *text, int *out, struct err *err)
{
	union any_address address;
	socklen_t bytes = 0;
	int one = 1, fd, r = take_address(text, &address, &bytes, err);

	if (r)
		return r;
	fd = socket(address.any.sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return err_set(err, -errno, "cannot listen at %s: %s", text, strerror(errno));
	/* A port whose last connections have only just ended is free. */
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	if (bind(fd, &address.any, bytes) || listen(fd, (int)HTTP_CONNECTIONS)) {
		r = err_set(err, -errno, "cannot listen at %s: %s", text, strerror(errno));
		close(fd);
		return r;
	}
	*out = fd;
	return 0;
}

static void noted(
    void *cls, struct MHD_Connection *c, void **slot, enum MHD_ConnectionNotificationCode what)
{
	const union MHD_ConnectionInfo *info;
	struct http *h = cls;

	if (what == MHD_CONNECTION_NOTIFY_CLOSED) {
		if (*slot) {
			((struct open_connection *)*slot)->fd = -1;
			h->count--;
		}
		return;
	}
	info = mhd.get_connection_info(c, MHD_CONNECTION_INFO_CONNECTION_FD);
	for (size_t i = 0; info && i < HTTP_CONNECTIONS && !*slot; i++)
		if (h->open[i].fd < 0) {
			h->open[i] =
			    (struct open_connection){info->connect_fd, clock_ns(CLOCK_MONOTONIC)};
			h->count++;
			*slot = &h->open[i];
		}
}

static struct MHD_Response *response_of(struct http_answer *a)
{
	struct MHD_Response *r;
	struct stat st;
	const char *body = str_text(&a->text);

	if (a->fd < 0)
		return mhd.create_response_from_buffer(
		    strlen(body), (void *)body, MHD_RESPMEM_MUST_COPY);
	if (fstat(a->fd, &st)) {
		close(a->fd);
		return NULL;
	}
	r = mhd.create_response_from_fd64((uint64_t)st.st_size, a->fd);
	if (!r)
		close(a->fd);
	return r;
}

static enum MHD_Result send_answer(struct MHD_Connection *c, struct http_answer *a)
{
	struct MHD_Response *response;
	char name[128];
	enum MHD_Result sent = MHD_NO;

	if (a->text.failed) { /* without memory nothing is better than a part */
		str_free(&a->text);
		a->status = MHD_HTTP_INTERNAL_SERVER_ERROR;
	}
	response = response_of(a);
	if (response) {
		mhd.add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE,
		    a->type ? a->type : "text/plain; charset=utf-8");
		mhd.add_response_header(response, MHD_HTTP_HEADER_CONNECTION, "close");
		mhd.add_response_header(response, MHD_HTTP_HEADER_CACHE_CONTROL, "no-store");
		mhd.add_response_header(response, "X-Content-Type-Options", "nosniff");
		if (a->status == MHD_HTTP_METHOD_NOT_ALLOWED)
			mhd.add_response_header(response, MHD_HTTP_HEADER_ALLOW, "GET, HEAD");
		if (a->name) {
			snprintf(name, sizeof(name), "attachment; filename=\"%s\"", a->name);
			mhd.add_response_header(
			    response, MHD_HTTP_HEADER_CONTENT_DISPOSITION, name);
		}
		sent = mhd.queue_response(c, a->status, response);
		mhd.destroy_response(response);
	}
	str_free(&a->text);
	return sent;
}

/* Answer as soon as the head is there: a body is of no use and is not read. */
static enum MHD_Result handle(void *cls, struct MHD_Connection *c, const char *url,
    const char *method, const char *version, const char *upload, size_t *upload_bytes, void **state)
{
	struct http *h = cls;
	const struct http_request request = {url, c};
	struct http_answer a = {.status = MHD_HTTP_OK, .fd = -1};

	(void)version;
	(void)upload;
	(void)upload_bytes;
	(void)state;
	h->answers++;
	if (strcmp(method, MHD_HTTP_METHOD_GET) && strcmp(method, MHD_HTTP_METHOD_HEAD)) {
		a.status = MHD_HTTP_METHOD_NOT_ALLOWED;
		str_puts(&a.text, "only GET and HEAD\n");
	} else {
		h->answer(h->arg, &request, &a);
	}
	return send_answer(c, &a);
}

int http_open(
    const char *address, http_answer_fn *answer, void *arg, struct http **out, struct err *err)
{
	struct http *h = calloc(1, sizeof(*h));
	int fd = -1, r;

	*out = NULL;
	if (!h)
		return err_set(err, -ENOMEM, "no memory for the HTTP server");
	r = load(err);
	if (!r)
		r = listen_at(address, &fd, err);
	if (r) {
		free(h);
		return r;
	}
	h->answer = answer;
	h->arg = arg;
	for (size_t i = 0; i < HTTP_CONNECTIONS; i++)
		h->open[i].fd = -1;
	name_address(fd, h->address, sizeof(h->address));
	/* No thread of its own: http_serve() is all that runs. */
	h->daemon = mhd.start_daemon(MHD_USE_EPOLL, 0, NULL, NULL, handle, h,
	    MHD_OPTION_LISTEN_SOCKET, fd, MHD_OPTION_CONNECTION_LIMIT, HTTP_CONNECTIONS,
	    MHD_OPTION_CONNECTION_TIMEOUT, HTTP_SECONDS, MHD_OPTION_CONNECTION_MEMORY_LIMIT,
	    (size_t)HTTP_REQUEST_BYTES, MHD_OPTION_NOTIFY_CONNECTION, noted, h, MHD_OPTION_END);
	if (!h->daemon) {
		close(fd);
		free(h);
		return err_set(err, -EIO, "cannot serve HTTP at %s", address);
	}
	*out = h;
	return 0;
}

void http_close(struct http *h)
{
	if (!h)
		return;
	mhd.stop_daemon(h->daemon);
	free(h);
}

const char *http_address(const struct http *h)
{
	return h->address;
}

int http_fd(const struct http *h)
{
	const union MHD_DaemonInfo *info = mhd.get_daemon_info(h->daemon, MHD_DAEMON_INFO_EPOLL_FD);

	return info ? info->epoll_fd : -1;
}

unsigned http_wait_ms(struct http *h)
{
	MHD_UNSIGNED_LONG_LONG ms;

	if (mhd.get_timeout(h->daemon, &ms) == MHD_YES && ms < WAIT_MS)
		return (unsigned)ms;
	return h->count ? WAIT_MS : UINT16_MAX;
}

/* The library's own limit is on silence: who sends or reads a byte now and then would stay. */
static void end_late_ones(struct http *h)
{
	uint64_t now = clock_ns(CLOCK_MONOTONIC);

	for (size_t i = 0; i < HTTP_CONNECTIONS; i++)
		if (h->open[i].fd >= 0 &&
		    num_less(now, h->open[i].since_ns) > HTTP_SECONDS * 1000000000ull)
			shutdown(h->open[i].fd, SHUT_RDWR);
}

void http_serve(struct http *h)
{
	end_late_ones(h);
	mhd.run(h->daemon);
}

uint64_t http_answers(const struct http *h)
{
	return h->answers;
}

#endif
