/* engines.c - see engines.h. */
#include "watch/engine/engines.h"

#include <errno.h>
#include <limits.h>

#ifndef WHYOOM_CURL

#include <stddef.h>

int engines_open(const char *const *urls, size_t count, struct engines **out, struct err *err)
{
	(void)urls;
	(void)count;
	*out = NULL;
	return err_set(err, -ENOSYS,
	    "this whyoom was built without libcurl, and cannot ask an engine: build it where "
	    "libcurl's headers are installed, and not statically");
}

void engines_close(struct engines *e)
{
	(void)e;
}

void engines_ask(struct engines *e)
{
	(void)e;
}

void engines_serve(struct engines *e)
{
	(void)e;
}

unsigned engines_wait_ms(const struct engines *e)
{
	(void)e;
	return UINT_MAX;
}

void engines_wait(struct engines *e)
{
	(void)e;
}

const struct engine *engines_list(const struct engines *e, size_t *count)
{
	(void)e;
	*count = 0;
	return NULL;
}

#else

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "util/clock_ns.h"
#include "util/text/str.h"
#include "watch/libcurl.h"

#define PRESSED_NS                                                                                 \
	60000000000u /* a place that was taken away is told for a minute: of scrapes, most         \
			come every 15 to 30 s */
#define TICK_MS 20u /* how often an answer is looked for: of a busy server it takes longer */

struct question {
	CURL *easy;
	struct str answer;
	bool asking, too_large;
	bool known; /* `latest` is from an earlier answer */
	struct kv_pool latest;
	uint64_t pressed_ns; /* when a place was last seen to be taken away; 0: never */
	char *address; /* with the password */
};

struct engines {
	CURLM *multi;
	struct curl_slist *headers;
	size_t count;
	struct engine engines[ENGINES_MAX];
	struct question questions[ENGINES_MAX];
};

static size_t take(char *bytes, size_t one, size_t count, void *arg)
{
	struct question *q = arg;

	(void)one; /* 1, as its manual says */
	if (q->answer.length + count > ENGINES_BYTES) {
		q->too_large = true;
		return 0;
	}
	str_add(&q->answer, bytes, count);
	return q->answer.failed ? 0 : count;
}

/* Complete and check the URL. *plain: without user and password, for people and labels. */
static int take_url(const char *given, char **address, char **plain, struct err *err)
{
	char *path = NULL, *scheme = NULL, *whole = NULL, *shown = NULL;
	CURLU *u = curl.url();
	int rc = -ENOMEM;

	if (!u)
		return err_set(err, rc, "out of memory");
	if (curl.url_set(u, CURLUPART_URL, given, CURLU_DEFAULT_SCHEME) ||
	    curl.url_get(u, CURLUPART_SCHEME, &scheme, 0) ||
	    (strcmp(scheme, "http") != 0 && strcmp(scheme, "https") != 0)) {
		rc = err_set(err, -EINVAL, "'%s' is no URL of http or https", given);
		goto out;
	}
	if (curl.url_get(u, CURLUPART_PATH, &path, 0) ||
	    (!strcmp(path, "/") && curl.url_set(u, CURLUPART_PATH, "/metrics", 0)) ||
	    curl.url_get(u, CURLUPART_URL, &whole, 0) || curl.url_set(u, CURLUPART_USER, NULL, 0) ||
	    curl.url_set(u, CURLUPART_PASSWORD, NULL, 0) ||
	    curl.url_set(u, CURLUPART_QUERY, NULL, 0) ||
	    curl.url_set(u, CURLUPART_FRAGMENT, NULL, 0) ||
	    curl.url_get(u, CURLUPART_URL, &shown, 0))
		goto out;
	*address = strdup(whole);
	*plain = strdup(shown);
	rc = *address && *plain ? 0 : -ENOMEM;
out:
	curl.free(path);
	curl.free(scheme);
	curl.free(whole);
	curl.free(shown);
	curl.url_cleanup(u);
	return rc == -ENOMEM ? err_set(err, rc, "out of memory") : rc;
}

/* Only GET, of this address: no redirection, which could lead elsewhere, and no proxy, since an
 * engine is in the neighbourhood. */
static bool prepare(struct engines *e, struct question *q)
{
	q->easy = curl.easy_init();
#if LIBCURL_VERSION_NUM >= 0x075500
	if (q->easy && curl.easy_setopt(q->easy, CURLOPT_PROTOCOLS_STR, "http,https"))
		return false;
#endif
	return q->easy && !curl.easy_setopt(q->easy, CURLOPT_URL, q->address) &&
	       !curl.easy_setopt(q->easy, CURLOPT_HTTPHEADER, e->headers) &&
	       !curl.easy_setopt(q->easy, CURLOPT_NOSIGNAL, 1L) &&
	       !curl.easy_setopt(q->easy, CURLOPT_PROXY, "") &&
	       !curl.easy_setopt(q->easy, CURLOPT_TIMEOUT, (long)ENGINES_SECONDS) &&
	       !curl.easy_setopt(q->easy, CURLOPT_MAXFILESIZE, (long)ENGINES_BYTES) &&
	       !curl.easy_setopt(q->easy, CURLOPT_WRITEFUNCTION, take) &&
	       !curl.easy_setopt(q->easy, CURLOPT_WRITEDATA, q) &&
	       !curl.easy_setopt(q->easy, CURLOPT_PRIVATE, q);
}

