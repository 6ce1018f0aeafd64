/*
 * xxh64.h - the XXH64 checksum, seed 0, by its public specification.
 */
#ifndef SHIM_XXH64_H
#define SHIM_XXH64_H

#include <stddef.h>
#include <stdint.h>

uint64_t xxh64(const void *data, size_t bytes);

#endif
