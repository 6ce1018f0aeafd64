"""Many hosts' runs as one table, beside the program `whyoom fleet`: its tables and questions on
DuckDB and Spark, and the judging of traces on Spark. docs/fleet.md describes it.

    whyoom.fleet.ask("first-seen", "node*.jsonl")
    whyoom.fleet.judge("s3a://crashes/traces", out="s3a://crashes/fleet", on="spark")
    whyoom-fleet ask first-seen node*.jsonl

A source of rows is a file of lines that `whyoom fleet collect --jsonl` wrote, by path or pattern,
or a folder of Parquet that judge() wrote."""

from whyoom.fleet import _duckdb
from whyoom.fleet._columns import question

__all__ = ["ask", "ask_all", "connect", "judge", "main", "question"]

connect = _duckdb.connect


def ask(name, *sources, on="duckdb", **options):
    """The answer to a question, or to a SELECT of your own: a list of dictionaries. `on`: "duckdb",
    or "spark", whose options are those of _spark.session(). Raises Error."""
    return ask_all([name], *sources, on=on, **options)[name]


def ask_all(names, *sources, on="duckdb", **options):
    """The answers to several questions, for which the sources are read once: {question: rows}."""
    sql = {name: name if len(name.split()) > 1 else question(name) for name in names}
    if on == "spark":
        from whyoom.fleet import _spark
        return _spark.ask(sql, *sources, **options)
    return _duckdb.ask(sql, *sources)


def judge(*sources, out, on="local", **options):
    """Judge each run below the sources and add a row of it to the folder of Parquet `out`. What is
    in it already is not judged again. Returns (judged, failed, known): how many runs. Options are
    those of _local.judge() and _spark.judge(). Raises Error."""
    if on == "spark":
        from whyoom.fleet import _spark
        return _spark.judge(sources, out, **options)
    from whyoom.fleet import _local
    return _local.judge(sources, out, **options)


def main(arguments=None):
    """The command `whyoom-fleet`."""
    from whyoom.fleet import _command
    return _command.main(arguments)
