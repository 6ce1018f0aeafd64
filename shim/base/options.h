/*
 * options.h - the WHYOOM_* variables as values. Read once, before recording starts.
 */
#ifndef SHIM_OPTIONS_H
#define SHIM_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

struct options {
#define OPTION_TYPE_FLAG bool
#define OPTION_TYPE_SIZE uint64_t
#define OPTION_TYPE_TEXT const char *
#define OPTION(name, TYPE, fallback, help) OPTION_TYPE_##TYPE name;
#define OPTION_CHOICE(name, fallback, choices, help) const char *name;
#include "whyoom/options.def"
#undef OPTION
#undef OPTION_CHOICE
};

extern struct options options __attribute__((visibility("hidden")));

/* A wrong value is told to `complain` and the default stays. The environment's strings are kept by
 * reference. */
void options_read(char *const *environment, void (*complain)(const char *line));

/* "name=value name=value": those that are set, cut at size. */
void options_text(char *const *environment, char *out, unsigned size);

/* A variable's value in an environment, or NULL. */
const char *options_variable(char *const *environment, const char *name);

/* 512, 64KiB, 64K, 2GiB, 1.5GiB is not one. False: not a size. */
bool options_parse_size(const char *text, uint64_t *out);

#endif
