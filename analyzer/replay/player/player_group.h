/*
 * player_group.h - the player's own cgroup: its limit is moved as the plan says what lies beside.
 */
#ifndef ANALYZER_REPLAY_PLAYER_GROUP_H
#define ANALYZER_REPLAY_PLAYER_GROUP_H

#include <stdbool.h>
#include <stdint.h>

/* The group's directory, open. False: its files are not there. */
bool player_group_begin(int dir, int version);
/*
 * Lets `room` bytes of private memory be resident; `resident` are. What else the group is charged
 * with, the player's tables and the kernel's, is not counted. False: there is less room than what
 * is resident.
 */
bool player_group_limit(uint64_t room, uint64_t resident);

#endif
