/*
 * sqlite.c - a database for sqlite3, DB Browser, pandas and Datasette: sqlite.sql has the tables.
 * Rows come in the order of the callbacks, into one transaction without a journal, since the file
 * appears whole or not at all. A block's row is written when it is released, and those of live
 * blocks at the end, so nothing is kept for an event.
 */
#include "export/export.h"

#include <errno.h>
#include <stdlib.h>

#ifndef WHYOOM_SQLITE

static int sqlite_begin(struct export *x, struct err *err)
{
	(void)x;
	return err_set(err, -ENOSYS,
	    "this whyoom was built without SQLite: install libsqlite3-dev and build it again, or "
	    "use --format parquet");
}

const struct exporter exporter_sqlite = {
    .name = "sqlite",
    .summary = "sqlite3, pandas, Datasette: tables (not in this build: it lacks libsqlite3)",
    .needs = EXPORT_SUMS | EXPORT_EVENTS | EXPORT_CURVES | EXPORT_VERDICT,
    .binary = true,
    .to_file = true,
    .begin = sqlite_begin,
};

#else

#include <sqlite3.h>

#include "export/sqlite_schema.h"
#include "knowledge/knowledge.h"
#include "model/callsite/blame.h"
#include "util/map.h"
#include "util/vec.h"

/* Numbers are the tables' order in `inserts`. */
#define TABLES(TABLE)                                                                              \
	TABLE(META, "meta", 2)                                                                     \
	TABLE(SPACE, "space", 2)                                                                   \
	TABLE(FRAME, "frame", 6)                                                                   \
	TABLE(STACK, "stack", 4)                                                                   \
	TABLE(SUM, "sum", 11)                                                                      \
	TABLE(EVENT, "event", 9)                                                                   \
	TABLE(BLOCK, "block", 11)                                                                  \
	TABLE(CURVE, "curve", 4)                                                                   \
	TABLE(MARK, "mark", 7)                                                                     \
	TABLE(REFUSAL, "refusal", 6)                                                               \
	TABLE(VERDICT, "verdict", 9)                                                               \
	TABLE(FIX, "fix", 2)
enum table {
#define TABLE(NAME, name, columns) T_##NAME,
	TABLES(TABLE)
#undef TABLE
	    TABLE_COUNT
};
static const struct {
	const char *name;
	int columns;
} tables[] = {
#define TABLE(NAME, name, columns) {name, columns},
    TABLES(TABLE)
#undef TABLE
};

/* Releases that may have failed, which is known a moment later. */
#define RECENT 256u
struct recent {
	sqlite3_int64 row;
	uint64_t address;
	uint32_t space;
};

struct sqlite {
	sqlite3 *db;
	sqlite3_stmt *insert[TABLE_COUNT], *forget;
	enum table now;
	int column;
	int failed; /* SQLite's code */
	VEC(uint32_t) frames; /* by the symbol's id: 1 + its number */
	VEC(uint32_t) stacks; /* by the stack's id: its innermost node */

	struct map nodes; /* parent and frame: to the node */
	struct blame_memory traits;
	struct blame_context context;
	uint32_t frame_count, node_count;
	struct recent recent[RECENT];
	uint32_t recent_at;
};

static void check(struct sqlite *t, int rc)
{
	if (rc != SQLITE_OK && rc != SQLITE_DONE && rc != SQLITE_ROW && !t->failed)
		t->failed = rc;
}

/* Return SQLite's first error as an errno, with err filled; 0: there was none. */
static int status(struct export *x, struct err *err)
{
	struct sqlite *t = x->state;
	int code = t->failed & 0xff, rc;

	if (!t->failed)
		return 0;
	rc = code == SQLITE_FULL ? -ENOSPC : code == SQLITE_NOMEM ? -ENOMEM : -EIO;
	return err_set(err, rc, "cannot write the database: %s", sqlite3_errstr(t->failed));
}

