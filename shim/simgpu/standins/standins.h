/*
 * standins.h - what stands in for CUDA's libraries; reached through dlopen(), which is ours
 * (dlopen.S).
 */
#ifndef SIMGPU_STANDINS_H
#define SIMGPU_STANDINS_H

void standins_after_fork(void);

#endif
