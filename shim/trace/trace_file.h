/*
 * trace_file.h - the trace file: claims, maps, seals and releases ranges of it. Holds no descriptor
 * between calls, because hosts count and close descriptors. Each call makes system calls and may
 * take hundreds of microseconds. The caller blocks signals where a handler could see its own state
 * half changed. Functions that count or set header fields are signal-safe.
 */
#ifndef SHIM_TRACE_FILE_H
#define SHIM_TRACE_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "whyoom/trace.h"

/* The header of this process's file, or a private one while there is no file: always writable. */
extern struct trace_header *trace_file_header;

/* Create this process's file in `directory`, or in one of its own if that is empty. `forked`: in
 * the child of a fork. Returns 0 or negative errno; *why then says in words what failed. */
int trace_file_create(const char *directory, bool forked, const char **why);

/* At an attach, before trace_file_create(): forget the file of an earlier recording. The new file
 * is a root's: nobody removes it. */
void trace_file_attach(void);

/* Return the directory's absolute path; empty before there is one. */
const char *trace_file_directory(void);
/* Is this process the root: is its id in the name of a directory that it chose, or in
 * WHYOOM_ROOT? */
bool trace_file_is_root(void);
/* Return the id in a directory's name of the form "…/whyoom.ID"; NULL: it has another form. */
const char *trace_file_id_in(const char *directory);
/* The most images (programs) of one process. */
#define TRACE_FILE_IMAGES_MAX 100000u
/* By its environment: did a recorded process start this one? */
bool trace_file_is_descendant(char *const *environment);
/* The same, or was an earlier image of this process recorded? */
bool trace_file_in_tree(char *const *environment);
/* Did `whyoom run` itself start this process? Only after trace_file_directory() is known. */
bool trace_file_started_by_run(char *const *environment);
/* The variable with the id of the tree's first process, where the directory's name does not tell
 * it; 0 after a process that could only say why it is not recorded. */
#define TRACE_FILE_TREE "WHYOOM_TREE"
bool trace_file_tree_has_spoken(char *const *environment);

struct file_chunk {
	struct trace_chunk *chunk; /* mapped, or NULL */
	uint64_t offset; /* in the file */
	uint32_t bytes;
};

/* Reserve disk space for a range and make it read as zeros. Returns 0 or negative errno. */
int trace_file_reserve(int fd, uint64_t offset, uint64_t bytes);

/* Claim a chunk: a range reserved on disk, mapped and populated, with its header filled in;
 * committed and side_count are 0. `last`: may use the share of the budget for important records.
 * False: *why. */
bool trace_file_claim(struct file_chunk *out, enum trace_chunk_type type, uint32_t bytes,
    uint32_t thread, uint32_t tid, uint32_t sequence, bool last, enum trace_drop *why);

/* Offer a reserved, unused range to later chunks. */
void trace_file_add_gap(uint64_t offset, uint32_t bytes);

/* Map a chunk again after trace_file_unmap(). False: not possible. */
bool trace_file_map(struct file_chunk *chunk);
void trace_file_unmap(struct file_chunk *chunk);

/* Seal the chunk and keep its address space for the next one, if no moment arises in which the host
 * could take it. False: nothing has changed. */
bool trace_file_seal_for_next(struct file_chunk *chunk);

/* Seal the chunk: write its checksum, start the write-back, drop older chunks' pages, unmap it. */
void trace_file_seal(struct file_chunk *chunk);

/* Seal a chunk that stays mapped. Makes no system call. */
void trace_file_seal_here(struct trace_chunk *chunk);

/* Do `bytes` more of ordinary chunks fit into this trace's budget and the bound of all traces
 * together? */
