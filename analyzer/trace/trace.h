/*
 * trace.h - opens a trace file or a directory of them, and hands out its events in time order with
 * its definitions resolved. The only stage that knows the wire format.
 *
 * Memory grows with live blocks, threads and distinct definitions, not with events. Nothing in a
 * file is trusted: what is torn is read as far as it is sound and counted, what cannot be read is
 * refused with file, offset and reason in `struct err`.
 */
#ifndef ANALYZER_TRACE_TRACE_H
#define ANALYZER_TRACE_TRACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "trace/event.h"
#include "util/text/err.h"
#include "util/text/str.h"

struct trace; /* one process image */

/* What all traces of a directory may take of the disk, and do: what their processes have counted.
 */
struct trace_account {
	bool known; /* false: they were recorded without such a bound, or it is damaged */
	uint64_t bound, held;
};

/* What a directory holds, or the one file that was named. */
struct trace_set {
	struct trace **images; /* by start time */
	size_t count;
	size_t left_out; /* files that are too damaged to be read at all */
	uint64_t left_out_bytes;
	struct trace *supervisor; /* run.whyoom, or NULL */
	const char *path;
	char **empty; /* names of files that hold nothing yet, in order */
	size_t empty_count;
	struct trace_account account; /* of a directory */
};

/* 0; negative errno with err filled. A directory without any trace is an error; files in it that
 * cannot be read are left out with a note on stderr, unless none remains. */
int trace_set_open(const char *path, struct trace_set *out, struct err *err);
void trace_set_close(struct trace_set *set);

/* What a checkpoint took the place of is known only as far as that holds it. */
struct trace_checkpoint_facts {
	uint32_t number; /* of the one that counts; 0: none, and then nothing was replaced, or... */
	uint32_t parts; /* chunks of it */
	uint32_t damaged; /* ...what was is lost: the number of a newer one that is not whole */
	uint32_t unfinished; /* chunks of one that was being written at the end: no loss */
	uint64_t until_ns; /* so long since the start; 0: nothing was replaced */
};

/* Rights that the process gave up, after which its trace may be out of its reach. */
struct trace_rights_facts {
	bool any;
	uint64_t given_up_ns[TRACE_RIGHT_KINDS]; /* since the start; 0: not */
	uint64_t stopped_ns; /* since when events are missing for it; 0: none are by the end */
	uint64_t children; /* that have no trace for it */
	uint32_t reason; /* enum trace_right: why these are missing */
};
/* "rights were given up at 12.3 s: seccomp": why events or children are missing. */
void trace_rights_why(const struct trace_rights_facts *f, struct str *out);
/* "the user (setuid) at 12.3 s, seccomp at 13 s"; nothing where none was given up. */
void trace_rights_list(const struct trace_rights_facts *f, struct str *out);
/* Is that the name of a directory in a trace's, "uid.N", in which processes of another user have
 * theirs? */
bool trace_is_place(const char *name);
/* One word, for JSON. */
const char *trace_right_key(uint32_t right);

/* A program that the process started, or became, and that is not recorded. */
struct trace_program {
	uint32_t why; /* enum trace_unrecorded_why, or one that is newer than this reader */
	uint32_t count; /* of starts */
	char path[sizeof(((struct trace_unrecorded *)0)->path)]; /* its end, where that is longer */
};

/* What is wrong with a place of the file. */
enum trace_damage_kind {
	TRACE_DAMAGE_HEADER, /* a field of the file's header is not what was written */
	TRACE_DAMAGE_SHORT, /* the file ends before what was written */
	TRACE_DAMAGE_LOST, /* where a chunk was there is none */
	TRACE_DAMAGE_CHUNK, /* a chunk's header is not what was written: the chunk is not read */
	TRACE_DAMAGE_EVENTS, /* they contradict the format: from here on the chunk is not read */
	TRACE_DAMAGE_CHECKSUM, /* events are not what was written, though they can be read */
	TRACE_DAMAGE_REPEATED, /* a chunk that is in the file already: not read again */
	TRACE_DAMAGE_DEFINITIONS, /* they are missing, or not what was written */
	TRACE_DAMAGE_UNDEFINED, /* stacks that events name and nothing defines */
	TRACE_DAMAGE_CHECKPOINT, /* one is not whole */
	TRACE_DAMAGE_UNREADABLE, /* the system cannot read it, or a packed part of it is damaged */
	TRACE_DAMAGE_KINDS
};
const char *trace_damage_word(enum trace_damage_kind kind); /* "checksum", as in JSON */
struct trace_damage_place {
	enum trace_damage_kind kind;
	uint64_t offset, bytes; /* offset 0 with another kind than HEADER: it is not known where */
	uint32_t thread, sequence; /* serial, 0: not one thread's; of its chunks */
	uint64_t from_ns, to_ns; /* in which what is missing came about */
};
/* One account of all that is missing in a file, or not what was written. A process that was killed,
 * or still runs, leaves a whole one. What is in the events is known once they were read. */
