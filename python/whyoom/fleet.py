"""fleet.py - the lines of `whyoom fleet collect --jsonl` in DuckDB: the same tables as in the
database of `whyoom fleet collect`, and the same questions. Needs the package duckdb.

    whyoom.fleet.ask("first-seen", "node*.jsonl")
    python -m whyoom.fleet ask first-seen node*.jsonl"""

import argparse
import glob
import json
import sys

from whyoom import _program

# As analyzer/fleet/sql/schema.sql has them.
TEXT = ("id run judge host image version pod namespace node model started day command ended "
        "failure space limit_kind cause runner_up sentence fix blame_function blame_file stack "
        "error")
WHOLE = ("run_bytes run_changed_ns pid end_code requested_bytes limit_bytes free_bytes blame_line "
         "blame_bytes lost_events")
REAL = ("seconds failure_seconds confidence forecast_seconds forecast_low_seconds "
        "forecast_high_seconds")
LISTS = {"labels": "JSON", "schema": "BIGINT",
         "ledger": "STRUCT(space VARCHAR, class VARCHAR, bytes BIGINT)[]",
         "sites": 'STRUCT("function" VARCHAR, file VARCHAR, line BIGINT, live_bytes BIGINT, '
                  "live_blocks BIGINT)[]"}
MEMBERS = {**dict.fromkeys(TEXT.split(), "VARCHAR"), **dict.fromkeys(WHOLE.split(), "BIGINT"),
           **dict.fromkeys(REAL.split(), "DOUBLE"), **LISTS}

# The last line of an id counts, as in `collect`; an error goes when its run was judged after it.
TABLES = """
CREATE TABLE crash AS SELECT * EXCLUDE (nth, schema, ledger, sites) FROM (
    SELECT *, row_number() OVER (PARTITION BY id ORDER BY nth DESC) AS newest FROM lines l
    WHERE error IS NULL OR NOT EXISTS (SELECT 1 FROM lines m WHERE m.run = l.run AND m.nth > l.nth))
    WHERE newest = 1;
ALTER TABLE crash DROP newest;
CREATE TABLE last AS SELECT id, max(nth) AS nth FROM lines GROUP BY id;
CREATE TABLE ledger AS SELECT id AS crash, r.space, r.class, r.bytes
    FROM (SELECT id, unnest(ledger) AS r FROM lines JOIN last USING (id, nth));
CREATE TABLE site AS SELECT id AS crash, r."function", r.file, r.line, r.live_bytes, r.live_blocks
    FROM (SELECT id, unnest(sites) AS r FROM lines JOIN last USING (id, nth));
CREATE TABLE forecast AS SELECT id AS crash, seconds AS at_seconds,
    last(forecast_seconds ORDER BY nth) AS seconds, last(forecast_low_seconds ORDER BY nth)
    AS low_seconds, last(forecast_high_seconds ORDER BY nth) AS high_seconds
    FROM lines WHERE forecast_seconds IS NOT NULL GROUP BY ALL;
DROP TABLE lines;
DROP TABLE last;
"""


def question(name):
    """The SQL of a question; `whyoom fleet ask` lists them."""
    return _program.run("fleet", "ask", "--sql", name)


def connect(*lines, database=":memory:"):
    """A connection of DuckDB with the tables crash, ledger, site and forecast, made from files of
    lines, by path or pattern. Raises Error where a file is missing or no such line."""
    import duckdb
    paths = [p for pattern in lines for p in sorted(glob.glob(pattern)) or [pattern]]
    connection = duckdb.connect(database)
    try:
        # one file after the other: which line of an id is the last is told by this order
        connection.execute(
            "CREATE TABLE lines AS SELECT *, row_number() OVER () AS nth FROM "
            "read_json(?, format = 'newline_delimited', columns = %s)"
            % ("{" + ", ".join(f"{k}: '{v}'" for k, v in MEMBERS.items()) + "}"), [paths])
        wrong, = connection.execute("SELECT count(*) FROM lines WHERE id IS NULL OR "
                                    "schema IS DISTINCT FROM 1").fetchone()
        if wrong:
            raise _program.Error(f"{wrong} lines are none of `whyoom fleet collect --jsonl`")
        connection.execute(TABLES)
    except duckdb.Error as error:
        connection.close()
        raise _program.Error(str(error)) from error
    except _program.Error:
        connection.close()
        raise
    return connection


def ask(name, *lines):
    """The answer to a question, or to a SELECT of your own: a list of dictionaries."""
    import duckdb
    sql = name if " " in name.strip() else question(name)
    with connect(*lines) as connection:
        try:
            found = connection.execute(sql)
        except duckdb.Error as error:
            raise _program.Error(str(error)) from error
        columns = [c[0] for c in found.description]
        return [dict(zip(columns, row)) for row in found.fetchall()]


def main(arguments=None):
    parser = argparse.ArgumentParser(prog="python -m whyoom.fleet", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("command", choices=["ask"])
    parser.add_argument("question", help="a question of `whyoom fleet ask`, or a SELECT")
    parser.add_argument("lines", nargs="+", help="files that `whyoom fleet collect --jsonl` wrote")
    a = parser.parse_args(arguments)
    try:
        for row in ask(a.question, *a.lines):
            print(json.dumps(row))
    except (_program.Error, ImportError) as error:
        print(f"whyoom: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