bool trace_file_under_budget(uint64_t bytes);
/* If not: is only the bound of all traces together in the way? */
bool trace_file_bound_is_shared(uint64_t bytes);
/* Return how large this trace may become now, bytes. */
uint64_t trace_file_limit(void);
/* Reserve `bytes` of the budget for the chunks of a checkpoint. */
void trace_file_set_aside(uint64_t bytes);
/* Return the bytes that the file takes on disk: chunks, and gaps that were not punched. */
uint64_t trace_file_disk_bytes(void);
/* Tell whether checkpoints replace old chunks from now on. Then chunks are smaller and definitions
 * are limited to a share of the budget. */
void trace_file_expect_checkpoints(bool expected);
bool trace_file_expects_checkpoints(void);
/* Return the size of a thread's chunks after its first, bytes: smaller where the budget is
 * small. */
uint32_t trace_file_chunk_bytes(void);

/* Open the file for the functions below. Returns a descriptor, or TRACE_FILE_MAPPED where the
 * process gave up rights and reaches the file only by mappings (rights.h); negative errno if it is
 * not the file that this process made. End with trace_file_close(). */
#define TRACE_FILE_MAPPED INT32_MAX
int trace_file_open(void);
void trace_file_close(int file);
/* The same, by its path only. */
int trace_file_open_by_path(void);
/* Give a range's disk space back and the range to later chunks. False: nothing has changed. */
bool trace_file_punch(int file, uint64_t offset, uint64_t bytes);
/* Give the disk space back without accounting for it. */
bool trace_file_punch_range(int file, uint64_t offset, uint64_t bytes);
/* Can the file system do that? */
bool trace_file_can_punch(int file);
/* Read `bytes` that lie in one slot. */
bool trace_file_read(int file, uint64_t offset, void *into, size_t bytes);
/* Mark the chunk at `offset` as sealed. */
void trace_file_seal_by_mapping(uint64_t offset);
/* Reserve and map a range at the file's end, for rights.h; NULL: not possible. */
void *trace_file_take_range(int fd, uint64_t bytes, uint64_t *offset);

/* Return the address space of the file's mappings in this process, with the reserve for them. */
uint64_t trace_file_bytes(void);

/* Fill in a new file's header except for the magic. trace_file_header_begin() then stores that, and
 * the file is a trace. */
void trace_file_header_fill(struct trace_header *h, uint32_t image, uint64_t flags);
void trace_file_header_begin(struct trace_header *h);
/* Add to one of the header's counters that have a copy (subtract by a negative number), or set a
 * flag there. Any moment. */
void trace_file_count(uint64_t *counter, uint64_t n);
void trace_file_flag(uint64_t flag);
void trace_file_set_mode(uint32_t mode);
/* Record how the image ended. `how`: enum trace_end; mono_ns 0: the time is not known. */
void trace_file_set_end(struct trace_header *h, uint32_t how, uint32_t code, uint64_t mono_ns);
/* The end that was written did not come. */
void trace_file_take_back_end(struct trace_header *header);

/* Count events and bytes that could not be recorded. Any moment. */
void trace_file_dropped(enum trace_drop reason, uint64_t events, uint64_t bytes);

/* In the child of a fork: there is no file yet. */
void trace_file_forget(void);
/* In the child of a fork that gets no file, for `error`: count it in the parent's header. Returns
 * whether it is the first such child. */
bool trace_file_orphaned(int error);
/* After an exec that gets no file: count this process in the trace of the tree's first process, or
 * in the parent's. Returns how many were counted there before; -1: neither is writable. */
long trace_file_orphaned_by_exec(void);

/* Move the table of unrecorded programs from a trace that is about to be removed or folded to that
 * of the tree's first process, or to the parent's. False: not possible; the trace must stay. */
bool trace_file_pass_on(struct trace_header *from);

/* At a clean end: remove this process's file if it holds next to nothing, or put it into the file
 * of small traces. The root's file stays in a directory that somebody asked for. `passed`: bytes
 * that the calling thread acquired, recorded or not, where not every block is recorded; else 0. */
void trace_file_clean_up(uint64_t passed);

#endif
