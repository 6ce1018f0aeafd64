/*
 * standins.h - stand-ins for CUDA's libraries, put in place by our dlopen() (dlopen.S).
 */
#ifndef SIMGPU_STANDINS_H
#define SIMGPU_STANDINS_H

void standins_after_fork(void);

#endif
