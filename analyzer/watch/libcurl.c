/* libcurl.c - see libcurl.h. */
#ifdef WHYOOM_CURL

#include "watch/libcurl.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdbool.h>

struct libcurl curl;

int libcurl_load(const char *cannot, struct err *err)
{
	static const char *const libraries[] = {
	    "libcurl.so.4", "libcurl-gnutls.so.4", "libcurl-nss.so.4"};
	static void *library;
	bool all;

	if (library)
		return 0;
	for (size_t i = 0; !library && i < sizeof(libraries) / sizeof(*libraries); i++)
		library = dlopen(libraries[i], RTLD_NOW | RTLD_LOCAL);
	all = library != NULL;
#define FUNCTION(name)                                                                             \
	if (all)                                                                                   \
		all = (curl.name = (__typeof__(curl.name))dlsym(library, "curl_" #name)) != NULL;
	LIBCURL_FUNCTIONS(FUNCTION)
#undef FUNCTION
	if (!all) {
		library = NULL;
		return err_set(
		    err, -ENOSYS, "%s, since libcurl cannot be loaded (%s)", cannot, dlerror());
	}
	return curl.global_init(CURL_GLOBAL_DEFAULT) ? err_set(err, -ENOMEM, "out of memory") : 0;
}

#else

/* ISO C wants a declaration in each file. */
typedef int libcurl_is_not_built;

#endif
