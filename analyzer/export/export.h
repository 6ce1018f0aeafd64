/*
 * export.h - writes one process of a trace for another program. An exporter is a row in
 * exporters.def and a file that defines its `struct exporter`: callbacks that are given the spaces
 * with their stacks, the events, the curves and the verdict, in this order, and write to a sink.
 *
 * An exporter says what it needs, so that a format of sums costs no pass over the events. It may
 * keep what grows with distinct frames, stacks and live blocks, and nothing that grows with events.
 * Names come from a trace: they may hold control characters, markup and invalid UTF-8, and each
 * exporter escapes them in its format's way. One thread.
 */
#ifndef ANALYZER_EXPORT_EXPORT_H
#define ANALYZER_EXPORT_EXPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "export/sink.h"
#include "model/space/temporary.h"
#include "verdict/result.h"

/* What a sum over a stack's blocks and mappings can be: MEASURE(NAME, name, unit, meaning). */
#define EXPORT_MEASURES(MEASURE)                                                                   \
	MEASURE(LIVE, live, "bytes", "live at the moment")                                         \
	MEASURE(PEAK, peak, "bytes", "live at the peak")                                           \
	MEASURE(TOTAL, total, "bytes", "allocated in all")                                         \
	MEASURE(COUNT, count, "count", "blocks allocated")                                         \
	MEASURE(TEMPORARY, temporary, "bytes", "allocated and freed at once")
enum export_measure {
#define MEASURE(NAME, name, unit, meaning) MEASURE_##NAME,
	EXPORT_MEASURES(MEASURE)
#undef MEASURE
	    MEASURES
};
/* "live"; "bytes" or "count"; "live at the moment". */
const char *export_measure_name(enum export_measure measure);
const char *export_measure_unit(enum export_measure measure);
const char *export_measure_meaning(enum export_measure measure);
/* Return the measure of that name; MEASURES: there is none. */
enum export_measure export_measure_find(const char *name);

/* Where the events of an exporter with `devices` end: after so many events that are no blocks of
 * the host (struct run's `others`), or that late. */
struct export_until {
	uint64_t others, time_ns; /* UINT64_MAX: no such limit */
	const char *at; /* "failure", "peak", "end", "12.5s" */
};

/* The user's choices. */
struct export_options {
	enum export_measure measure; /* MEASURES: the user chose none */
	bool events; /* false: leave them out where the format can do without */
	uint64_t last_events; /* only so many; 0: all */
	const char *space; /* the one that is asked for; NULL: the user named none */
	struct export_until until; /* for exporters with `devices` */
	bool difference; /* the sums are those of two traces */
	bool history; /* with times, where the format has both */
	bool gzip;
};

/* A stack as words. */
struct export_stack {
	uint32_t id; /* canonical; 0: the unknown stack */
	const struct symbol *symbols; /* outermost first; valid during the call */
	size_t count; /* 0 for the unknown stack */
	size_t same; /* how many of the outermost are those of the stack given before; 0 is safe */
};

/* The sums of one stack in one space at the moment. */
struct export_space;
struct export_sum {
	const struct export_space *space;
	const struct export_stack *stack;
	uint64_t value[MEASURES];
	uint64_t live_blocks;
};

/* A space at the moment. */
struct export_space {
	uint32_t index; /* into struct export's names */
	const char *name; /* "host", "cuda:0" */
	const struct model *model; /* of this space; the moment may be earlier than its end */
	enum moment moment; /* of that model */
	const char *at; /* "failure", "peak", "end", "12.5s" */
	uint64_t time_ns; /* of the moment */
};

