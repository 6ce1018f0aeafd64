/*
 * known.h - the addresses of the blocks whose acquisition was recorded, where not all are: only
 * their releases are worth a record. Any thread, signal handlers included, at any time; no lock.
 *
 * Whoever releases a block got it from whoever acquired it, so what known_add() stored before the
 * block was handed out is seen. An address is taken out before the real release, hence never by the
 * block that has it next.
 */
#ifndef SHIM_KNOWN_H
#define SHIM_KNOWN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* How many known addresses share a place: neighbours share one, so that it is in the cache when the
 * blocks are. 255 stays for ever. */
#define KNOWN_PLACES 65536u
extern uint8_t known_filter[KNOWN_PLACES] __attribute__((visibility("hidden")));

static inline uint8_t *known_place(const void *block)
{
	uintptr_t at = (uintptr_t)block >> 10;

	return &known_filter[(at ^ at >> 16) % KNOWN_PLACES];
}

/* False: certainly not known. One load, no write. */
static inline bool known_maybe(const void *block)
{
	return __atomic_load_n(known_place(block), __ATOMIC_RELAXED) != 0;
}

/* False: no memory for it. Adding what is there already changes nothing. */
bool known_add(const void *block);

/* Takes it out. False: it was not known. */
bool known_take(const void *block);

/* In the child of a fork, which goes on knowing what it inherited. */
void known_forked(void);

#endif
