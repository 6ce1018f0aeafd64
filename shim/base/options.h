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

/* Set `options` from the environment and the defaults. A wrong value is reported to `complain` and
 * replaced by the default. Keeps pointers into the environment's strings. */
void options_read(char *const *environment, void (*complain)(const char *line));

/* Write the variables that are set, "name=value name=value", to `out`, cut at `size`. */
void options_text(char *const *environment, char *out, unsigned size);

/* Return a variable's value in an environment; NULL: not set. */
const char *options_variable(char *const *environment, const char *name);

/* Read a size such as 512, 64K, 64KiB, 2GiB. False: it is none, like 1.5GiB. */
bool options_parse_size(const char *text, uint64_t *out);

#endif