static void run(struct sqlite *t, const char *sql)
{
	if (!t->failed)
		check(t, sqlite3_exec(t->db, sql, NULL, NULL, NULL));
}

/* A row: its values in the order of the table's columns. */
static void row(struct sqlite *t, enum table table)
{
	t->now = table;
	t->column = 0;
}

static void put_u64(struct sqlite *t, uint64_t value)
{
	if (!t->failed)
		check(t, sqlite3_bind_int64(t->insert[t->now], ++t->column, (sqlite3_int64)value));
}

static void put_null(struct sqlite *t)
{
	if (!t->failed)
		check(t, sqlite3_bind_null(t->insert[t->now], ++t->column));
}

/* 0 is NULL: stacks, tasks and lines that are not known. */
static void put_known(struct sqlite *t, uint64_t value)
{
	if (value)
		put_u64(t, value);
	else
		put_null(t);
}

static void put_real(struct sqlite *t, double value)
{
	if (!t->failed)
		check(t, sqlite3_bind_double(t->insert[t->now], ++t->column, value));
}

static void put_text(struct sqlite *t, const char *text)
{
	struct str valid = {0};

	if (!text) {
		put_null(t);
		return;
	}
	str_valid(&valid, text);
	if (valid.failed)
		check(t, SQLITE_NOMEM);
	if (!t->failed)
		check(t, sqlite3_bind_text(t->insert[t->now], ++t->column, str_text(&valid),
			     (int)valid.length, SQLITE_TRANSIENT));
	str_free(&valid);
}

static void row_end(struct sqlite *t)
{
	if (t->failed)
		return;
	check(t, sqlite3_step(t->insert[t->now]));
	check(t, sqlite3_reset(t->insert[t->now]));
}

/* --- begin --- */

static void prepare(struct sqlite *t, enum table table)
{
	struct str sql = {0};

	str_printf(&sql, "INSERT INTO %s VALUES(?", tables[table].name);
	for (int i = 1; i < tables[table].columns; i++)
		str_puts(&sql, ",?");
	str_putc(&sql, ')');
	if (!t->failed)
		check(t, sqlite3_prepare_v3(t->db, str_text(&sql), -1, SQLITE_PREPARE_PERSISTENT,
			     &t->insert[table], NULL));
	str_free(&sql);
}

static void put_meta(struct sqlite *t, const char *key, const char *value)
{
	row(t, T_META);
	put_text(t, key);
	put_text(t, value);
	row_end(t);
}

static void put_meta_u64(struct sqlite *t, const char *key, uint64_t value)
{
	row(t, T_META);
	put_text(t, key);
	put_u64(t, value);
	row_end(t);
}

static void put_facts(struct export *x)
{
	struct sqlite *t = x->state;
	const struct trace_facts *f = x->facts;
	struct str command = {0};
	uint64_t every = 0;

	for (const char *const *arg = f->argv; arg && *arg; arg++)
		str_printf(&command, "%s%s", arg == f->argv ? "" : " ", *arg);
	put_meta(t, "exporter", "whyoom " WHYOOM_VERSION);
	put_meta_u64(t, "pid", f->pid);
	put_meta_u64(t, "parent_pid", f->ppid);
	put_meta(t, "executable", f->exe);
	put_meta(t, "command", str_text(&command));
	put_meta_u64(t, "started_unix_ns", f->start_real_ns);
	put_meta_u64(t, "duration_ns", f->last_ns);
	put_meta_u64(t, "dropped", f->dropped_total);
	put_meta_u64(t, "damaged", f->damage.count != 0);
	if (feed_number(&x->feed, "sampled.every", &every))
		put_meta_u64(t, "sampled_every", every);
	str_free(&command);
	for (uint32_t i = 0; i < x->name_count; i++) {
		row(t, T_SPACE);
		put_u64(t, i);
		put_text(t, x->names[i]);
		row_end(t);
	}
}