struct trace_damage {
	size_t count; /* of places, the first ones of all in the file; 0: it is whole */
	const struct trace_damage_place *places;
	uint64_t more; /* places beyond those */
	uint64_t bytes; /* of the trace */
	uint64_t from_ns, to_ns; /* since the start */
	uint32_t threads; /* whose events are missing; 0: it is not known whose */
	uint32_t kinds; /* bits, 1 << kind */
	double share; /* of what was recorded: so much could be hidden in what is missing */
};

struct trace_facts {
	struct trace_damage damage;
	const char *path; /* of the file */
	const char *exe;
	const char *const *argv; /* NULL-terminated, NULL when not recorded */
	uint32_t pid, ppid, image;
	uint16_t major, minor;
	uint32_t mode;
	uint64_t start_real_ns;
	uint64_t start_mono_ns;
	uint64_t last_ns; /* of the last event or end, since start */
	uint32_t end_how; /* enum trace_end, with CHILD_END and EXIT taken into account */
	uint32_t end_code;
	bool running; /* the process with that pid still lives and maps the file */
	bool budget; /* small blocks are missing from some point on */
	bool disk_bound; /* all traces together had reached their bound; with `budget`, for that */
	bool forked, root;
	uint64_t dropped[TRACE_DROP_REASONS], dropped_total, dropped_bytes;
	uint32_t torn_chunks, bad_checksums, unknown_records;
	uint64_t file_bytes; /* as far as it is used: behind that may be a hole */
	uint64_t event_bytes; /* of it, committed events */
	struct trace_checkpoint_facts checkpoint;
	struct trace_rights_facts rights;
	uint64_t paused_bytes; /* of blocks that were acquired in pauses */
	/* Where definitions had taken their share of the budget: stacks of which only a part of the
	 * frames is told, and what is not told at all: of a stack, once for each of its events. */
	uint64_t brief_stacks, untold;
	uint64_t unrecorded; /* starts of programs that are not recorded; most of them are named: */
	struct trace_program unrecorded_program[TRACE_UNRECORDED_PLACES];
	size_t unrecorded_programs;
	/* Pages of the writable segments of all modules that were seen in stacks. */
	uint64_t module_data;
};
const struct trace_facts *trace_facts(const struct trace *t);
/* A process that still has the file open or mapped, as far as one may look; 0: none. */
uint32_t trace_holder(const struct trace *t);
/* How large the file is where it is packed; 0: it is not. */
uint64_t trace_packed(const struct trace *t);
/* Does it share its file with others, as those do that record little? */
bool trace_is_small(const struct trace *t);
const char *trace_info(const struct trace *t, const char *key); /* INFO, or NULL */
const char *trace_space(const struct trace *t, uint32_t id); /* "cuda:0"; NULL: not defined */

/* The account of a set, as seen from one of its traces. */
struct trace_set_damage {
	uint32_t files; /* that are damaged, those that are left out counted; 0: all are whole */
	uint32_t left_out;
	uint64_t bytes;
	uint64_t from_ns, to_ns; /* of the one trace; to_ns 0: that is whole */
	uint32_t threads, kinds; /* of it, and of all */
	double share; /* as of struct trace_damage */
};
void trace_set_damage(
    const struct trace_set *set, const struct trace *of, struct trace_set_damage *out);

/* The number that a device of the process has on the machine, as far as CUDA_VISIBLE_DEVICES tells.
 */
#define GPU_NONE UINT32_MAX
uint32_t trace_gpu(const struct trace *t, uint32_t device);

/* Events in order. 1: *out is the next one, valid until the next call; 0: the end; negative errno.
 * trace_rewind() starts again, as fast as the first time. */
int trace_next(struct trace *t, struct event *out, struct err *err);
int trace_rewind(struct trace *t, struct err *err);
/* The same without ALLOC, FREE and UNFREE, until the next rewind: far quicker, for whoever looks at
 * other spaces than the host's. What is counted is then of no use. */
int trace_rewind_spaces(struct trace *t, struct err *err);
/* The same, with EV_OUTSIDE at its time for each sample of a device that the set's supervisor took
 * while events came, and with EV_MAP and EV_UNMAP of page-locked memory that a driver gave, where
 * the calls by which it mapped it were not seen. It reads the supervisor's file meanwhile: one
 * process of a set at a time. */
int trace_next_outside(struct trace *t, struct event *out, struct err *err);

/* Sums of EV_CHECKPOINT: what was recorded, and replaced. Bytes of blocks are estimates. */
struct trace_replaced {
	uint64_t periods;
	uint64_t trace_bytes;
	uint64_t acquired, acquired_bytes, released, released_bytes;
	uint64_t left_out; /* events that found no room in the checkpoint */
};

