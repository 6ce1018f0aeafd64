/*
 * model_name.h - which model a process serves, for people and for labels: by its command line, or
 * else by the largest file of weights that it has mapped. Pure functions.
 */
#ifndef ANALYZER_WATCH_MODEL_NAME_H
#define ANALYZER_WATCH_MODEL_NAME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "trace/event.h"

#define MODEL_NAME_BYTES 64u /* with the NUL; longer names are cut between characters */

/* The largest mapped file of weights so far. Zeroed by the caller at first. */
struct model_file {
	char name[MODEL_NAME_BYTES]; /* without its folder; "": none */
	uint64_t bytes; /* of its largest mapping */
};
/* See the next event. */
void model_file_see(struct model_file *f, const struct event *e);

/* Write the name that the command line gives: --served-model-name, --model and its like, `vllm
 * serve NAME`, or -m with a file of weights. Of a path, its last two parts. False: it gives none,
 * and *out is "". `argv` ends with NULL, or is NULL. */
bool model_name_of_arguments(const char *const *argv, char out[MODEL_NAME_BYTES]);

#endif