static int sqlite_begin(struct export *x, struct err *err)
{
	struct sqlite *t = x->state;

	if (!x->path)
		return err_set(err, -EINVAL, "sqlite needs a regular file: -o FILE");
	check(t, sqlite3_open_v2(x->path, &t->db, SQLITE_OPEN_READWRITE, NULL));
	run(t, "PRAGMA journal_mode=OFF; PRAGMA synchronous=OFF; PRAGMA locking_mode=EXCLUSIVE;"
	       "PRAGMA page_size=8192; PRAGMA cache_size=-16384");
	run(t, "BEGIN");
	run(t, sqlite_schema);
	for (int i = 0; i < TABLE_COUNT; i++)
		prepare(t, (enum table)i);
	if (!t->failed)
		check(t, sqlite3_prepare_v3(t->db, "DELETE FROM block WHERE id = ?", -1,
			     SQLITE_PREPARE_PERSISTENT, &t->forget, NULL));
	put_facts(x);
	t->context =
	    (struct blame_context){.malloc_owner = x->feed.info(x->feed.self, "malloc.owner"),
		.interpreter = feed_interpreter(&x->feed),
		.memory = &t->traits};
	return status(x, err);
}

/* --- stacks: a tree --- */

static int frame_of(struct sqlite *t, const struct symbol *s, uint32_t *out)
{
	struct str name = {0};

	if (vec_reach(&t->frames, s->id + 1u))
		return -ENOMEM;
	if (!t->frames.items[s->id]) {
		export_function(&name, s);
		t->frames.items[s->id] = ++t->frame_count;
		row(t, T_FRAME);
		put_u64(t, t->frame_count);
		put_text(t, str_text(&name));
		put_text(t, s->file);
		put_known(t, s->line);
		put_text(t, s->module);
		put_u64(t, s->python);
		row_end(t);
		str_free(&name);
	}
	*out = t->frames.items[s->id];
	return 0;
}

static int node_of(
    struct sqlite *t, uint32_t parent, const struct symbol *s, size_t depth, uint32_t *out)
{
	uint32_t frame;
	uint64_t *slot;
	int rc = frame_of(t, s, &frame);

	if (rc)
		return rc;
	slot = map_put(&t->nodes, (uint64_t)parent << 32 | frame);
	if (!slot)
		return -ENOMEM;
	if (!*slot) {
		*slot = ++t->node_count;
		row(t, T_STACK);
		put_u64(t, *slot);
		put_known(t, parent);
		put_u64(t, frame);
		put_u64(t, depth);
		row_end(t);
	}
	*out = (uint32_t)*slot;
	return 0;
}

static int sqlite_stack(struct export *x, const struct export_stack *s, struct err *err)
{
	struct sqlite *t = x->state;
	uint32_t node = 0;
	int rc = 0;

	for (size_t i = 0; !rc && i < s->count; i++)
		rc = node_of(t, node, &s->symbols[i], i, &node);
	if (!rc)
		rc = vec_reach(&t->stacks, s->id + 1u);
	if (rc)
		return rc;
	t->stacks.items[s->id] = node;
	return status(x, err);
}

static void put_stack(struct sqlite *t, uint32_t stack)
{
	put_known(t, stack < t->stacks.count ? t->stacks.items[stack] : 0);
}

/* --- sums --- */

/* The number of the frame to blame; 0: there is none. */
static int own_frame(struct sqlite *t, const struct export_stack *s, uint32_t *out)
{
	int at = s->count ? blame_frame(&t->context, s->symbols, s->count) : -1;

	*out = 0;
	if (!s->count)
		return 0;
	return frame_of(t, &s->symbols[at < 0 ? s->count - 1 : (size_t)at], out);
}