/* After (or while) events were read: */
struct trace_counts {
	uint64_t events, repairs, unmatched_frees, double_allocs;
	uint64_t tasks; /* different ones, as in struct event */
	struct trace_replaced replaced;
};
const struct trace_counts *trace_counts(const struct trace *t);
/* Bytes of events read so far, of trace_facts()->event_bytes: for progress. */
uint64_t trace_bytes_read(const struct trace *t);

struct trace_thread {
	uint32_t serial, tid;
	const char *name; /* or NULL */
	uint64_t allocs, frees;
};
size_t trace_threads(const struct trace *t, const struct trace_thread **out);

/* The blocks that live at this moment of reading, in no order. `fn` non-zero stops and is returned.
 */
int trace_each_live(const struct trace *t, int (*fn)(void *arg, const struct block *b), void *arg);

/* Until trace_rewind() nothing is said to live: what that took is given back, where much is to be
 * done before it is needed again. */
void trace_rest(struct trace *t);

/* Stacks. Ids are canonical: equal stacks have equal ids; 0 is the unknown stack. Ids are dense:
 * below trace_stack_limit(). */
enum frame_kind { FRAME_NATIVE, FRAME_PYTHON, FRAME_CUT, FRAME_END };
struct frame {
	enum frame_kind kind;
	uint32_t module; /* native: module id, 0 none. python: code id. cut: frames left out */
	uint64_t address; /* native: in the module's file; python: instruction offset + 1 */
	bool exact; /* native: not a return address */
};
uint32_t trace_stack_limit(const struct trace *t);
/* Outermost first; the interpreter's own frames are still there. Returns the number of frames; they
 * are valid until the next call for this trace. */
size_t trace_stack(const struct trace *t, uint32_t stack, const struct frame **frames);

/* A frame in words; strings live as long as the trace. Inlined calls give several, innermost last.
 */
struct symbol {
	const char
	    *function; /* demangled or Python qualified name; "libfoo.so+0x1234" if unknown */
	const char *file; /* NULL unknown */
	uint32_t line; /* 0 unknown */
	uint32_t id; /* of a trace's own: dense, from 1, and equal ids are equal symbols */
	const char *module; /* path of the ELF file, or NULL for Python */
	uint64_t address; /* in that file, where `known` is false */
	bool python, inlined, known;
	bool cut; /* no frame, but a mark that some are left out here */
	bool interpreter; /* native frame of the library or program that the interpreter is in */
};
/* As far as names tell. */
static inline bool symbol_same_function(const struct symbol *a, const struct symbol *b)
{
	return a->python == b->python && str_same(a->function, b->function) &&
	       str_same(a->file, b->file);
}
static inline bool symbol_same_line(const struct symbol *a, const struct symbol *b)
{
	return a->line == b->line && symbol_same_function(a, b);
}

/* Symbolises a whole stack, outermost first, the interpreter's frames replaced by the Python ones;
 * cached, the array lives as long as the trace. 0 for the unknown stack. */
size_t trace_symbols(struct trace *t, uint32_t stack, const struct symbol **out);

/* The stack that was looked at last, for looks in passing: one look after another costs no more
 * than what two stacks do not share, and nothing is kept. Zeroed at first; trace_path_fini(). */
struct stack_path {
	const struct symbol *symbols; /* as of trace_symbols(); valid until the next look */
	size_t count;
	size_t same; /* so many of the outermost are as at the last look */
	size_t most; /* set by who looks: there are no more than about so many; 0: all */
	/* The trace's own: */
	struct symbol *words;
	struct path_step *steps;
	size_t room, depth, depth_room;
};
/* 0; -ENOMEM, and then there are no symbols. */
int trace_path(struct trace *t, uint32_t stack, struct stack_path *path);
void trace_path_fini(struct stack_path *path);
/* All stacks, each beside those that it shares most frames with: the order in which to look at all
 * of them. Valid as long as the trace. 0 or -ENOMEM. */
int trace_stack_order(struct trace *t, const uint32_t **order, size_t *count);

/* What all stacks come to, by what each of their frames is: a frame that is shown is asked for its
 * mark once, of all its symbols, and marks that are not 0 are joined from the outermost frame to
 * the innermost. A look at all of them costs no more than a step for each frame that no other stack
 * shares. The symbols are as of trace_path(), but that their words may be gone after the call, and
 * that those have no id. */
struct trace_fold {
	void *arg;
	uint16_t (*mark)(void *arg, const struct symbol *symbols, size_t count);
	uint16_t (*join)(uint16_t outer, uint16_t inner);
};
/* out[stack] for all trace_stack_limit() of them; 0 for one without frames. 0 or -ENOMEM. */
int trace_fold_stacks(struct trace *t, const struct trace_fold *fold, uint16_t *out);

/* One note for each module whose file was missing or has another build id. */
size_t trace_symbol_notes(const struct trace *t, const char *const **out);

#endif
