/*
 * old_libc.h - for programs that lie beside libwhyoom.so and run on systems as old as it does,
 * wherever they were built: binds functions of the C library that got a new version since glibc
 * 2.28 to their oldest one. Included in front of every file; analyzer/meson.build has the
 * arguments. libdl.so.2 and libpthread.so.0 are where these functions were before glibc 2.34.
 */
#ifndef WHYOOM_OLD_LIBC_H
#define WHYOOM_OLD_LIBC_H

#if defined(__x86_64__)
#define OLDEST "GLIBC_2.2.5"
#elif defined(__aarch64__)
#define OLDEST "GLIBC_2.17"
#endif
__asm__(".symver __libc_start_main, __libc_start_main@" OLDEST);
__asm__(".symver dlopen, dlopen@" OLDEST);
__asm__(".symver dlsym, dlsym@" OLDEST);
__asm__(".symver dladdr, dladdr@" OLDEST);
__asm__(".symver pthread_attr_setstacksize, pthread_attr_setstacksize@" OLDEST);
__asm__(".symver pthread_create, pthread_create@" OLDEST);
__asm__(".symver pthread_join, pthread_join@" OLDEST);

#endif