static int sqlite_sum(struct export *x, const struct export_sum *s, struct err *err)
{
	struct sqlite *t = x->state;
	uint32_t own;
	int rc = own_frame(t, s->stack, &own);

	if (rc)
		return rc;
	row(t, T_SUM);
	put_u64(t, s->space->index);
	put_text(t, s->space->at);
	put_u64(t, s->space->time_ns);
	put_stack(t, s->stack->id);
	put_known(t, own);
	put_u64(t, s->value[MEASURE_LIVE]);
	put_u64(t, s->live_blocks);
	put_u64(t, s->value[MEASURE_PEAK]);
	put_u64(t, s->value[MEASURE_TOTAL]);
	put_u64(t, s->value[MEASURE_COUNT]);
	put_u64(t, s->value[MEASURE_TEMPORARY]);
	row_end(t);
	return status(x, err);
}

/* --- events --- */

static sqlite3_int64 put_block(
    struct sqlite *t, uint32_t space, const struct block *b, const struct event *death)
{
	row(t, T_BLOCK);
	put_null(t);
	put_u64(t, space);
	put_u64(t, b->address);
	put_u64(t, b->size);
	put_u64(t, block_bytes(b));
	put_u64(t, block_count(b));
	put_stack(t, b->stack);
	put_u64(t, b->birth_ns);
	if (death)
		put_u64(t, death->time_ns);
	else
		put_null(t);
	put_u64(t, b->thread);
	put_known(t, b->task);
	row_end(t);
	return sqlite3_last_insert_rowid(t->db);
}

/* The release failed: the block has no row yet. */
static void forget(struct sqlite *t, const struct export_event *e)
{
	for (uint32_t n = 1; n <= RECENT; n++) {
		struct recent *r = &t->recent[(t->recent_at - n) % RECENT];

		if (!r->row || r->address != e->block->address || r->space != e->space)
			continue;
		if (!t->failed) {
			check(t, sqlite3_bind_int64(t->forget, 1, r->row));
			check(t, sqlite3_step(t->forget));
			check(t, sqlite3_reset(t->forget));
		}
		r->row = 0;
		return;
	}
}

static void put_event(struct sqlite *t, const struct export_event *e)
{
	const struct block *b = e->block;

	row(t, T_EVENT);
	put_u64(t, e->number);
	put_u64(t, e->raw->time_ns);
	put_text(t, export_event_name(e->kind));
	put_u64(t, e->space);
	put_u64(t, e->raw->thread);
	put_known(t, e->raw->task);
	put_u64(t, b ? b->address : e->raw->address);
	put_u64(t, b ? b->size : e->raw->size);
	put_stack(t, b ? b->stack : e->raw->stack);
	row_end(t);
}

static void put_mark(struct sqlite *t, const struct event *e)
{
	row(t, T_MARK);
	put_u64(t, e->time_ns);
	put_text(t, export_mark_phase(e));
	put_text(t, export_mark_what(e));
	put_u64(t, e->u.mark.id);
	put_text(t, e->u.mark.name);
	put_u64(t, e->thread);
	put_known(t, e->u.mark.tokens);
	row_end(t);
}

static void put_refusal(struct sqlite *t, const struct export_event *e)
{
	row(t, T_REFUSAL);
	put_u64(t, e->raw->time_ns);
	put_u64(t, e->space);
	put_u64(t, e->raw->size);
	put_text(t, e->raw->u.failed.api);
	put_u64(t, e->raw->thread);
	put_stack(t, e->raw->stack);
	row_end(t);
}

static int sqlite_event(struct export *x, const struct export_event *e, struct err *err)
{
	struct sqlite *t = x->state;

	/* A refusal is in a table of its own. */
	if (export_event_name(e->kind) && e->kind != EXPORT_FAILED)
		put_event(t, e);
	if (e->kind == EXPORT_FREE && e->block)
		t->recent[t->recent_at++ % RECENT] = (struct recent){
		    put_block(t, e->space, e->block, e->raw), e->block->address, e->space};
	else if (e->kind == EXPORT_UNFREE && e->block)
		forget(t, e);
	else if (e->kind == EXPORT_MARK)
		put_mark(t, e->raw);
	else if (e->kind == EXPORT_FAILED)
		put_refusal(t, e);
	return status(x, err);
}

