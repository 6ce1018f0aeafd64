/*
 * disk.h - the bound of all traces of a directory together (WHYOOM_MAX_DISK). A small file there is
 * mapped shared by each process; one counter in it says what all hold, and is changed by atomic
 * adds when a range of a trace is claimed or given back, at no other time. What a killed process
 * held stays counted, as its file stays. No lock; safe at any moment.
 */
#ifndef SHIM_DISK_H
#define SHIM_DISK_H

#include <stdbool.h>
#include <stdint.h>

/* What a claim may use. */
enum disk_share {
	DISK_ORDINARY, /* all but the reserve */
	DISK_START, /* half of the reserve, too: the files of new processes */
	DISK_LAST, /* all: large blocks, failures, levels, definitions, checkpoints */
};

/* Maps the directory's account, or makes it. The child of a fork keeps its parent's mapping. Where
 * it cannot be had, or is not one, this process counts alone. */
void disk_open(int directory);
/* For the unit tests: as if it had never been opened. */
void disk_close(void);

/* The bound, in bytes. */
uint64_t disk_bound(void);
/* What is left of it for that share. */
uint64_t disk_room(enum disk_share share);

/* False: that would be beyond the bound, and nothing has changed. */
bool disk_take(uint64_t bytes, enum disk_share share);
void disk_give(uint64_t bytes);

/* Address space that the account takes. */
uint64_t disk_bytes(void);

/* The number of the file that small traces are appended to now, and that it is full. */
uint32_t disk_small_file(void);
void disk_small_next(uint32_t number);
/* Where in that file a trace of that key lies which others may be coded against. A hint, for the
 * caller to check; false: there is none. */
bool disk_small_base(uint32_t number, uint64_t key, uint32_t *at);
void disk_small_set_base(uint32_t number, uint64_t key, uint32_t at);

/* At the end of the directory's first process: removes the account if nothing else is there. */
void disk_tidy(const char *directory);

#endif
