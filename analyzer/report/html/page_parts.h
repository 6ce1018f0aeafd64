/*
 * page_parts.h - inside report/html/: what page.c's parts share. gather.c fills a space in the pass
 * over the events, the others write sections from it.
 */
#ifndef ANALYZER_REPORT_PAGE_PARTS_H
#define ANALYZER_REPORT_PAGE_PARTS_H

#include "model/callsite/callsite.h"
#include "model/space/space_map.h"
#include "model/space/temporary.h"
#include "report/html/block.h"
#include "report/html/curve.h"
#include "report/html/frame_list.h"
#include "report/html/page.h"
#include "report/html/slices.h"
#include "report/html/work/groups.h"
#include "report/html/work/work.h"

#define PAGE_SPACES 8u /* the host, and those with the highest peaks */
#define PAGE_PLACES 500u /* with a stack each; the rest is one row */
#define PAGE_THREADS (1u << 20) /* no process has more: such a number is damage */
#define PAGE_NO_PLACE UINT32_MAX
/* The layout names each live stack; of more, the names would take more memory than the model. */
#define PAGE_MAP_STACKS 50000u

#define PAGE_MOMENTS 12u /* further moments with a map, for each space */

/* The sums of a stack in a space. */
struct page_stack {
	uint64_t live, measures[MEASURES];
	uint32_t epoch; /* of the peak that measures[AT_ITS_PEAK] is of */
	uint32_t place; /* its call site by size; beyond all of them: none */
	uint32_t stack;
	uint32_t class; /* of the ledger; CLASS_COUNT: none */
};

/* Readings of a level, the last in each of a curve's buckets; 0: none. */
struct page_level {
	const char *name; /* NULL: never read */
	uint64_t at[CURVE_BUCKETS];
};

/* A moment whose map the page has beside that of its own moment. */
enum page_moment_kind { MOMENT_STEP, MOMENT_PEAK, MOMENT_END, MOMENT_ASKED };
struct page_moment {
	uint64_t time_ns;
	enum page_moment_kind kind;
	uint64_t changes; /* of the space until then */
	struct str map; /* as layout_write() writes it; empty: none was made */
};

struct page_space {
	struct page *page;
	const char *name; /* "host" */
	const struct space *space; /* of the result's model; NULL: the host */
	const struct callsites *callsites;
	struct callsites *own; /* the same, to free; or NULL */
	uint32_t *places; /* by call site: its number by size */
	uint32_t *of_place; /* the reverse */
	VEC(struct page_stack) stacks; /* in order of occurrence */
	VEC(uint32_t) dense; /* the host's: by stack, 1 + index; 0: none */
	struct map sparse; /* the same for other spaces, which have few of a trace's stacks */
	uint64_t live, peak, peak_ns, at_moment, request;
	uint32_t epoch;
	struct curve whole, late;
	struct slices slices;
	struct groups groups;
	struct map mappings; /* by stack and birth, to the thread and task that made them */
	struct page_level level;
	struct space_map map;
	bool mapped;
	uint64_t changes; /* acquisitions and releases so far */
	uint64_t own_changes; /* at the page's moment; UINT64_MAX: it is not there yet */
	struct page_moment moments[PAGE_MOMENTS]; /* in order of time */
	uint32_t moment_count, moments_taken;
	int error; /* of the pass */
};

/* All frames that the page names. Zero at first. */
struct page_frames {
	struct map by_id; /* of a symbol; to 1 + number */
	struct frame_list list;
	struct blame_context context;
	struct blame_memory memory;
};

/* The groups that the page lists, by number on the page. */
struct shown_group {
	enum group_kind kind;
	uint32_t number;
};
struct shown_groups {
	VEC(struct shown_group) list; /* by kind and number */
	uint64_t requests; /* those that are not on it */
};

/* Another process of the set, with its data as text and what was judged. */
struct page_process {
	size_t index; /* in the result's tree */
	struct str packed, cause, summary;
};

