"""_duckdb.py - the tables of a fleet in DuckDB. Needs the package duckdb."""

import glob
import os

from whyoom import _program
from whyoom.fleet import _columns

# In a table of _table.py: OUT/day=2026-11-30/image=chat%3A1.4/NAME.parquet
PARQUET = "*/*/*.parquet"


def read_parquet(folder):
    pattern = os.path.join(glob.escape(folder), PARQUET)
    if not glob.glob(pattern):
        raise _program.Error(f"{folder}: no table of judged runs")
    types = ", ".join(f"'{p}': VARCHAR" for p in _columns.PARTITIONS)
    columns = ", ".join(f'"{name}"' for name in _columns.members())
    return (f"SELECT {columns}, row_number() OVER (ORDER BY {_columns.ROUND}, run) AS nth FROM "
            f"read_parquet(?, hive_partitioning = true, hive_types = {{{types}}})", [pattern])


def read_lines(patterns):
    paths = [p for pattern in patterns for p in sorted(glob.glob(pattern)) or [pattern]]
    kinds = {name: _columns.in_duckdb(kind) for name, kind in _columns.members().items()}
    kinds["labels"] = "JSON"
    # one file after the other: which line of an id is the last is told by this order
    return ("SELECT *, row_number() OVER () AS nth FROM "
            "read_json(?, format = 'newline_delimited', columns = %s)"
            % ("{" + ", ".join(f"{k}: '{v}'" for k, v in kinds.items()) + "}"), [paths])


def make_tables(connection, sources):
    query, values = (read_parquet(sources[0]) if len(sources) == 1 and os.path.isdir(sources[0])
                     else read_lines(sources))
    connection.execute("CREATE TABLE lines AS " + query, values)
    wrong, = connection.execute("SELECT count(*) FROM lines WHERE id IS NULL OR "
                                f"schema IS DISTINCT FROM {_columns.tables()[0]}").fetchone()
    if wrong:
        raise _program.Error(f"{wrong} lines are none of `whyoom fleet collect --jsonl`")
    for table, select in _columns.statements("unnest").items():
        connection.execute(f"CREATE TABLE {table} AS {select}")
    connection.execute("DROP TABLE newest; DROP TABLE lines")


def connect(*sources, database=":memory:"):
    """A connection of DuckDB with the tables crash, ledger, site and forecast, made from files of
    lines, by path or pattern, or from one folder that judge() wrote. Raises Error where a file is
    missing or no such line."""
    import duckdb
    connection = duckdb.connect(database)
    connection.execute("SET enable_progress_bar = false")  # it would stand among the rows
    try:
        make_tables(connection, [os.fspath(s) for s in sources])
    except duckdb.Error as error:
        connection.close()
        raise _program.Error(str(error)) from error
    except _program.Error:
        connection.close()
        raise
    return connection


def rows(connection, sql):
    found = connection.execute(sql)
    columns = [c[0] for c in found.description]
    return [dict(zip(columns, row)) for row in found.fetchall()]


def ask(questions, *sources):
    """The rows of each SELECT of {name: sql}, by its name: a list of dictionaries."""
    import duckdb
    with connect(*sources) as connection:
        connection.execute("SET default_null_order = 'nulls_first_on_asc_last_on_desc'")  # SQLite's
        try:
            return {name: rows(connection, sql) for name, sql in questions.items()}
        except duckdb.Error as error:
            raise _program.Error(str(error)) from error
