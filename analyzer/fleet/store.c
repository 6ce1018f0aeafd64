/* store.c - see store.h. */
#include "fleet/store.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "fleet/statements.h"

const struct fleet_question fleet_questions[] = {
#define QUESTION(name) {#name, (const char *)fleet_##name},
#include "fleet/questions.def"
#undef QUESTION
    {0},
};

const char *const fleet_tables = (const char *)fleet_schema;

/* Does a compiler's suffix or a list of parameters begin here? */
static bool ends_here(const char *p)
{
	static const char *const ends[] = {".part.", ".isra.", ".constprop.", ".cold", " [clone"};

	if (*p == '(')
		return strncmp(p, "(anonymous", 10) != 0;
	for (size_t i = 0; i < sizeof(ends) / sizeof(*ends); i++)
		if (!strncmp(p, ends[i], strlen(ends[i])))
			return true;
	return false;
}

void fleet_frame_name(const char *function, struct str *out)
{
	const char *after = strstr(function, "operator<");
	unsigned depth = 0;

	/* The signs of an operator are its name. */
	after = after ? after + strlen("operator") + strspn(after + strlen("operator"), "<=>")
		      : function;
	for (const char *p = function; *p; p++) {
		/* Python's <lambda> and <locals> are names, too: they follow no name. */
		bool opens =
		    *p == '<' && p >= after && p > function && p[-1] != '.' && p[-1] != ' ';

		if (depth) {
			depth += *p == '<';
			depth -= *p == '>';
		} else if (opens) {
			depth = 1;
		} else if (ends_here(p)) {
			return;
		} else {
			str_putc(out, *p);
		}
	}
}

#ifndef WHYOOM_SQLITE

static int missing(struct err *err)
{
	return err_set(err, -ENOSYS,
	    "this whyoom was built without SQLite: install libsqlite3-dev and build it again");
}

int fleet_open(const char *path, bool create, struct fleet_store **out, struct err *err)
{
	(void)path, (void)create, (void)out;
	return missing(err);
}

int fleet_commit(struct fleet_store *store, struct err *err)
{
	(void)store;
	return missing(err);
}

void fleet_close(struct fleet_store *store)
{
	(void)store;
}

bool fleet_knows(struct fleet_store *store, const struct fleet_run *run)
{
	(void)store, (void)run;
	return false;
}

int fleet_line(struct fleet_store *store, const struct fleet_run *run,
    const struct fleet_judged *judged, struct str *line, struct err *err)
{
	(void)store, (void)run, (void)judged, (void)line;
	return missing(err);
}

int fleet_load(struct fleet_store *store, const char *line, struct err *err)
{
	(void)store, (void)line;
	return missing(err);
}

int fleet_ask(struct fleet_store *store, const char *sql, struct fleet_answer *out, struct err *err)
{
	(void)store, (void)sql, (void)out;
	return missing(err);
}

#else

#include <sqlite3.h>

#include "util/num.h"

#define APPLICATION 0x7768794f /* "whyO", as in schema.sql */
#define VERSION 1 /* of the tables, as in schema.sql */
#define LOADS 8u /* statements of load.sql */
#define BUSY_MS 10000 /* for another collector's commit */

struct fleet_store {
	sqlite3 *db;
	sqlite3_stmt *row, *error, *knows, *load[LOADS];
	size_t loads;
};

static int failed(struct fleet_store *s, struct err *err)
{
	int code = sqlite3_errcode(s->db);

	return err_set(err,
	    code == SQLITE_NOMEM      ? -ENOMEM
	    : code == SQLITE_FULL     ? -ENOSPC
	    : code == SQLITE_BUSY     ? -EBUSY
	    : code == SQLITE_CANTOPEN ? -ENOENT
	    : code == SQLITE_NOTADB   ? -EINVAL
				      : -EIO,
	    "%s: %s", sqlite3_db_filename(s->db, NULL), sqlite3_errmsg(s->db));
}

static void frame_name(sqlite3_context *context, int count, sqlite3_value **values)
{
	const char *function = (const char *)sqlite3_value_text(values[0]);
	struct str name = {0};

	(void)count;
	if (function)
		fleet_frame_name(function, &name);
	if (name.failed)
		sqlite3_result_error_nomem(context);
	else if (name.length)
		sqlite3_result_text(context, name.text, (int)name.length, SQLITE_TRANSIENT);
	str_free(&name);
}

static int64_t pragma(struct fleet_store *s, const char *sql)
{
	sqlite3_stmt *statement;
	int64_t value = -1;

	if (sqlite3_prepare_v2(s->db, sql, -1, &statement, NULL) == SQLITE_OK &&
	    sqlite3_step(statement) == SQLITE_ROW)
		value = sqlite3_column_int64(statement, 0);
	sqlite3_finalize(statement);
	return value;
}

