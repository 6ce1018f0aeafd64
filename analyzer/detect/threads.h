/*
 * threads.h - how what lives is spread over the threads that acquired it: one request's is on one
 * thread, where requests are not tasks of the same one.
 */
#ifndef ANALYZER_DETECT_THREADS_H
#define ANALYZER_DETECT_THREADS_H

#include "detect/detect.h"

struct threads_held {
	uint64_t sum, largest; /* bytes of all threads, and of the one that holds most */
	uint32_t alike; /* threads that hold at least an eighth of that */
};

/* Of blocks born since then, at places that `of` lets pass (NULL: all). False: it is not known. */
bool threads_held(const struct scene *scene,
    bool (*of)(const struct scene *scene, const struct place *p), uint64_t since_ns,
    struct threads_held *out);

#endif