int engines_open(const char *const *urls, size_t count, struct engines **out, struct err *err)
{
	struct engines *e = calloc(1, sizeof(*e));
	int rc = e ? libcurl_load("an engine cannot be asked", err)
		   : err_set(err, -ENOMEM, "out of memory");

	*out = NULL;
	if (!rc) {
		e->multi = curl.multi_init();
		e->headers = curl.slist_append(NULL, "Accept: text/plain;version=0.0.4");
		if (!e->multi || !e->headers)
			rc = err_set(err, -ENOMEM, "out of memory");
	}
	for (size_t i = 0; !rc && i < count; i++) {
		e->count++;
		rc = take_url(urls[i], &e->questions[i].address, &e->engines[i].url, err);
		if (!rc && !prepare(e, &e->questions[i]))
			rc = err_set(err, -ENOMEM, "out of memory");
		e->engines[i].pressure = NAN;
	}
	if (rc) {
		engines_close(e);
		return rc;
	}
	*out = e;
	return 0;
}

void engines_close(struct engines *e)
{
	if (!e)
		return;
	for (size_t i = 0; i < e->count; i++) {
		struct question *q = &e->questions[i];

		if (q->asking)
			curl.multi_remove_handle(e->multi, q->easy);
		if (q->easy)
			curl.easy_cleanup(q->easy);
		str_free(&q->answer);
		free(q->address);
		free(e->engines[i].url);
		free(e->engines[i].problem);
	}
	if (e->headers)
		curl.slist_free_all(e->headers);
	if (e->multi)
		curl.multi_cleanup(e->multi);
	free(e);
}

static void set_problem(struct engine *engine, const char *why)
{
	free(engine->problem);
	engine->problem = why ? strdup(why) : NULL;
	engine->answered = !why;
}

void engines_ask(struct engines *e)
{
	for (size_t i = 0; e && i < e->count; i++) {
		struct question *q = &e->questions[i];

		if (q->asking)
			continue;
		str_clear(&q->answer);
		q->too_large = false;
		q->asking = !curl.multi_add_handle(e->multi, q->easy);
		if (!q->asking)
			set_problem(&e->engines[i], "out of memory");
	}
	engines_serve(e);
}

static void judge(struct question *q, struct engine *engine)
{
	struct err err = {""};
	uint64_t now = clock_ns(CLOCK_MONOTONIC);
	struct kv_pool pool;

	if (kv_pool_read(str_text(&q->answer), q->answer.length, &pool, &err)) {
		set_problem(engine, err.text);
		return;
	}
	if (q->known && kv_pool_preempted_between(&q->latest, &pool) > 0)
		q->pressed_ns = now;
	engine->pressure =
	    q->pressed_ns && now - q->pressed_ns < PRESSED_NS ? 1 : kv_pool_pressure(&pool);
	engine->pool = q->latest = pool;
	q->known = true;
	set_problem(engine, NULL);
}

static void finish(struct question *q, struct engine *engine, CURLcode result)
{
	struct str why = {0};
	long status = 0;

	q->asking = false;
	curl.easy_getinfo(q->easy, CURLINFO_RESPONSE_CODE, &status);
	if (q->too_large || result == CURLE_FILESIZE_EXCEEDED)
		str_printf(&why, "its answer is larger than %u MiB", ENGINES_BYTES >> 20);
	else if (result == CURLE_OPERATION_TIMEDOUT)
		str_printf(&why, "no whole answer within %u s", ENGINES_SECONDS);
	else if (result == CURLE_UNSUPPORTED_PROTOCOL)
		str_puts(&why, "it does not speak HTTP 1 or 2");
	else if (result)
		str_puts(&why, curl.easy_strerror(result));
	else if (status != 200)
		str_printf(&why, "it answered %ld%s", status,
		    status == 404 || status == 501
			? "; metrics may be off: SGLang needs --enable-metrics, llama.cpp --metrics"
			: "");
	if (why.length)
		set_problem(engine, str_text(&why));
	else
		judge(q, engine);
	str_free(&why);
}

void engines_serve(struct engines *e)
{
	CURLMsg *message;
	int left;

	if (!e)
		return;
	curl.multi_perform(e->multi, &left);
	while ((message = curl.multi_info_read(e->multi, &left))) {
		CURLcode result = message->data.result;

		for (size_t i = 0; i < e->count; i++)
			if (message->easy_handle == e->questions[i].easy) {
				curl.multi_remove_handle(e->multi, e->questions[i].easy);
				finish(&e->questions[i], &e->engines[i], result);
				break;
			}
	}
}

unsigned engines_wait_ms(const struct engines *e)
{
	for (size_t i = 0; e && i < e->count; i++)
		if (e->questions[i].asking)
			return TICK_MS;
	return UINT_MAX;
}

void engines_wait(struct engines *e)
{
	while (engines_wait_ms(e) != UINT_MAX) {
		curl.multi_wait(e->multi, NULL, 0, (int)TICK_MS, NULL);
		engines_serve(e);
	}
}

const struct engine *engines_list(const struct engines *e, size_t *count)
{
	*count = e ? e->count : 0;
	return e ? e->engines : NULL;
}

#endif
