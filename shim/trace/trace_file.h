/*
 * trace_file.h - the trace file: claims ranges of it, maps them, seals them and lets them go. Holds
 * no descriptor between calls: hosts count and close them. Every call may take hundreds of
 * microseconds and makes system calls; signals are blocked by the caller where its own state
 * could be met half changed.
 */
#ifndef SHIM_SINK_H
#define SHIM_SINK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "whyoom/trace.h"

/* The header of this process's file, or a private one while there is none: always writable. */
extern struct trace_header *trace_file_header;

/* Makes this process's file in the directory that is named, or in one that it makes. 0, or a
 * negative errno; *why says in words what is wrong. */
int trace_file_create(const char *directory, bool forked, const char **why);

/* The directory's absolute path, once there is one. */
const char *trace_file_directory(void);
/* True in the process whose id is in the name of the directory that we chose, or in WHYOOM_ROOT. */
bool trace_file_is_root(void);
/* The id in a directory's name that a process of ours has chosen, "…/whyoom.ID"; NULL. */
const char *trace_file_id_in(const char *directory);
/* The most programs that a process may have been. */
#define SINK_IMAGES_MAX 100000u
/* By its environment: was this process started by one that is recorded already? */
bool trace_file_is_descendant(char *const *environment);
/* Or was it, or an earlier image of it, recorded? */
bool trace_file_in_tree(char *const *environment);
/* Has `whyoom run` itself started it? That has a directory by then. */
bool trace_file_started_by_run(char *const *environment);
/* The variable that says so where the directory's name does not: the id of the process that all
 * began with; 0 after one that could only say why it is not recorded. */
#define TRACE_FILE_TREE "WHYOOM_TREE"
bool trace_file_tree_has_spoken(char *const *environment);

struct file_chunk {
	struct trace_chunk *chunk; /* mapped, or NULL */
	uint64_t offset; /* in the file */
	uint32_t bytes;
};

/* Disk space for a range, which it also makes readable as zeros. 0 or negative errno. */
int trace_file_reserve(int fd, uint64_t offset, uint64_t bytes);

/* A new chunk: its range reserved on disk, mapped and populated, the header filled in but for
 * committed and side_count, which are 0. `last`: may use what the budget keeps for important
 * records. False: *why says for what reason. */
bool trace_file_claim(struct file_chunk *out, enum trace_chunk_type type, uint32_t bytes,
    uint32_t thread, uint32_t tid, uint32_t sequence, bool last, enum trace_drop *why);

/* A range of the file that was reserved and never used: later chunks may lie there. */
void trace_file_hole(uint64_t offset, uint32_t bytes);

/* Maps a chunk again that trace_file_unmap() let go. */
bool trace_file_map(struct file_chunk *chunk);
void trace_file_unmap(struct file_chunk *chunk);

/* Seals it if the address space that it leaves can be had by the next chunk without a moment in
 * which the host could take it; otherwise false, and the chunk is as it was. */
bool trace_file_seal_for_next(struct file_chunk *chunk);

/* Writes the checksum, starts the write-back, drops the pages of older chunks, unmaps. */
void trace_file_seal(struct file_chunk *chunk);

/* Seals one that stays mapped, without a system call. */
void trace_file_seal_here(struct trace_chunk *chunk);

/* Is there still room for so many bytes of ordinary chunks under the budget, and under the bound of
 * all traces together? */
bool trace_file_under_budget(uint64_t bytes);
/* Where there is none: is that for the bound of all traces together alone? */
bool trace_file_bound_is_shared(uint64_t bytes);
/* What this trace may take now at most, with what it has. */
uint64_t trace_file_limit(void);
/* So much of the budget is for chunks of a checkpoint alone. */
void trace_file_keep_aside(uint64_t bytes);
/* What the file takes of the disk: chunks and holes that were not punched. */
uint64_t trace_file_held(void);
/* From now on checkpoints replace old chunks, or do not: then the chunks are smaller, and so is the
 * share of definitions. */
void trace_file_expect_checkpoints(bool expected);
bool trace_file_expects_checkpoints(void);
/* How large the chunks of a thread are, but its first: smaller where the budget is small. */
uint32_t trace_file_chunk_bytes(void);

/* The file, to be worked on: a descriptor, opened by its path, or SINK_MAPPED where rights were
 * given up and it is reached by mappings alone (rights.h); negative errno when it is not the very
 * one that we made. For trace_file_close() and the functions below. */
#define SINK_MAPPED INT32_MAX
int trace_file_open(void);
void trace_file_close(int file);
/* By its path alone. */
int trace_file_open_by_path(void);
/* Gives a range's space back, and the range to later chunks. False: it is as it was. */
bool trace_file_punch(int file, uint64_t offset, uint64_t bytes);
/* The same without the account of it. */
bool trace_file_punch_range(int file, uint64_t offset, uint64_t bytes);
/* Can that be done? */
bool trace_file_can_punch(int file);
/* Reads so many bytes; they lie in one slot. */
bool trace_file_read(int file, uint64_t offset, void *into, size_t bytes);
/* Marks the chunk at that place as sealed. */
void trace_file_seal_by_mapping(uint64_t offset);
/* A range at the file's end, reserved on disk and mapped, for rights.h; NULL. */
void *trace_file_take_range(int fd, uint64_t bytes, uint64_t *offset);

/* Address space that the file's mappings take in this process now, with what is kept aside for
 * them. */
uint64_t trace_file_bytes(void);

/* Of a new file's header all but the magic, which makes it a trace and is stored last. */
void trace_file_header_fill(struct trace_header *h, uint32_t image, uint64_t flags);
void trace_file_header_begin(struct trace_header *h);
/* Raises one of the header's counters that have a copy (lowers it: by a negative number), and sets
 * a flag there. Any moment, signal-safe. */
void trace_file_count(uint64_t *counter, uint64_t n);
void trace_file_flag(uint64_t flag);
void trace_file_set_mode(uint32_t mode);
/* How an image ended: enum trace_end. mono_ns 0: the time is not known. */
void trace_file_set_end(struct trace_header *h, uint32_t how, uint32_t code, uint64_t mono_ns);

/* Counts what could not be recorded. Any moment, signal-safe. */
void trace_file_dropped(enum trace_drop reason, uint64_t events, uint64_t bytes);

/* In the child of a fork: no file yet. */
void trace_file_forget(void);
/* And there will be none, for that error: that is counted in the parent's. True: for the first time
 * there. */
bool trace_file_orphaned(int error);
/* A program that exec started, and that gets no file, is counted in the trace of the process that
 * all began with, or in its parent's. How many were before it; -1: neither is ours to write. */
long trace_file_orphaned_by_exec(void);

/* Of a trace that is about to be removed, or put away: which programs are not recorded is told in
 * that of the process that all began with, or in the parent's, and no more in this one. False: it
 * cannot be, so that the trace must stay. */
bool trace_file_pass_on(struct trace_header *from);

/* At a clean end: removes this process's file if there is next to nothing in it, but for the root
 * of a directory that somebody asked for. `passed`: bytes that the calling thread acquired,
 * recorded or not, where not every block is recorded; else 0. */
void trace_file_tidy(uint64_t passed);

#endif
