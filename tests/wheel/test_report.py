"""Reports as objects, against the schema that ships with them and against real traces."""

import glob
import json
import os

from conftest import SOURCE

SHAPES = """
import dataclasses, json, sys, types, typing
from whyoom import _report, _shape
schema = json.load(open(sys.argv[1]))
problems, seen = [], 0

def resolve(s):
    while "$ref" in s:
        s = schema["$defs"][s["$ref"].rsplit("/", 1)[1]]
    for one in s.get("oneOf", ()):
        if one.get("type") != "null":
            return resolve(one)
    return s

def walk(cls, s, path):
    global seen
    s = resolve(s)
    hints = typing.get_type_hints(cls)
    fields = {f.metadata.get("key", f.name): hints[f.name]
              for f in dataclasses.fields(cls) if f.name != "raw"}
    if set(fields) != set(s["properties"]):
        problems.append((path, sorted(set(fields) ^ set(s["properties"]))))
    for key in set(fields) & set(s["properties"]):
        seen += 1
        kind, of = fields[key], resolve(s["properties"][key])
        if isinstance(kind, types.UnionType):
            kind, = (k for k in typing.get_args(kind) if k is not type(None))
        if typing.get_origin(kind) is tuple:
            kind, of = typing.get_args(kind)[0], resolve(of["items"])
        if dataclasses.is_dataclass(kind):
            walk(kind, of, path + "." + key)
            continue
        types_of = of.get("type", "string")
        types_of = set([types_of] if isinstance(types_of, str) else types_of) - {"null"}
        name = {"str": "string", "int": "integer", "float": "number", "bool": "boolean",
                "dict": "object"}[kind.__name__]
        if "enum" not in of and "const" not in of and types_of != {name}:
            problems.append((path + "." + key, name, types_of))

walk(_report.Report, schema, "report")
print(problems, seen > 150)
"""


def test_follows_the_schema(installed):
    schema = glob.glob(installed.folder
                       + "/lib/python*/site-packages/whyoom/share/whyoom/report-schema.json")[0]
    r = installed.script(SHAPES, schema)
    assert r.stdout == "[] True\n", r.stdout + r.stderr


READ = """
import dataclasses, json, sys, whyoom
for path in sys.argv[1:]:
    r = whyoom.report(path)
    assert r == whyoom.Report.from_json(json.dumps(r.raw))
    back = lambda x: ([back(i) for i in x] if isinstance(x, tuple) else
                      x.raw if dataclasses.is_dataclass(x) else x)
    for f in dataclasses.fields(r):
        if f.name != "raw" and f.name in r.raw:
            assert back(getattr(r, f.name)) == r.raw[f.name], f.name
    assert r.cause == r.raw["verdict"]["cause"] and str(r.blame) if r.blame else True
    rows = r.tables()
    assert len(rows["processes"]) == len(r.processes)
    assert sum(x["bytes"] for x in rows["ledger"]) == sum(
        x.bytes for l in r.ledger for x in l.rows)
    print(r.cause)
"""


def test_real_traces(installed):
    """Old ones, of the host, of devices, sampled, with checkpoints and with damage."""
    traces = sorted(p for p in glob.glob(SOURCE + "/tests/golden/v*/*") if os.path.isdir(p))
    assert len(traces) > 5
    r = installed.script(READ, *traces)
    assert (r.returncode, r.stdout.count("\n")) == (0, len(traces)), r.stderr


def test_frozen_and_forgiving(installed):
    trace = sorted(glob.glob(SOURCE + "/tests/golden/v2/*"))[0]
    r = installed.script("""
import sys, json, whyoom, dataclasses, os
r = whyoom.report(sys.argv[1])
try:
    r.cause = 3
except AttributeError as e:
    print("frozen")
raw = dict(r.raw, tomorrow=1, verdict=dict(r.raw["verdict"], mood="good"))
del raw["what_if"]
n = whyoom.Report.from_json(raw)
print(n.raw["tomorrow"], n.verdict.raw["mood"], n.what_if)
try:
    n.text()
except whyoom.Error as e:
    print(e)
os.chdir("/")
print(r.text() == str(r) != "", r.html().startswith("<!doctype html>"))
shown = r._repr_html_()
import html, re
page = re.fullmatch('<iframe sandbox="allow-scripts" style="[^"]*" srcdoc="([^"]*)"></iframe>', shown)
print(html.unescape(page[1]) == r.html())
""", os.path.relpath(trace, "/var/tmp"), cwd="/var/tmp")
    assert r.stdout == ("frozen\n1 good ()\nthis report was made from JSON: it does not know its "
                        "trace\nTrue True\nTrue\n"), r.stdout + r.stderr


def test_errors_are_whyooms(installed, work):
    with open(work + "/broken.whyoom", "w") as f:
        f.write("no trace")
    r = installed.script("""
import sys, whyoom
for path in ("/nonexistent", sys.argv[1]):
    try:
        whyoom.report(path)
    except whyoom.Error as e:
        print(e.status, e)
try:
    whyoom.report(sys.argv[2], timeout=0.0001)
except whyoom.Error as e:
    print(e)
""", work + "/broken.whyoom", sorted(glob.glob(SOURCE + "/tests/golden/v2/*"))[0])
    lines = r.stdout.splitlines()
    assert lines[0] == "1 /nonexistent: No such file or directory", r.stdout + r.stderr
    said = installed.run(installed.whyoom, "report", work + "/broken.whyoom").stderr.strip()
    assert lines[1] == "1 " + said.removeprefix("whyoom: ")
    assert lines[2] == "whyoom report took longer than 0.0001 s"


def test_a_program_that_is_recorded_asks(installed, work):
    """What it starts to be told is not recorded itself."""
    trace = sorted(glob.glob(SOURCE + "/tests/golden/v2/*"))[0]
    r = installed.script("import sys, whyoom; print(whyoom.report(sys.argv[1]).schema)", trace,
                         trace=work + "/t")
    assert r.stdout == "1\n", r.stderr
    report = json.loads(installed.run(installed.whyoom, "report", "--format", "json",
                                      work + "/t").stdout)
    assert len(report["processes"]) == 1
    text = installed.run(installed.whyoom, "report", work + "/t").stdout
    assert "not recorded" not in text, text
