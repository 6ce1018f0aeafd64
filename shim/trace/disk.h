/*
 * disk.h - the bound of all traces of a directory together (WHYOOM_MAX_DISK). All processes map a
 * small file there; one counter in it says what all traces take. It changes by atomic adds, only
 * when a range of a trace is claimed or given back. A killed process's share stays counted, as its
 * file stays. No lock; any moment.
 */
#ifndef SHIM_DISK_H
#define SHIM_DISK_H

#include <stdbool.h>
#include <stdint.h>

/* Which part of the bound a claim may use. */
enum disk_share {
	DISK_ORDINARY, /* all but the reserve */
	DISK_START, /* also half of the reserve: files of new processes */
	DISK_LAST, /* everything: large blocks, failures, levels, definitions, checkpoints */
};

/* Map the directory's account, or create it. The child of a fork keeps its parent's mapping.
 * Without a valid account this process counts alone. */
void disk_open(int directory);
/* Undo disk_open(): the next trace may lie in another directory. */
void disk_close(void);

/* Return the bound, bytes. */
uint64_t disk_bound(void);
/* Return the bytes left for that share. */
uint64_t disk_room(enum disk_share share);

/* Claim bytes for a trace. False: beyond the bound; nothing has changed. disk_give() gives them
 * back. */
bool disk_take(uint64_t bytes, enum disk_share share);
void disk_give(uint64_t bytes);

/* Return the address space of the account, bytes. */
uint64_t disk_bytes(void);

/* Return the number of the file that small traces are appended to; disk_small_next() says that it
 * is full. */
uint32_t disk_small_file(void);
void disk_small_next(uint32_t number);
/* Find in that file a trace with this key to code others against. *at is a hint that the caller
 * checks; false: there is none. */
bool disk_small_base(uint32_t number, uint64_t key, uint32_t *at);
void disk_small_set_base(uint32_t number, uint64_t key, uint32_t at);

/* At the end of the directory's first process: remove the account if nothing else is there. */
void disk_tidy(const char *directory);

#endif