struct page {
	const struct verdict_result *r;
	struct feed feed;
	uint64_t end_ns, moment_ns;
	struct page_space *spaces;
	uint32_t count, primary; /* the space that the verdict is about */
	struct temporary temporary; /* of the pass */
	struct block_texts texts;
	struct page_frames frames;
	struct work work;
	struct shown_groups shown;
	bool threads, grouped; /* there are several threads; there is any group */
	const struct event *event; /* during the pass: the current one */
	struct str requests; /* a table as HTML; empty: there were none */
	struct str block; /* written; packed once it is whole */
	struct str packed;
	VEC(struct page_process) others;
	/* What `whyoom map` asks for; its map as a table. */
	const struct page_map *asked; /* NULL: the page is a report */
	struct str map_table;
	uint32_t first; /* the space that the page shows first */
};

/* gather.c: read all events, the host's and then the other spaces'. 0; negative errno with err. */
int page_read_events(struct page *page, struct err *err);
/* The sums of a stack; NULL: it had none there. */
const struct page_stack *page_stack_find(const struct page_space *sp, uint32_t stack);

/* The number of a frame; FRAME_NONE: no memory. flame.c */
uint32_t page_frame(struct page *page, const struct symbol *symbol);
/* A tree as it was written: nodes by number, the root first, a parent before its children. */
struct flame_nodes {
	uint32_t *parents, *of_stack; /* of_stack: by a space's stack the node that has its sums */
	uint32_t count;
};
/* Write the tree of a space's stacks with at most `most` nodes. The caller frees *nodes, which is
 * zeroed, in any case. 0 or -ENOMEM. */
int flame_write(struct page *page, const struct page_space *sp, uint32_t most,
    struct flame_nodes *nodes, struct str *to);

/* layout.c: write a map with at most so many segments and, unless those are more, pieces. */
void layout_write(struct page *page, const struct space_map *map, uint64_t segments,
    uint64_t pieces, struct str *to);
#define PAGE_MAP_PIECES 50000u
#define PAGE_MAP_SEGMENTS 2000u /* the largest */

/* moments.c: choose the further moments of a space, before the pass over its events. */
void moments_choose(struct page *page, struct page_space *sp);
/* Whether the next one is over at that time, which is of an event that is not applied yet. */
static inline bool moments_due(const struct page_space *sp, uint64_t time_ns)
{
	return sp->moments_taken < sp->moment_count &&
	       sp->moments[sp->moments_taken].time_ns < time_ns;
}
/* Make the maps of those that are over. 0 or -ENOMEM. */
int moments_take(struct page_space *sp, const struct model *m, uint64_t time_ns);
/* The page's own moment is there: what is equal to it is left out. */
void moments_own(struct page_space *sp);
/* Append a section for each that was made. */
void moments_write(struct page *page, const struct page_space *sp);
void moments_fini(struct page_space *sp);
/* gather.c: make the map of a space as the pass's model has it; *made false: it would name more
 * than so many live stacks, or has no addresses. 0 or -ENOMEM. */
int page_make_map(const struct page_space *sp, const struct model *m, uint32_t stacks,
    struct space_map *out, bool *made);

/* map_table.c: append a map in sentences and tables, which need no script. */
void map_table(const struct space_map *map, struct str *out);
/* marks.c: write refusals, phases and checkpoints. */
void marks_write(struct page *page, struct str *to);

/* page.c: gather one process, without the others. */
int page_gather_one(const struct verdict_result *r, const struct page_map *asked, struct page **out,
    struct err *err);
/* processes.c: gather those of the set's other processes that matter. 0; negative errno with err.
 */
int processes_gather(struct page *page, const struct trace_set *set, struct err *err);
void processes_fini(struct page *page);

/* lanes.c: choose the groups that the page lists. 0 or -ENOMEM. */
int lanes_choose(struct page *page);
/* Write who they are. */
void lanes_write(struct page *page, struct str *to);
/* Write what they held in a space, with at most `most` nodes of its tree in all. 0 or -ENOMEM. */
int lanes_space_write(struct page *page, const struct page_space *sp,
    const struct flame_nodes *nodes, uint32_t most, struct str *to);
/* Append the largest requests as a table, for readers without scripts. */
void lanes_table(const struct page *page, struct str *to);

#endif
