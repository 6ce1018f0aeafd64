"""_command.py - the command `whyoom-fleet`, which is `python -m whyoom.fleet`, too."""

import argparse
import json
import os
import sys

from whyoom import _program, fleet
from whyoom.fleet import _local

ABOUT = """Many hosts' runs as one table, on this machine or on Spark.

judge   judges each run below the sources and adds a row of it to a folder of Parquet, by day and
        image. What is there already is not judged again, so that it goes on where it was ended.
ask     answers a question of `whyoom fleet ask` from such a folder, or from lines that
        `whyoom fleet collect --jsonl` wrote.
lines   prints the rows of such a folder as those lines, for `whyoom fleet collect -`.
"""


def positive(text):
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"at least 1, not {number}")
    return number


def setting(text):
    name, separator, value = text.partition("=")
    if not separator or not name:
        raise argparse.ArgumentTypeError(f"KEY=VALUE, not '{text}'")
    return name, value


def parser():
    made = argparse.ArgumentParser(prog="whyoom-fleet", description=ABOUT,
                                   formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = made.add_subparsers(dest="command", required=True, metavar="COMMAND")
    judge = commands.add_parser("judge", help="judge runs into a folder of Parquet")
    judge.add_argument("sources", nargs="+", metavar="SOURCE",
                       help="a folder, or with Spark also a URL, such as s3a://BUCKET/PATH")
    judge.add_argument("-o", "--output", required=True, metavar="OUT", help="the folder of Parquet")
    judge.add_argument("--on", choices=["local", "spark"], default="local",
                       help="what judges (default: %(default)s)")
    judge.add_argument("-j", "--jobs", type=positive, metavar="N",
                       help="local: judge N runs at once (default: one for each processor)")
    judge.add_argument("--timeout", type=positive, default=_local.SECONDS, metavar="SECONDS",
                       help="give up a run after that (default: %(default)s)")
    judge.add_argument("--round", type=positive, metavar="RUNS",
                       help="keep what was judged after that many runs "
                       f"(default: {_local.ROUND} a processor)")
    ask = commands.add_parser("ask", help="answer a question")
    ask.add_argument("question", help="a question of `whyoom fleet ask`, a SELECT, or FILE.sql")
    ask.add_argument("sources", nargs="+", metavar="SOURCE",
                     help="files of lines, or the folder that judge wrote")
    ask.add_argument("--on", choices=["duckdb", "spark"], default="duckdb",
                     help="what answers (default: %(default)s)")
    for command in judge, ask:
        command.add_argument("--master", metavar="URL", help="of Spark (default: spark-submit's, "
                             "else this machine's processors)")
        command.add_argument("--conf", type=setting, action="append", default=[],
                             metavar="KEY=VALUE", help="a setting of Spark")
    lines = commands.add_parser("lines", help="print the rows as lines of JSON")
    lines.add_argument("folder", metavar="OUT", help="the folder that judge wrote")
    return made


def spark_options(arguments):
    return dict(master=arguments.master, conf=arguments.conf) if arguments.on == "spark" else {}


def tell(text):
    print("whyoom: " + text, file=sys.stderr, flush=True)


def judge(a):
    options = spark_options(a) if a.on == "spark" else {"jobs": a.jobs}
    judged, failed, known = fleet.judge(*a.sources, out=a.output, on=a.on, seconds=a.timeout,
                                        runs_a_round=a.round, tell=tell, **options)
    tell(f"{judged} runs judged" + (f", of which {failed} cannot be read" if failed else "")
         + (f", {known} known before" if known else "") + f"; {a.output}")


def ask(a):
    question = a.question
    if question.endswith(".sql"):
        with open(question) as f:
            question = f.read()
    for row in fleet.ask(question, *a.sources, on=a.on, **spark_options(a)):
        print(json.dumps(row, ensure_ascii=False, default=float))


def lines(a):
    for line in _local.lines(a.folder):
        print(line)


def main(arguments=None):
    a = parser().parse_args(arguments)
    try:
        {"judge": judge, "ask": ask, "lines": lines}[a.command](a)
        sys.stdout.flush()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except (_program.Error, ImportError, OSError) as error:
        print(f"whyoom: {error}", file=sys.stderr)
        return 1
    return 0
