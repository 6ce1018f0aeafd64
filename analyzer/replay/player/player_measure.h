/*
 * player_measure.h - how much memory the player has: by the kernel's account, and by its
 * allocator's.
 */
#ifndef ANALYZER_REPLAY_PLAYER_MEASURE_H
#define ANALYZER_REPLAY_PLAYER_MEASURE_H

#include <stdbool.h>
#include <stddef.h>

#include "replay/plan/plan.h"

/* Before anything else. `allocator`: the name of the file that malloc is in. */
bool measure_begin(char *allocator, size_t room);
/* Fills .resident, .size and .data. */
void measure_process(struct play_sample *s);
/* Fills .held and .used, where the allocator tells. */
void measure_allocator(struct play_sample *s);

#endif
