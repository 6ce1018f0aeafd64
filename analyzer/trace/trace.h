/*
 * trace.h - opens a trace file or a directory of them, and hands out its events in time order with
 * their definitions resolved. The only stage that knows the wire format.
 *
 * Memory grows with live blocks, threads and distinct definitions, not with events. No byte of a
 * file is trusted: a damaged chunk is read as far as it is sound, and counted; a file that cannot
 * be read at all is refused with path, offset and reason in `struct err`. Functions that return
 * int return 0 or a negative errno unless they say otherwise. One thread for each set.
 */
#ifndef ANALYZER_TRACE_TRACE_H
#define ANALYZER_TRACE_TRACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "trace/event.h"
#include "util/text/err.h"
#include "util/text/str.h"
#include "util/vec.h"

struct trace; /* one process image */

/* The disk space of all traces of a directory, as their processes counted it in disk.account. */
struct trace_account {
	bool known; /* false: recorded without a bound, or the account is damaged */
	uint64_t bound, held; /* bytes: allowed, and in use */
};

/* The traces of a directory, or of one file. */
struct trace_set {
	struct trace **images; /* by start time */
	size_t count;
	size_t left_out; /* files too damaged to be read at all */
	uint64_t left_out_bytes;
	struct trace *supervisor; /* run.whyoom, or NULL */
	const char *path;
	char **empty; /* names of files without any event yet, sorted */
	size_t empty_count;
	struct trace_account account; /* the directory's */
};

/* Open a file or a directory. A directory without any trace is an error. A file of it that cannot
 * be read is left out with a note on stderr, unless no other remains. On success the caller calls
 * trace_set_close(). */
int trace_set_open(const char *path, struct trace_set *out, struct err *err);
void trace_set_close(struct trace_set *set);

/* The checkpoint that replaces old chunks. Events of that time are known only as far as it holds
 * them. */
struct trace_checkpoint_facts {
	uint32_t number; /* of the checkpoint that counts; 0: there is none */
	uint32_t parts; /* its chunks */
	uint32_t damaged; /* number of a newer one that is not whole: its period is lost; 0: none */
	uint32_t unfinished; /* chunks of one that was being written at the end: no loss */
	uint64_t until_ns; /* end of the replaced period, since the start; 0: none */
};

/* Rights that the process gave up, after which it may no longer reach its trace. */
struct trace_rights_facts {
	bool any;
	uint64_t given_up_ns[TRACE_RIGHT_KINDS]; /* since the start; 0: kept */
	uint64_t stopped_ns; /* events are missing from here to the end; 0: none */
	uint64_t children; /* forks that could not open a trace of their own */
	uint32_t reason; /* enum trace_right: the cause of both losses */
};
/* Append why events or children are missing: "rights were given up at 12.3 s: seccomp". */
void trace_rights_why(const struct trace_rights_facts *f, struct str *out);
/* Append the list: "the user (setuid) at 12.3 s, seccomp at 13 s"; nothing if none was given up.
 */
void trace_rights_list(const struct trace_rights_facts *f, struct str *out);
/* True: "uid.N", a directory within the set's, where processes of another user write their traces.
 */
bool trace_is_user_directory(const char *name);
/* The word for JSON. */
const char *trace_right_key(uint32_t right);

/* A program that the process started, or replaced itself by, and that is not recorded. */
struct trace_program {
	uint32_t why; /* enum trace_unrecorded_why, or a newer one */
	uint32_t count; /* starts */
	char path[sizeof(((struct trace_unrecorded *)0)->path)]; /* the end of a longer one */
};

/* What is wrong with a part of the file. */
enum trace_damage_kind {
	TRACE_DAMAGE_HEADER, /* a field of the file's header has changed */
	TRACE_DAMAGE_SHORT, /* the file has been cut off */
	TRACE_DAMAGE_LOST, /* a chunk is gone */
	TRACE_DAMAGE_CHUNK, /* a chunk's header has changed: the chunk is not read */
	TRACE_DAMAGE_EVENTS, /* events contradict the format: the rest of the chunk is not read */
	TRACE_DAMAGE_CHECKSUM, /* events can be read, but have changed */
	TRACE_DAMAGE_REPEATED, /* a second copy of a chunk: not read */
	TRACE_DAMAGE_DEFINITIONS, /* definitions are missing or have changed */
	TRACE_DAMAGE_UNDEFINED, /* events name stacks that nothing defines */
	TRACE_DAMAGE_CHECKPOINT, /* a checkpoint is not whole */
	TRACE_DAMAGE_UNREADABLE, /* a read failed, or a packed frame is damaged */
	TRACE_DAMAGE_KINDS
};
const char *trace_damage_word(enum trace_damage_kind kind); /* the word for JSON: "checksum" */
struct trace_damage_place {
	enum trace_damage_kind kind;
	uint64_t offset, bytes; /* offset 0, but for HEADER: not known */
	uint32_t thread, sequence; /* serial, 0: not of one thread; of its chunk */
	uint64_t from_ns, to_ns; /* the time of the missing events */
};
/* All damage of one file. A process that was killed, or still runs, leaves an undamaged file.
 * Damage within events is known once all events have been read. */
