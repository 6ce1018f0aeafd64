/* push.c - see push.h. */
#include "watch/push.h"

#include <errno.h>

#ifndef WHYOOM_CURL

int push_check(const char *url, struct err *err)
{
	(void)url;
	return err_set(err, -ENOSYS,
	    "this whyoom was built without libcurl, and cannot push: build it where libcurl's "
	    "headers are installed, and not statically");
}

int push_line(const char *url, const char *line, size_t bytes, struct err *err)
{
	(void)line;
	(void)bytes;
	return push_check(url, err);
}

#else

#include <stdbool.h>
#include <string.h>

#include "watch/libcurl.h"

int push_check(const char *url, struct err *err)
{
	char *scheme = NULL;
	CURLU *u;
	int rc = libcurl_load("a report cannot be pushed", err);

	if (rc)
		return rc;
	u = curl.url();
	if (!u)
		return err_set(err, -ENOMEM, "out of memory");
	if (curl.url_set(u, CURLUPART_URL, url, 0) ||
	    curl.url_get(u, CURLUPART_SCHEME, &scheme, 0) ||
	    (strcmp(scheme, "http") != 0 && strcmp(scheme, "https") != 0))
		rc = err_set(err, -EINVAL, "'%s' is no URL of http or https", url);
	curl.free(scheme);
	curl.url_cleanup(u);
	return rc;
}

/* The answer's words are of no use. */
static size_t pass_over(char *bytes, size_t one, size_t count, void *arg)
{
	(void)bytes;
	(void)arg;
	return one * count;
}

static bool prepare(
    CURL *easy, const char *url, const char *line, size_t bytes, struct curl_slist *headers)
{
#if LIBCURL_VERSION_NUM >= 0x075500
	if (curl.easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https"))
		return false;
#endif
	return !curl.easy_setopt(easy, CURLOPT_URL, url) &&
	       !curl.easy_setopt(easy, CURLOPT_HTTPHEADER, headers) &&
	       !curl.easy_setopt(easy, CURLOPT_NOSIGNAL, 1L) &&
	       !curl.easy_setopt(easy, CURLOPT_TIMEOUT, (long)PUSH_SECONDS) &&
	       !curl.easy_setopt(easy, CURLOPT_WRITEFUNCTION, pass_over) &&
	       !curl.easy_setopt(easy, CURLOPT_POSTFIELDS, line) &&
	       !curl.easy_setopt(easy, CURLOPT_POSTFIELDSIZE, (long)bytes);
}

int push_line(const char *url, const char *line, size_t bytes, struct err *err)
{
	struct curl_slist *headers = NULL;
	long status = 0;
	CURLcode result;
	CURL *easy;
	int rc = libcurl_load("a report cannot be pushed", err);

	if (rc)
		return rc;
	easy = curl.easy_init();
	headers = curl.slist_append(NULL, "Content-Type: application/json");
	if (!easy || !headers || !prepare(easy, url, line, bytes, headers)) {
		rc = err_set(err, -ENOMEM, "out of memory");
		goto out;
	}
	result = curl.easy_perform(easy);
	curl.easy_getinfo(easy, CURLINFO_RESPONSE_CODE, &status);
	if (result)
		rc = err_set(err, -EAGAIN, "%s", curl.easy_strerror(result));
	else if (status < 200 || status > 299)
		rc = err_set(err, -EAGAIN, "it answered %ld", status);
out:
	if (easy)
		curl.easy_cleanup(easy);
	curl.slist_free_all(headers);
	return rc;
}

#endif
