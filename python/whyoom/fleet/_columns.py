"""_columns.py - the tables of a fleet and their columns, as `whyoom fleet` has them in SQL, in the
words of the other engines. The one place that knows how a line of `collect --jsonl` and a row of
Parquet become those tables. Runs no engine."""

import functools
import re
import sqlite3

from whyoom import _program

# SQLite's types in other words.
DUCKDB = {"TEXT": "VARCHAR", "INTEGER": "BIGINT", "REAL": "DOUBLE"}
SPARK = {"TEXT": "STRING", "INTEGER": "BIGINT", "REAL": "DOUBLE"}
# The tables whose rows a line carries, by the line's member that is an array of them.
LISTS = {"ledger": "ledger", "sites": "site"}
PARTITIONS = ("day", "image")
# A line written later is the newer one of an id; in Parquet those of a later round are.
ROUND = "round"


def question(name):
    """The SQL of a question; `whyoom fleet ask` lists them."""
    return _program.run("fleet", "ask", "--sql", name)


@functools.lru_cache
def tables():
    """(version, {table: {column: type}}) with SQLite's types."""
    db = sqlite3.connect(":memory:")
    try:
        db.executescript(question("schema"))
        names = [n for n, in db.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        columns = {n: {c[1]: c[2] for c in db.execute(f"PRAGMA table_info({n})")} for n in names}
        return db.execute("PRAGMA user_version").fetchone()[0], columns
    finally:
        db.close()


def members():
    """Of a line: {name: type}, where a list's type is the columns of its rows."""
    columns = tables()[1]
    lists = {member: {c: t for c, t in columns[table].items() if c != "crash"}
             for member, table in LISTS.items()}
    return {**columns["crash"], "schema": "INTEGER", **lists}


def row_members():
    """Of a row of Parquet."""
    return {**members(), ROUND: "INTEGER"}


def in_duckdb(kind):
    """A member's type."""
    if isinstance(kind, dict):
        return "STRUCT(%s)[]" % ", ".join(f'"{c}" {DUCKDB[t]}' for c, t in kind.items())
    return DUCKDB[kind]


def in_spark(kind):
    if isinstance(kind, dict):
        return "ARRAY<STRUCT<%s>>" % ", ".join(f"`{c}`: {SPARK[t]}" for c, t in kind.items())
    return SPARK[kind]


def spark_schema(wanted):
    return ", ".join(f"`{name}` {in_spark(kind)}" for name, kind in wanted.items())


def for_spark(sql):
    """A question in Spark's dialect: 100.0 is a decimal there, and double elsewhere. Texts and
    comments stay as they are."""
    return re.sub(r"('(?:[^']|'')*'|--[^\n]*)|(?<![\w.])(\d+\.\d+)(?![\w.])",
                  lambda m: m[1] or m[2] + "D", sql)


def statements(unnest):
    """{table: SELECT} over `lines`: members and `nth`, by which lines follow each other. The newest
    line of an id counts, as in `collect`; an error goes when its run was judged after it. `unnest`
    is the engine's word for making rows of an array."""
    columns = tables()[1]
    names = ", ".join(columns["crash"])
    made = {"newest": """SELECT id, nth FROM (
        SELECT id, nth, row_number() OVER (PARTITION BY id ORDER BY nth DESC) AS age FROM lines l
        WHERE error IS NULL
              OR NOT EXISTS (SELECT 1 FROM lines m WHERE m.run = l.run AND m.nth > l.nth))
        WHERE age = 1""",
            "crash": f"SELECT {names} FROM lines JOIN newest USING (id, nth)"}
    for member, table in LISTS.items():
        inner = ", ".join("r." + c for c in columns[table] if c != "crash")
        made[table] = (f"SELECT id AS crash, {inner} "
                       f"FROM (SELECT id, {unnest}({member}) AS r "
                       "FROM lines JOIN newest USING (id, nth))")
    made["forecast"] = """SELECT id AS crash, seconds AS at_seconds, forecast_seconds AS seconds,
        forecast_low_seconds AS low_seconds, forecast_high_seconds AS high_seconds FROM (
            SELECT *, row_number() OVER (PARTITION BY id, seconds ORDER BY nth DESC) AS age
            FROM lines WHERE forecast_seconds IS NOT NULL) WHERE age = 1"""
    return made