struct trace_damage {
	size_t count; /* of places, in the file's order; 0: the file is whole */
	const struct trace_damage_place *places;
	uint64_t more; /* further places, which are not listed */
	uint64_t bytes; /* damaged or missing bytes of the trace */
	uint64_t from_ns, to_ns; /* since the start */
	uint32_t threads; /* that miss events; 0: not known */
	uint32_t kinds; /* bits, 1 << kind */
	double share; /* the largest part of all recorded data that may be missing, 0 to 1 */
};

struct trace_facts {
	struct trace_damage damage;
	const char *path;
	const char *exe;
	const char *const *argv; /* NULL-terminated, NULL when not recorded */
	uint32_t pid, ppid, image;
	uint16_t major, minor;
	uint32_t mode;
	uint64_t start_real_ns;
	uint64_t start_mono_ns;
	uint64_t last_ns; /* time of the last event, or of the end, since the start */
	uint32_t end_how; /* enum trace_end, by the header, CHILD_END and EXIT */
	uint32_t end_code;
	bool running; /* the process still lives and maps the file */
	bool budget; /* the trace reached its size limit: later small blocks are missing */
	bool disk_bound; /* with `budget`: the limit was that of all traces together */
	bool forked, root;
	uint64_t dropped[TRACE_DROP_REASONS], dropped_total, dropped_bytes;
	uint32_t torn_chunks, bad_checksums, unknown_records;
	uint64_t file_bytes; /* in use; a hole may follow */
	uint64_t event_bytes; /* of these, committed events */
	struct trace_checkpoint_facts checkpoint;
	struct trace_rights_facts rights;
	uint64_t paused_bytes; /* of blocks that were acquired while recording was paused */
	/* After definitions used up their part of the size limit: stacks with some frames only, and
	 * definitions left out (a stack counts once for each event). */
	uint64_t brief_stacks, untold;
	uint64_t unrecorded; /* starts of programs that are not recorded; most are listed here: */
	struct trace_program unrecorded_program[TRACE_UNRECORDED_PLACES];
	size_t unrecorded_programs;
	/* Bytes of the writable segments of all modules that stacks name, in whole pages. */
	uint64_t module_data;
	bool cuda_driver; /* one of these is libcuda */
};
const struct trace_facts *trace_facts(const struct trace *t);
/* The pid of a process that has the file open or mapped; 0: none that this user may see. */
uint32_t trace_holder(const struct trace *t);
/* The size of the packed file in bytes; 0: the file is not packed. */
uint64_t trace_packed(const struct trace *t);
/* True: a small trace, in a file that it shares with others. */
bool trace_is_small(const struct trace *t);
const char *trace_info(const struct trace *t, const char *key); /* an INFO; NULL: absent */
/* The INFO of that index, in no order that means anything; false: there are fewer. */
bool trace_info_at(const struct trace *t, size_t index, const char **key, const char **value);
const char *trace_space(const struct trace *t, uint32_t id); /* "cuda:0"; NULL: not defined */

/* The damage of a set, as seen from one of its traces. */
struct trace_set_damage {
	uint32_t files; /* damaged files, with those left out; 0: none */
	uint32_t left_out; /* files that cannot be read at all */
	uint64_t bytes;
	uint64_t from_ns, to_ns; /* in the one trace; to_ns 0: it is whole */
	uint32_t threads, kinds; /* threads of the one trace, kinds of all files */
	double share; /* as in struct trace_damage */
};
void trace_set_damage(
    const struct trace_set *set, const struct trace *of, struct trace_set_damage *out);

/* The machine's number of a device of the process, by CUDA_VISIBLE_DEVICES; GPU_NONE: not known. */
#define GPU_NONE UINT32_MAX
uint32_t trace_gpu(const struct trace *t, uint32_t device);

/* Read the next event in time order. 1: *out is valid until the next call; 0: the end; negative
 * errno. trace_rewind() goes back to the first event; reading again is as fast as at first. */
int trace_next(struct trace *t, struct event *out, struct err *err);
void trace_rewind(struct trace *t);
/* Go back, and leave out ALLOC, FREE and UNFREE until the next rewind: far quicker for callers
 * that look at devices only. trace_counts() is meaningless meanwhile. */
void trace_rewind_spaces(struct trace *t);
/* As trace_next(), with more events: EV_OUTSIDE for each sample of a device that the supervisor
 * took, and EV_MAP and EV_UNMAP of page-locked memory whose mapping by the driver was not recorded.
 * It reads the supervisor's file meanwhile, so only one process of a set may be read at a time. */
int trace_next_outside(struct trace *t, struct event *out, struct err *err);

/* The sums of all EV_CHECKPOINT so far. Bytes of blocks are estimates. */
struct trace_replaced {
	uint64_t periods;
	uint64_t trace_bytes;
	uint64_t acquired, acquired_bytes, released, released_bytes;
	uint64_t left_out; /* events without room in the checkpoint */
};

