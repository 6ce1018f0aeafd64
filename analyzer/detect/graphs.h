/*
 * graphs.h - inside detect/: memory of CUDA graphs. What is allocated while a graph is captured
 * stays with it, and so do the free blocks of its own pool.
 */
#ifndef ANALYZER_DETECT_GRAPHS_H
#define ANALYZER_DETECT_GRAPHS_H

#include "detect/detect.h"

/* Return 0 to 1: graphs are captured one after the other before any of them serves; the rest to 1:
 * each is captured when its shape first comes, between launches of the others. 0 without graphs. */
double graphs_up_front(const struct scene *scene);
double graphs_in_between(const struct scene *scene);

/* True if most of the live bytes at the call site belong to graphs: allocated in captures, or one
 * block for each of them. */
bool graphs_have(const struct scene *scene, uint32_t callsite);

/* Claim the graphs' memory, all of one shape at least; the strength is the caller's part, times the
 * shape's. False: graphs are not what takes the memory. */
bool graphs_claim(const struct scene *scene, double part, struct finding *out);

#endif
