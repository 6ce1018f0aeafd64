/*
 * libcurl.h - libcurl's functions, loaded when they are first wanted: it brings a TLS library
 * along, which would cost each start of whyoom memory. Only in builds with WHYOOM_CURL.
 */
#ifndef ANALYZER_WATCH_LIBCURL_H
#define ANALYZER_WATCH_LIBCURL_H

#include <curl/curl.h>

#include "util/text/err.h"

#define LIBCURL_FUNCTIONS(FUNCTION)                                                                \
	FUNCTION(easy_cleanup)                                                                     \
	FUNCTION(easy_getinfo)                                                                     \
	FUNCTION(easy_init)                                                                        \
	FUNCTION(easy_perform)                                                                     \
	FUNCTION(easy_setopt)                                                                      \
	FUNCTION(easy_strerror)                                                                    \
	FUNCTION(global_init)                                                                      \
	FUNCTION(multi_add_handle)                                                                 \
	FUNCTION(multi_cleanup)                                                                    \
	FUNCTION(multi_info_read)                                                                  \
	FUNCTION(multi_init)                                                                       \
	FUNCTION(multi_perform)                                                                    \
	FUNCTION(multi_remove_handle)                                                              \
	FUNCTION(multi_wait)                                                                       \
	FUNCTION(slist_append)                                                                     \
	FUNCTION(slist_free_all)                                                                   \
	FUNCTION(url)                                                                              \
	FUNCTION(url_cleanup)                                                                      \
	FUNCTION(url_get)                                                                          \
	FUNCTION(url_set)                                                                          \
	FUNCTION(free)
/* Macros of its header that check types; here they would hide the functions. */
#undef curl_easy_getinfo
#undef curl_easy_setopt
struct libcurl {
#define FUNCTION(name) __typeof__(&curl_##name) name;
	LIBCURL_FUNCTIONS(FUNCTION)
#undef FUNCTION
};
/* curl.easy_init is curl_easy_init(), and so on, after libcurl_load(). */
extern struct libcurl curl;

/* 0; negative errno with err, which begins with `cannot` ("an engine cannot be asked"). May be
 * called again. One thread. */
int libcurl_load(const char *cannot, struct err *err);

#endif