/* Of the events read so far. */
struct trace_counts {
	uint64_t events, repairs, unmatched_frees, double_allocs;
	uint64_t tasks; /* distinct ones, see event.task */
	struct trace_replaced replaced;
};
const struct trace_counts *trace_counts(const struct trace *t);
/* How many of trace_facts()->event_bytes have been read, for progress. */
uint64_t trace_bytes_read(const struct trace *t);

/* Open one file to read on in it while its process runs. trace_next() then gives the events so far,
 * up to a moment before which all threads have written theirs. The end (0) is not the trace's. */
int trace_follow(const char *path, struct trace **out, struct err *err);
void trace_unfollow(struct trace *t); /* accepts NULL */
/* Look for what was written since: trace_next() goes on. The cost is that of the new events and
 * definitions, and a read for each thread. 0; 1: old chunks were replaced by a checkpoint, so open
 * the file again; negative errno, -ENOENT and -ESTALE if the file is gone. */
int trace_follow_on(struct trace *t, struct err *err);

struct trace_thread {
	uint32_t serial, tid;
	const char *name; /* or NULL */
	uint64_t allocs, frees;
};
size_t trace_threads(const struct trace *t, const struct trace_thread **out);

/* Call `fn` for each block that is live at this point of reading, in no order. A value of `fn`
 * other than 0 stops and is returned. */
int trace_each_live(const struct trace *t, int (*fn)(void *arg, const struct block *b), void *arg);

/* Free the memory of the live blocks. Until trace_rewind() none is live, and no event is read. */
void trace_release_live(struct trace *t);

/* Stack ids are canonical: equal stacks have equal ids. They are dense, below trace_stack_limit();
 * 0 is the unknown stack. */
enum frame_kind { FRAME_NATIVE, FRAME_PYTHON, FRAME_CUT, FRAME_END };
struct frame {
	enum frame_kind kind;
	uint32_t module; /* native: module id, 0 none. python: code id. cut: frames left out */
	uint64_t address; /* native: in the module's file; python: instruction offset + 1 */
	bool exact; /* native: not a return address */
};
uint32_t trace_stack_limit(const struct trace *t);
/* Give the frames of a stack, outermost first, with those of the interpreter itself. Returns their
 * number. They are valid until the next call for this trace. */
size_t trace_stack(const struct trace *t, uint32_t stack, const struct frame **frames);

/* A frame as names; strings live as long as the trace. A frame with inlined calls gives several
 * symbols, innermost last. */
struct symbol {
	const char
	    *function; /* demangled or Python qualified name; "libfoo.so+0x1234" if unknown */
	const char *file; /* NULL unknown */
	uint32_t line; /* 0 unknown */
	uint32_t id; /* dense, from 1; equal symbols of a trace have equal ids */
	const char *module; /* path of the ELF file, or NULL for Python */
	uint64_t address; /* in that file, where `known` is false */
	bool python, inlined, known;
	bool cut; /* no frame: some are left out here */
	bool interpreter; /* native frame of the interpreter's library or program */
};
/* By their names: two functions of one name in one file are the same. */
static inline bool symbol_same_function(const struct symbol *a, const struct symbol *b)
{
	return a->python == b->python && str_same(a->function, b->function) &&
	       str_same(a->file, b->file);
}
static inline bool symbol_same_line(const struct symbol *a, const struct symbol *b)
{
	return a->line == b->line && symbol_same_function(a, b);
}

/* Symbolise a stack, outermost first, with Python frames in place of the interpreter's. Returns
 * how many symbols; 0 for the unknown stack. Cached: the array lives as long as the trace. */
size_t trace_symbols(struct trace *t, uint32_t stack, const struct symbol **out);

/* A cursor over stacks that caches nothing: the next look costs only the frames that the two stacks
 * do not share. Zeroed by the caller at first; trace_path_fini() frees it. */
struct stack_path {
	const struct symbol *symbols; /* as trace_symbols() gives; valid until the next look */
	size_t count;
	size_t same; /* how many of the outermost symbols are those of the last look */
	size_t most; /* set by the caller: stop after about so many; 0: all */
	/* private */
	VEC(struct symbol) words;
	VEC(struct path_step) steps;
	size_t depth;
};
/* Move to a stack. On -ENOMEM there are no symbols. */
int trace_path(struct trace *t, uint32_t stack, struct stack_path *path);
void trace_path_fini(struct stack_path *path);
/* List all stacks so that neighbours share most frames: the cheapest order to look at all. Valid
 * as long as the trace. 0 or -ENOMEM. */
int trace_stack_order(struct trace *t, const uint32_t **order, size_t *count);

/* Classifies all stacks by their frames in one pass over the tree of stacks. `mark` is called once
 * for each frame with all of its symbols; `join` combines the marks other than 0, from the
 * outermost frame to the innermost. The symbols have no id, and their strings may be gone after the
 * call. */
struct trace_fold {
	void *arg;
	uint16_t (*mark)(void *arg, const struct symbol *symbols, size_t count);
	uint16_t (*join)(uint16_t outer, uint16_t inner);
};
/* Fill out[0] to out[trace_stack_limit() - 1]; a stack without frames gets 0. 0 or -ENOMEM. */
int trace_fold_stacks(struct trace *t, const struct trace_fold *fold, uint16_t *out);

#endif
