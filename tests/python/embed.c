/*
 * embed.c - a program that becomes a Python interpreter late: embed LIBPYTHON ARGUMENTS... loads
 * that library and continues as `python ARGUMENTS`. Notifies the preloaded library of the tests;
 * the real shim notices by itself.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv)
{
	int (*go)(int, char **);
	void (*look)(void);
	void *python;

	if (argc < 2)
		return 2;
	free(malloc(100));
	python = dlopen(argv[1], RTLD_NOW | RTLD_GLOBAL);
	if (!python) {
		fprintf(stderr, "%s\n", dlerror());
		return 77;
	}
	if (dlerror())
		return 3; /* looking for the interpreter must not leave an error behind */
	look = (void (*)(void))dlsym(RTLD_DEFAULT, "capture_look");
	if (look)
		look();
	else
		dlerror();
	go = (int (*)(int, char **))dlsym(python, "Py_BytesMain");
	if (!go)
		return 4;
	argv[1] = argv[0];
	return go(argc - 1, argv + 1);
}
