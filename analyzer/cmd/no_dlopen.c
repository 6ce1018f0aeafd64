/*
 * no_dlopen.c - in the static program only: nothing is loaded at run time. libdw would try
 * libdebuginfod when DEBUGINFOD_URLS is set, and a static program that loads libraries built for
 * another C library crashes. Debug information is then found by path and build id alone.
 */
#include <stddef.h>

void *dlopen(const char *file, int mode);

void *dlopen(const char *file, int mode)
{
	return NULL;
}
