/*
 * player_touch.h - writes to large blocks as a plan says: notes the stretches when blocks are
 * acquired, and writes to all of them before resident memory is read. So a page that many blocks
 * had in turn is written to once: its faults cost more than all calls of the allocator. Pages of
 * blocks released meanwhile are written to if they are still mapped, as the program left them.
 */
#ifndef ANALYZER_REPLAY_PLAYER_TOUCH_H
#define ANALYZER_REPLAY_PLAYER_TOUCH_H

#include <stdbool.h>
#include <stdint.h>

/* Initialise, before all other calls. False: no memory. */
bool player_touch_begin(uint64_t page);
/* Write to bytes [from, to) at the address, at the latest by the next player_touch_all(). Any
 * thread. */
void player_touch(void *address, uint64_t from, uint64_t to);
/* Write to all noted bytes. No thread may be in player_touch(). */
void player_touch_all(void);

#endif