enum export_event_kind {
	/* memory that comes and goes: export_event_name() has a word for each */
	EXPORT_ALLOC, /* .block was acquired */
	EXPORT_FREE, /* .block was released; NULL: its acquisition was not recorded */
	EXPORT_UNFREE, /* that release failed, and .block lives again */
	EXPORT_MAP, /* a mapping of the host: .raw->address, .raw->size */
	EXPORT_UNMAP, /* a part of it, or several */
	EXPORT_UNUNMAP,
	EXPORT_FAILED, /* .raw->size bytes were refused */
	/* not of memory */
	EXPORT_MARK, /* the program reports a request or a phase: .raw->u.mark */
	EXPORT_LEVEL, /* .raw->levels were measured, EV_OUTSIDE: .raw->u.device */
	EXPORT_OTHER,
};

struct export_event {
	enum export_event_kind kind;
	uint64_t number; /* of the recorded event, from 1; a release in bulk gives several */
	uint32_t space; /* index into struct export's names */
	const struct block *block; /* as in event.h; of any space; valid during the call */
	const struct event *raw; /* as recorded: names, stream, levels. A bulk release's own */
};

/* A curve: values of one kind over the run. */
enum export_curve_kind {
	CURVE_LIVE, /* live bytes of a space */
	CURVE_RSS, /* of the process */
	CURVE_FREE, /* of a device, as its driver says */
	CURVE_RESERVED, /* by PyTorch's allocator on a device */
};
struct export_curve {
	enum export_curve_kind kind;
	uint32_t space;
};

/* The words of all formats. Return "unmap"; NULL: the event is not of memory. */
const char *export_event_name(enum export_event_kind kind);
/* Return "resident". */
const char *export_curve_name(enum export_curve_kind kind);
/* Return "begin", and "request"; NULL: this version does not know it. */
const char *export_mark_phase(const struct event *mark);
const char *export_mark_what(const struct event *mark);

struct export;
enum export_needs {
	EXPORT_SUMS = 1u << 0, /* space(), sum() and space_end() */
	EXPORT_EVENTS = 1u << 1, /* event() */
	EXPORT_CURVES = 1u << 2, /* point() */
	EXPORT_VERDICT = 1u << 3, /* verdict() */
};

/* Callbacks return 0 or a negative errno with err filled (-ENOMEM: it need not be); a NULL one is
 * not called. They write to x->out and need not check it. */
struct exporter {
	const char *name;
	const char *summary; /* a line for --help: what opens it */
	unsigned needs; /* enum export_needs */
	bool binary; /* not for a terminal */
	bool to_file; /* not to a pipe: x->path is the file */
	bool one_space; /* holds one space only */
	/* Readers add the spaces up, and some lie inside others: by default it is one space. */
	bool adds_spaces;
	bool one_measure; /* holds the measure that the user chose */
	/* space() to space_end() come once a measure, x->measure, that is not 0 for all stacks. */
	bool by_measure;
	bool gzip; /* always compressed */
	bool can_gzip, can_history; /* on request */
	bool can_base; /* on request the difference from another trace: x->base */
	/* event() gets events of spaces beside the host, all until the moment; the exporter writes
	 * those from x->first on. Numbers then count no blocks of the host. */
	bool devices;
	uint32_t moments; /* space() to space_end() come for so many earlier moments first, too */
	uint64_t last_events; /* as in the options, if the user chose nothing */
	size_t state; /* bytes of x->state, zeroed */

	/* 1. What is known at the start: x->facts, x->names. */
	int (*begin)(struct export *x, struct err *err);
	/* A stack before the first sum or event that names it: in formats with a table of stacks.
	 * `s->id` is not 0. */
	int (*stack)(struct export *x, const struct export_stack *s, struct err *err);
	/* 2. Each space, with `moments` several times in order of time, and each of its stacks
	 * once; those of all sums 0 are left out, with by_measure those of that sum 0. */
	int (*space)(struct export *x, const struct export_space *s, struct err *err);
	int (*sum)(struct export *x, const struct export_sum *s, struct err *err);
	int (*space_end)(struct export *x, const struct export_space *s, struct err *err);
	/* 3. The events in order of time. */
	int (*event)(struct export *x, const struct export_event *e, struct err *err);
	/* 4. The points of each curve in order of time, curve after curve: of a bucket the least
	 * and the most, in their order. */
	int (*point)(struct export *x, const struct export_curve *c, uint64_t time_ns,
	    uint64_t value, struct err *err);
	/* 5. */
	int (*verdict)(struct export *x, const struct verdict_result *r, struct err *err);
	int (*end)(struct export *x, struct err *err);
	void (*fini)(struct export *x); /* frees what the state owns */
};

