/*
 * sqlite_schema.h - the tables of `whyoom export --format sqlite`. Times are ns since the process's
 * start, sizes are bytes. A stack is a node of a tree: its frame, and the node that called it.
 */
#ifndef ANALYZER_EXPORT_SQLITE_SCHEMA_H
#define ANALYZER_EXPORT_SQLITE_SCHEMA_H

/* application_id is "whyO"; a change of a column's meaning raises user_version. */
static const char sqlite_schema[] =
    "PRAGMA application_id=0x7768794f;"
    "PRAGMA user_version=1;"
    "CREATE TABLE meta(key TEXT PRIMARY KEY, value ANY) STRICT;"
    "CREATE TABLE space(id INTEGER PRIMARY KEY, name TEXT NOT NULL) STRICT;"
    "CREATE TABLE frame(id INTEGER PRIMARY KEY, function TEXT NOT NULL, file TEXT, line INTEGER,"
    " module TEXT, python INTEGER NOT NULL) STRICT;"
    "CREATE TABLE stack(id INTEGER PRIMARY KEY, parent INTEGER REFERENCES stack(id),"
    " frame INTEGER NOT NULL REFERENCES frame(id), depth INTEGER NOT NULL) STRICT;"
    "CREATE TABLE sum(space INTEGER NOT NULL REFERENCES space(id), at TEXT NOT NULL,"
    /* own: the frame to blame */
    " t_ns INTEGER NOT NULL, stack INTEGER REFERENCES stack(id),"
    " own INTEGER REFERENCES frame(id), live_bytes INTEGER NOT NULL,"
    " live_blocks INTEGER NOT NULL, peak_bytes INTEGER NOT NULL, total_bytes INTEGER NOT NULL,"
    " total_blocks INTEGER NOT NULL, temporary_bytes INTEGER NOT NULL) STRICT;"
    "CREATE TABLE event(number INTEGER NOT NULL, t_ns INTEGER NOT NULL, kind TEXT NOT NULL,"
    " space INTEGER NOT NULL REFERENCES space(id), thread INTEGER NOT NULL, task INTEGER,"
    " address INTEGER NOT NULL, size INTEGER NOT NULL, stack INTEGER REFERENCES stack(id))"
    " STRICT;"
    /* bytes, blocks: what a sampled block stands for */
    "CREATE TABLE block(id INTEGER PRIMARY KEY, space INTEGER NOT NULL REFERENCES space(id),"
    " address INTEGER NOT NULL, size INTEGER NOT NULL, bytes INTEGER NOT NULL,"
    " blocks INTEGER NOT NULL, stack INTEGER REFERENCES stack(id), born_ns INTEGER NOT NULL,"
    " died_ns INTEGER, thread INTEGER NOT NULL, task INTEGER) STRICT;"
    "CREATE TABLE curve(space INTEGER NOT NULL REFERENCES space(id), kind TEXT NOT NULL,"
    " t_ns INTEGER NOT NULL, bytes INTEGER NOT NULL) STRICT;"
    "CREATE TABLE mark(t_ns INTEGER NOT NULL, phase TEXT, what TEXT, id INTEGER NOT NULL,"
    " name TEXT, thread INTEGER NOT NULL, tokens INTEGER) STRICT;"
    "CREATE TABLE refusal(t_ns INTEGER NOT NULL, space INTEGER NOT NULL REFERENCES space(id),"
    " size INTEGER NOT NULL, call TEXT, thread INTEGER NOT NULL,"
    " stack INTEGER REFERENCES stack(id)) STRICT;"
    "CREATE TABLE verdict(cause TEXT, confidence REAL NOT NULL, summary TEXT,"
    " t_ns INTEGER NOT NULL, requested_bytes INTEGER NOT NULL, limit_bytes INTEGER NOT NULL,"
    " function TEXT, file TEXT, line INTEGER) STRICT;"
    "CREATE TABLE fix(number INTEGER PRIMARY KEY, text TEXT) STRICT;"
    "CREATE VIEW live_block AS SELECT * FROM block WHERE died_ns IS NULL;"
    "CREATE VIEW by_line AS SELECT space.name AS space, function, file, line,"
    " sum(live_bytes) AS live_bytes, sum(live_blocks) AS live_blocks,"
    " sum(peak_bytes) AS peak_bytes, sum(total_bytes) AS total_bytes,"
    " sum(total_blocks) AS total_blocks, sum(temporary_bytes) AS temporary_bytes"
    " FROM sum JOIN space ON space.id = sum.space LEFT JOIN frame"
    " ON frame.id = sum.own GROUP BY 1, 2, 3, 4;";

static const char sqlite_indexes[] = "CREATE INDEX block_stack ON block(stack);"
				     "CREATE INDEX block_death ON block(died_ns);"
				     "CREATE INDEX sum_space ON sum(space, stack);"
				     "ANALYZE;";

#endif
