/*
 * limit.h - `--max-memory SIZE`, which every command takes that reads what others wrote: by default
 * three quarters of the machine's memory, or of the cgroup's where that is less. A trace may be
 * larger than the machine it is read on, or made to be; then a command that says so is better than
 * one that is killed, or a server beside it.
 */
#ifndef ANALYZER_CMD_LIMIT_H
#define ANALYZER_CMD_LIMIT_H

/* Sets the limit, and takes the option out of argv, behind the command's name. 0, or CMD_USAGE and
 * says why. */
int limit_take(int *argc, char **argv);
void limit_by_default(void);

#endif