#define EXPORT_HOST 0u /* index of the host in the names */
struct export
{
	const struct exporter *to;
	struct export_options options;
	struct sink *out;
	const char *path; /* the file that is written, under its temporary name; NULL: a pipe */
	struct feed feed;
	const struct model *all; /* of the whole run */
	const struct temporary *temporary; /* of the whole run; NULL: not read */
	/* The other trace of a difference: an export that got its spaces, and no end(). NULL: this
	 * is that one, or there is none. */
	const struct export *base;
	const struct trace_facts *facts;
	/* Names of all spaces of the process; [EXPORT_HOST] is "host". */
	const char *names[SPACES_MAX + 1];
	uint32_t name_count;
	enum export_measure measure; /* of the sums being given, with by_measure */
	uint64_t first; /* number of the first event that the user wants; UINT64_MAX: none */
	void *state; /* the exporter's */
	/* private */
	uint8_t *told; /* bits of stacks that stack() has got */
	struct stack_path walk;
};

const struct exporter *export_default(void); /* the first row */
/* Return the exporter of that name, or NULL. */
const struct exporter *export_find(const char *name);
void export_names(const char *between, struct str *out);
/* Print a line for each exporter. */
void export_help(FILE *out);

/*
 * The steps, in the order of the callbacks. `all` is the model of the whole run, which names the
 * spaces; it must stay until export_end(). Each returns 0; negative errno with err. Call
 * export_fini() at the end, also after an error.
 */
int export_begin(struct export *x, const struct exporter *to, const struct export_options *options,
    struct sink *out, const char *path, const struct model *all, struct err *err);
/* True if `all` must be read with temporary_options(), and x->temporary be set after
 * export_begin(). */
bool export_wants_temporary(const struct exporter *to, const struct export_options *options);
/* Give each space at moments before until_ns[its index], x->to->moments of them at most; 0: none.
 * Reads all events once. */
int export_moments(struct export *x, const uint64_t *until_ns, struct err *err);
int export_space(struct export *x, const struct export_space *s, struct err *err);
/* Read all events, unless the exporter needs neither events nor curves. */
int export_events(struct export *x, struct err *err);
int export_verdict(struct export *x, const struct verdict_result *r, struct err *err);
int export_end(struct export *x, struct err *err);
void export_fini(struct export *x);

/* For exporters: the sums without the stacks' words, for space(). As sums_each(). */
int export_sums(const struct export_space *s,
    int (*fn)(void *arg, uint32_t stack, const struct export_sum *sum), void *arg);
/* A stack as words, valid until the next look or the end of the callback. 0 or -ENOMEM. */
int export_look(struct export *x, uint32_t stack, struct export_stack *out);
/* The index of a space's name; EXPORT_HOST if it is unknown. */
uint32_t export_space_index(const struct export *x, const char *name);
/* Append the function without the arguments of its templates, as it is in the trace otherwise; and
 * "function (file.c:12)". */
void export_function(struct str *out, const struct symbol *s);
void export_frame(struct str *out, const struct symbol *s);
/* Append, as a JSON string, "cuda:0: live at the failure"; and the command line with the
 * pid. */
void export_title(struct str *out, const struct export_space *s, enum export_measure measure);
void export_process(struct str *out, const struct export *x);

/* Inside export/: gives stack() a stack that it has not got yet. */
int export_tell_stack(struct export *x, uint32_t stack, struct err *err);
/* Passes -ENOMEM and a sink's error on in words. */
int export_failed(struct export *x, int rc, struct err *err);

#define EXPORTER(name) extern const struct exporter exporter_##name;
#include "export/exporters.def"
#undef EXPORTER

#endif