static int prepare(struct fleet_store *s)
{
	const char *rest = (const char *)fleet_load_sql;
	int rc = sqlite3_prepare_v2(s->db, (const char *)fleet_row, -1, &s->row, NULL);

	if (rc == SQLITE_OK)
		rc = sqlite3_prepare_v2(s->db, (const char *)fleet_error, -1, &s->error, NULL);
	if (rc == SQLITE_OK)
		rc = sqlite3_prepare_v2(s->db,
		    "SELECT 1 FROM crash WHERE run = :run AND run_bytes = :bytes AND "
		    "run_changed_ns = :changed AND judge = :judge",
		    -1, &s->knows, NULL);
	while (rc == SQLITE_OK && *rest && s->loads < LOADS) {
		rc = sqlite3_prepare_v2(s->db, rest, -1, &s->load[s->loads], &rest);
		s->loads += s->load[s->loads] != NULL;
	}
	return rc;
}

/* Is it a database of ours, or an empty one that becomes one? */
static int check(struct fleet_store *s, const char *path, bool create, struct err *err)
{
	int64_t id = pragma(s, "PRAGMA application_id"), tables;

	if (id < 0)
		return failed(s, err);
	tables = pragma(s, "SELECT count(*) FROM sqlite_schema");
	if (create && !tables)
		return sqlite3_exec(s->db, (const char *)fleet_schema, NULL, NULL, NULL) ==
			       SQLITE_OK
			   ? 0
			   : failed(s, err);
	if (id != APPLICATION || pragma(s, "SELECT count(*) FROM sqlite_schema WHERE name = "
					   "'crash'") != 1)
		return err_set(
		    err, -EINVAL, "%s: this is no database of `whyoom fleet collect`", path);
	if (pragma(s, "PRAGMA user_version") != VERSION)
		return err_set(err, -EINVAL,
		    "%s: it is of another version of whyoom; collect into a new one", path);
	return 0;
}

int fleet_open(const char *path, bool create, struct fleet_store **out, struct err *err)
{
	int flags = create ? SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE : SQLITE_OPEN_READONLY, rc;
	struct fleet_store *s = calloc(1, sizeof(*s));

	if (!s)
		return err_set(err, -ENOMEM, "no memory for the database");
	if (sqlite3_open_v2(path ? path : ":memory:", &s->db, flags, NULL) != SQLITE_OK) {
		rc = err_set(err, -ENOENT, "%s: %s", path,
		    create ? sqlite3_errmsg(s->db)
			   : "there is no such database; make it by `whyoom fleet collect DIR`");
		fleet_close(s);
		return rc;
	}
	sqlite3_busy_timeout(s->db, BUSY_MS);
	sqlite3_create_function(s->db, "frame_name", 1, SQLITE_UTF8 | SQLITE_DETERMINISTIC, NULL,
	    frame_name, NULL, NULL);
	rc = !create || sqlite3_exec(s->db, "BEGIN IMMEDIATE", NULL, NULL, NULL) == SQLITE_OK
		 ? 0
		 : failed(s, err);
	if (!rc)
		rc = check(s, path, create, err);
	if (!rc && create && prepare(s) != SQLITE_OK)
		rc = failed(s, err);
	if (rc)
		fleet_close(s);
	else
		*out = s;
	return rc;
}

int fleet_commit(struct fleet_store *s, struct err *err)
{
	return sqlite3_exec(s->db, "COMMIT", NULL, NULL, NULL) == SQLITE_OK ? 0 : failed(s, err);
}

void fleet_close(struct fleet_store *s)
{
	sqlite3_finalize(s->row);
	sqlite3_finalize(s->error);
	sqlite3_finalize(s->knows);
	for (size_t i = 0; i < s->loads; i++)
		sqlite3_finalize(s->load[i]);
	sqlite3_close(s->db);
	free(s);
}

static void bind_text(sqlite3_stmt *statement, const char *name, const char *text)
{
	sqlite3_bind_text(
	    statement, sqlite3_bind_parameter_index(statement, name), text, -1, SQLITE_STATIC);
}

static void bind_run(sqlite3_stmt *statement, const struct fleet_run *run)
{
	sqlite3_reset(statement);
	bind_text(statement, ":run", run->path);
	bind_text(statement, ":judge", WHYOOM_VERSION);
	sqlite3_bind_int64(statement, sqlite3_bind_parameter_index(statement, ":bytes"),
	    (sqlite3_int64)run->bytes);
	sqlite3_bind_int64(statement, sqlite3_bind_parameter_index(statement, ":changed"),
	    (sqlite3_int64)run->changed_ns);
}

bool fleet_knows(struct fleet_store *s, const struct fleet_run *run)
{
	bool known;

	bind_run(s->knows, run);
	known = sqlite3_step(s->knows) == SQLITE_ROW;
	sqlite3_reset(s->knows);
	return known;
}

