/*
 * old_libc.h - binds functions of the C library to their oldest versions, so that a build on a
 * newer system runs on an older one. Included in front of every file.
 */
#ifndef SIMGPU_OLD_LIBC_H
#define SIMGPU_OLD_LIBC_H

#ifndef __ASSEMBLER__
#if defined(__x86_64__)
#define OLDEST "GLIBC_2.2.5"
#define OLD_MUTEX "GLIBC_2.12"
#define OLD_DLADDR1 "GLIBC_2.3.3"
#else
#define OLDEST "GLIBC_2.17"
#define OLD_MUTEX "GLIBC_2.17"
#define OLD_DLADDR1 "GLIBC_2.17"
#endif
__asm__(".symver dlsym, dlsym@" OLDEST);
__asm__(".symver dlerror, dlerror@" OLDEST);
__asm__(".symver dladdr, dladdr@" OLDEST);
__asm__(".symver dladdr1, dladdr1@" OLD_DLADDR1);
__asm__(".symver pthread_create, pthread_create@" OLDEST);
__asm__(".symver pthread_mutexattr_init, pthread_mutexattr_init@" OLDEST);
__asm__(".symver pthread_mutexattr_destroy, pthread_mutexattr_destroy@" OLDEST);
__asm__(".symver pthread_mutexattr_setpshared, pthread_mutexattr_setpshared@" OLDEST);
__asm__(".symver pthread_mutexattr_setrobust, pthread_mutexattr_setrobust@" OLD_MUTEX);
__asm__(".symver pthread_mutex_consistent, pthread_mutex_consistent@" OLD_MUTEX);
#endif

#endif