static int sqlite_point(struct export *x, const struct export_curve *c, uint64_t time_ns,
    uint64_t value, struct err *err)
{
	struct sqlite *t = x->state;

	row(t, T_CURVE);
	put_u64(t, c->space);
	put_text(t, export_curve_name(c->kind));
	put_u64(t, time_ns);
	put_u64(t, value);
	row_end(t);
	return status(x, err);
}

static int sqlite_verdict(struct export *x, const struct verdict_result *r, struct err *err)
{
	struct sqlite *t = x->state;
	const struct verdict *v = &r->verdict;

	row(t, T_VERDICT);
	put_text(t, cause_name(v->cause));
	put_real(t, v->confidence);
	put_text(t, v->summary);
	put_u64(t, r->failure.time_ns);
	put_u64(t, r->failure.requested_bytes);
	put_u64(t, r->ledger.limit_bytes);
	put_text(t, v->blame.function);
	put_text(t, v->blame.file);
	put_known(t, v->blame.line);
	row_end(t);
	for (size_t i = 0; i < v->fix_count; i++) {
		row(t, T_FIX);
		put_u64(t, i + 1);
		put_text(t, v->fixes[i].text);
		row_end(t);
	}
	return status(x, err);
}

/* --- end --- */

struct living {
	struct export *x;
	uint32_t space;
	struct err *err;
};

static int put_living(void *arg, const struct block *b)
{
	const struct living *l = arg;
	int rc = export_tell_stack(l->x, b->stack, l->err);

	if (rc)
		return rc;
	put_block(l->x->state, l->space, b, NULL);
	return status(l->x, l->err);
}

static int put_living_of_spaces(struct living *l)
{
	const struct spaces *s = l->x->all->spaces;
	int rc = 0;

	for (uint32_t i = 0; s && !rc && i < s->used; i++) {
		const struct space_block *b = spaces_block(s, i);

		if (!b->used)
			continue;
		l->space = b->space + 1;
		rc = put_living(l, &b->block);
	}
	return rc;
}

static int sqlite_end(struct export *x, struct err *err)
{
	struct sqlite *t = x->state;
	struct living l = {x, EXPORT_HOST, err};
	int rc = x->feed.each_live ? x->feed.each_live(x->feed.self, put_living, &l) : 0;

	if (!rc)
		rc = put_living_of_spaces(&l);
	if (rc)
		return rc;
	run(t, sqlite_indexes);
	run(t, "COMMIT");
	for (int i = 0; i < TABLE_COUNT; i++)
		sqlite3_finalize(t->insert[i]);
	sqlite3_finalize(t->forget);
	memset(t->insert, 0, sizeof(t->insert));
	t->forget = NULL;
	check(t, sqlite3_close(t->db));
	t->db = NULL;
	return status(x, err);
}

static void sqlite_fini(struct export *x)
{
	struct sqlite *t = x->state;

	for (int i = 0; i < TABLE_COUNT; i++)
		sqlite3_finalize(t->insert[i]);
	sqlite3_finalize(t->forget);
	sqlite3_close(t->db);
	vec_free(&t->traits.traits);
	vec_free(&t->frames);
	vec_free(&t->stacks);
	map_free(&t->nodes);
}

const struct exporter exporter_sqlite = {
    .name = "sqlite",
    .summary = "sqlite3, pandas, Datasette: tables of blocks, events, stacks and sums",
    .needs = EXPORT_SUMS | EXPORT_EVENTS | EXPORT_CURVES | EXPORT_VERDICT,
    .binary = true,
    .to_file = true,
    .state = sizeof(struct sqlite),
    .begin = sqlite_begin,
    .stack = sqlite_stack,
    .sum = sqlite_sum,
    .event = sqlite_event,
    .point = sqlite_point,
    .verdict = sqlite_verdict,
    .end = sqlite_end,
    .fini = sqlite_fini,
};

#endif