int fleet_line(struct fleet_store *s, const struct fleet_run *run,
    const struct fleet_judged *judged, struct str *line, struct err *err)
{
	sqlite3_stmt *statement = judged->error.length ? s->error : s->row;
	int rc;

	bind_run(statement, run);
	if (judged->error.length)
		bind_text(statement, ":error", judged->error.text);
	else {
		bind_text(statement, ":report", str_text(&judged->report));
		bind_text(statement, ":sites", str_text(&judged->sites));
	}
	if (sqlite3_step(statement) != SQLITE_ROW)
		rc = failed(s, err);
	else {
		str_valid(line, (const char *)sqlite3_column_text(statement, 0));
		rc = line->failed ? err_set(err, -ENOMEM, "no memory for a line") : 0;
	}
	sqlite3_reset(statement);
	return rc;
}

/* A line must at least name its run and the form that it has. */
static int check_line(struct fleet_store *s, const char *line, struct err *err)
{
	static const char sql[] =
	    "SELECT CASE WHEN NOT json_valid(:row) THEN 'not a line of JSON' "
	    "WHEN (:row ->> '$.schema') IS NOT 1 THEN 'not of schema 1' "
	    "WHEN typeof(:row ->> '$.id') <> 'text' OR typeof(:row ->> '$.run') <> 'text' "
	    "THEN 'without id and run' END";
	sqlite3_stmt *statement;
	const char *wrong = NULL;
	int rc = 0;

	if (sqlite3_prepare_v2(s->db, sql, -1, &statement, NULL) != SQLITE_OK)
		return failed(s, err);
	bind_text(statement, ":row", line);
	if (sqlite3_step(statement) == SQLITE_ROW)
		wrong = (const char *)sqlite3_column_text(statement, 0);
	if (wrong)
		rc = err_set(err, -EINVAL, "%s", wrong);
	sqlite3_finalize(statement);
	return rc;
}

int fleet_load(struct fleet_store *s, const char *line, struct err *err)
{
	int rc = check_line(s, line, err);

	for (size_t i = 0; i < s->loads && !rc; i++) {
		sqlite3_reset(s->load[i]);
		bind_text(s->load[i], ":row", line);
		if (sqlite3_step(s->load[i]) != SQLITE_DONE)
			rc = failed(s, err);
		sqlite3_reset(s->load[i]);
	}
	return rc;
}

static int take_columns(sqlite3_stmt *statement, struct fleet_answer *out)
{
	size_t count = (size_t)sqlite3_column_count(statement);

	out->columns = calloc(count + 1, sizeof(*out->columns));
	if (!out->columns)
		return -ENOMEM;
	for (; out->column_count < count; out->column_count++) {
		const char *name = sqlite3_column_name(statement, (int)out->column_count);

		out->columns[out->column_count] = strdup(name ? name : "?");
		if (!out->columns[out->column_count])
			return -ENOMEM;
	}
	return 0;
}

static int take_row(sqlite3_stmt *statement, struct fleet_answer *out, size_t *room)
{
	size_t need = (out->row_count + 1) * out->column_count;
	struct fleet_cell *row;

	if (need > *room) {
		size_t more = num_most(need, *room * 2);
		struct fleet_cell *cells = realloc(out->cells, more * sizeof(*cells));

		if (!cells)
			return -ENOMEM;
		memset(cells + *room, 0, (more - *room) * sizeof(*cells));
		out->cells = cells;
		*room = more;
	}
	row = out->cells + out->row_count++ * out->column_count;
	for (size_t i = 0; i < out->column_count; i++) {
		int type = sqlite3_column_type(statement, (int)i);
		const unsigned char *text = sqlite3_column_text(statement, (int)i);

		row[i].number = type == SQLITE_INTEGER || type == SQLITE_FLOAT;
		row[i].text = text ? strdup((const char *)text) : NULL;
		if (text && !row[i].text)
			return -ENOMEM;
	}
	return 0;
}

int fleet_ask(struct fleet_store *s, const char *sql, struct fleet_answer *out, struct err *err)
{
	sqlite3_stmt *statement = NULL;
	size_t room = 0;
	int rc, step = SQLITE_DONE;

	*out = (struct fleet_answer){0};
	if (sqlite3_prepare_v2(s->db, sql, -1, &statement, NULL) != SQLITE_OK)
		return failed(s, err);
	if (!statement || !sqlite3_stmt_readonly(statement)) {
		sqlite3_finalize(statement);
		return err_set(err, -EINVAL, "a question is one statement that reads: SELECT ...");
	}
	rc = take_columns(statement, out);
	while (!rc && (step = sqlite3_step(statement)) == SQLITE_ROW)
		rc = take_row(statement, out, &room);
	if (rc)
		err_set(err, rc, "no memory for the answer");
	else if (step != SQLITE_DONE)
		rc = failed(s, err);
	sqlite3_finalize(statement);
	if (rc)
		fleet_answer_free(out);
	return rc;
}

#endif

void fleet_answer_free(struct fleet_answer *answer)
{
	for (size_t i = 0; i < answer->row_count * answer->column_count; i++)
		free(answer->cells[i].text);
	for (size_t i = 0; i < answer->column_count; i++)
		free(answer->columns[i]);
	free(answer->cells);
	free(answer->columns);
	*answer = (struct fleet_answer){0};
}
