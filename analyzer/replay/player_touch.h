/*
 * player_touch.h - what a plan writes to of large blocks: noted when they are acquired, and written
 * to for all of them at once when something looks at what is resident. A page that many blocks had
 * one after the other in between is so written to once, and not once for each of them: its faults
 * cost more than all calls of the allocator. Pages that are mapped then are written to also where
 * their block was released meanwhile, as the program has left them behind.
 */
#ifndef ANALYZER_REPLAY_PLAYER_TOUCH_H
#define ANALYZER_REPLAY_PLAYER_TOUCH_H

#include <stdbool.h>
#include <stdint.h>

/* Before anything else. False: no memory for it. */
bool player_touch_begin(uint64_t page);
/* Bytes [from, to) of what is at the address are written to, at the latest by the next
 * player_touch_all(). Any thread. */
void player_touch(void *address, uint64_t from, uint64_t to);
/* While no thread is in player_touch(). */
void player_touch_all(void);

#endif
