/*
 * store.h - the runs of many hosts as rows of an SQLite database, and the questions that are asked
 * of them. sql/ has every statement; docs/fleet.md describes the rows.
 */
#ifndef ANALYZER_FLEET_STORE_H
#define ANALYZER_FLEET_STORE_H

#include "fleet/runs.h"
#include "report/fleet.h"

struct fleet_store;

/* Open the database; NULL: in memory, empty. `create`: make it if it is not there; else it is only
 * read. 0; negative errno with err. The caller calls fleet_close(). */
int fleet_open(const char *path, bool create, struct fleet_store **out, struct err *err);
/* Changes since fleet_open() become permanent, all at once. 0; negative errno with err. */
int fleet_commit(struct fleet_store *store, struct err *err);
/* Without fleet_commit() the database is as it was. */
void fleet_close(struct fleet_store *store);

/* True: the run was judged by this version of whyoom, and has not changed since. */
bool fleet_knows(struct fleet_store *store, const struct fleet_run *run);
/* Append a judged run as one line of JSON, without a line feed. 0; negative errno with err. */
int fleet_line(struct fleet_store *store, const struct fleet_run *run,
    const struct fleet_judged *judged, struct str *line, struct err *err);
/* Take such a line in; a run that is there already is replaced. 0; negative errno with err: -EINVAL
 * says what is wrong with the line. */
int fleet_load(struct fleet_store *store, const char *line, struct err *err);

struct fleet_question {
	const char *name; /* "first-seen" */
	const char *sql; /* its first line is a comment, the question */
};
/* The questions, until one without a name. */
extern const struct fleet_question fleet_questions[];
/* The statements that create the tables. */
extern const char *const fleet_tables;

/* Ask; the SQL is one statement that reads. The caller calls fleet_answer_free(). 0; negative
 * errno with err. */
int fleet_ask(
    struct fleet_store *store, const char *sql, struct fleet_answer *out, struct err *err);
void fleet_answer_free(struct fleet_answer *answer);

/* The name of a function as it is the same in another build: without template arguments,
 * parameters and the compiler's suffixes. */
void fleet_frame_name(const char *function, struct str *out);

#endif
