/* wanting LIBRARY - opens it, as an interpreter opens an extension. */
#include <dlfcn.h>

#include "check.h"

int main(int argc, char **argv)
{
	void *library = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
	const char *(*text)(void);
	int (*sum)(void);

	if (!library)
		printf("%s\n", dlerror());
	CHECK(library);
	text = library ? dlsym(library, "text") : NULL;
	sum = library ? dlsym(library, "sum") : NULL;
	CHECK(text && !strcmp(text(), "not simulated"));
	SAME(sum ? sum() : 0, 0 * 100000 + 3000 * 10 + 5);
	return done();
}
