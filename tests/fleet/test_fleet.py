"""`whyoom fleet`: runs of several hosts become rows, once each, and questions are answered."""
import json
import os
import pathlib
import re
import shutil
import sqlite3
import subprocess
import sys

import pytest

jsonschema = pytest.importorskip("jsonschema")

WHYOOM = os.environ["WHYOOM_EXE"]
SCHEMA = pathlib.Path(WHYOOM).parent.parent / "report" / "fleet-schema.json"
LEAKS = """
import sys
kept = []
def serve(size):
    kept.append(bytearray(size))
    return bytearray(size * 3)
try:
    while True:
        serve(int(sys.argv[1]))
except MemoryError:
    pass
"""


def whyoom(*words, cwd=None, env=None, stdin=None):
    return subprocess.run([WHYOOM, *map(str, words)], capture_output=True, text=True, timeout=120,
                          cwd=cwd, env=env, input=stdin)


def ask(folder, *words):
    done = whyoom("fleet", "ask", *words, "--format", "json", cwd=folder)
    assert done.returncode == 0, done.stderr
    answer = json.loads(done.stdout)
    jsonschema.validate(answer, json.loads(SCHEMA.read_text()))
    assert all(list(row) == answer["columns"] for row in answer["rows"])
    return answer["rows"]


@pytest.fixture(scope="module")
def traces(tmp_path_factory):
    """Three runs: version 1 and 2 of a leaking server, which leaks more in 2, and a healthy one."""
    top = tmp_path_factory.mktemp("traces")
    (top / "leaks.py").write_text(LEAKS)
    for name, version, node, size in (("a", "1", "n1", 100000), ("b", "2", "n1", 300000),
                                      ("c", "2", "n2", 300000)):
        done = subprocess.run(
            [WHYOOM, "run", "-o", top / name, "--label", f"image=chat:{version}", "--label",
             f"version={version},model=tiny", "--", "prlimit", "--as=400000000",
             sys.executable, top / "leaks.py", str(size)],
            env=dict(os.environ, POD_NAME=f"chat-{name}", NODE_NAME=node), capture_output=True,
            text=True, timeout=120)
        assert (top / name).is_dir(), done.stderr
    (top / "inner").mkdir()
    subprocess.run([WHYOOM, "run", "-o", top / "inner" / "d", "--", sys.executable, "-c",
                    "x = bytearray(3000000)"], timeout=60, check=True)
    return top


@pytest.fixture(scope="module")
def fleet(traces, tmp_path_factory):
    folder = tmp_path_factory.mktemp("fleet")
    done = whyoom("fleet", "collect", traces, cwd=folder)
    assert done.returncode == 0, done.stderr
    assert "4 runs judged; fleet.db" in done.stderr
    return folder


def test_labels_are_in_the_report(traces):
    report = json.loads(whyoom("report", traces / "a", "--format", "json").stdout)
    assert report["labels"] == {"image": "chat:1", "version": "1", "model": "tiny",
                                "pod": "chat-a", "node": "n1"}
    assert report["host"] == os.uname().nodename


@pytest.mark.parametrize("wrong", ["image", "1x=2", "=x", "a=1,b", "a b=c", "a=" + "x" * 1100])
def test_wrong_labels_are_refused(tmp_path, wrong):
    done = whyoom("run", "-o", tmp_path / "t", "--label", wrong, "--", "true")
    assert done.returncode == 2 and "label" in done.stderr and not (tmp_path / "t").exists()


def test_rows(fleet, traces):
    db = sqlite3.connect(fleet / "fleet.db")
    rows = db.execute("SELECT run, pod, node, version, cause, blame_function, limit_bytes, error "
                      "FROM crash ORDER BY run").fetchall()
    assert [r[1:4] for r in rows[:3]] == [("chat-a", "n1", "1"), ("chat-b", "n1", "2"),
                                          ("chat-c", "n2", "2")]
    for row in rows[:3]:
        report = json.loads(whyoom("report", row[0], "--format", "json").stdout)
        assert row[4:7] == (report["verdict"]["cause"], report["verdict"]["blame"]["function"],
                            report["ledger"][0]["limit_bytes"])
        assert row[4:6] == ("leak", "serve") and row[7] is None
        ledger = db.execute("SELECT sum(bytes) FROM ledger JOIN crash ON crash = id WHERE run = ?",
                            [row[0]]).fetchone()[0]
        assert ledger == sum(r["bytes"] for x in report["ledger"] for r in x["rows"])
        sites = json.loads(whyoom("sites", row[0], "--format", "json").stdout)["sites"]
        found = db.execute("SELECT max(live_bytes) FROM site JOIN crash ON crash = id "
                           "WHERE run = ?", [row[0]]).fetchone()[0]
        assert found == sites[0]["live_bytes"]
    assert rows[3][0] == str(traces / "inner" / "d") and rows[3][4] == "healthy"


def test_a_second_time_nothing_is_judged(fleet, traces):
    before = (fleet / "fleet.db").read_bytes()
    done = whyoom("fleet", "collect", traces, cwd=fleet)
    assert "0 runs judged, 4 known before" in done.stderr
    assert (fleet / "fleet.db").read_bytes() == before


def test_a_changed_run_is_judged_again_and_replaced(traces, tmp_path):
    shutil.copytree(traces / "a", tmp_path / "t" / "a")
    assert whyoom("fleet", "collect", "t", cwd=tmp_path).returncode == 0
    for trace in (tmp_path / "t" / "a").glob("*.whyoom"):
        os.utime(trace)
    assert "1 runs judged" in whyoom("fleet", "collect", "t", cwd=tmp_path).stderr
    db = sqlite3.connect(tmp_path / "fleet.db")
    assert db.execute("SELECT count(*) FROM crash").fetchone()[0] == 1
    assert db.execute("SELECT count(*) FROM ledger").fetchone()[0] == db.execute(
        "SELECT count(DISTINCT class || space) FROM ledger").fetchone()[0]


def test_lines_carry_all_that_the_database_has(fleet, traces, tmp_path):
    done = whyoom("fleet", "collect", "--jsonl", traces)
    assert done.returncode == 0, done.stderr
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(lines) == 4 and all(line["schema"] == 1 for line in lines)
    taken = whyoom("fleet", "collect", "-", cwd=tmp_path, stdin=done.stdout)
    assert taken.returncode == 0 and "4 lines taken in" in taken.stderr
    for table in "crash", "ledger", "site", "forecast":
        both = [sqlite3.connect(f / "fleet.db").execute(f"SELECT * FROM {table}").fetchall()
                for f in (fleet, tmp_path)]
        assert sorted(map(repr, both[0])) == sorted(map(repr, both[1])), table


def test_questions(fleet):
    assert ask(fleet, "causes") == [{"cause": "leak", "crashes": 3, "pods": 3, "hours": 0,
                                     "percent": 100}]
    first, = ask(fleet, "first-seen")
    assert (first["blame_function"], first["first_version"], first["crashes"]) == ("serve", "1", 3)
    same, = ask(fleet, "same-crash")
    assert same["pods"] == 3 and same["versions"] == 2 and "serve" in same["stack"]
    head = {(r["model"], r["node"]): r for r in ask(fleet, "headroom")}
    assert head["tiny", "n1"]["runs"] == 2 and head["tiny", "n2"]["runs"] == 1
    assert ask(fleet, "forecasts") == []


def test_growth_between_versions(tmp_path):
    """Medians by hand: f held 10 and 30 in version 1, 100, 110, 500 in version 2; g shrank."""
    lines = []
    for n, (version, held) in enumerate((("1", {"f": 10, "g": 9}), ("1", {"f": 30, "g": 9}),
                                         ("2", {"f": 100, "g": 5}), ("2", {"f": 110}),
                                         ("2", {"f": 500, "h": 7}))):
        lines.append(json.dumps({
            "schema": 1, "id": f"r{n}", "run": f"r{n}", "version": version, "cause": "leak",
            "started": f"2026-01-0{n + 1}T00:00:00Z", "ledger": [],
            "sites": [{"function": k, "live_bytes": v} for k, v in held.items()]}))
    assert whyoom("fleet", "collect", "-", cwd=tmp_path, stdin="\n".join(lines)).returncode == 0
    assert ask(tmp_path, "growth") == [{"function": "f", "before": "1", "version": "2",
                                        "bytes_before": 20, "bytes": 110, "percent": 450,
                                        "runs": 3}]


def test_forecasts_against_the_end(tmp_path):
    row = {"schema": 1, "id": "h/1/x", "run": "r", "cause": "leak", "failure": "none",
           "ended": "unknown", "seconds": 100, "forecast_seconds": 50, "forecast_low_seconds": 40,
           "forecast_high_seconds": 60, "ledger": [], "sites": []}
    ended = dict(row, failure="oom-kill", failure_seconds=155, ended="signal", seconds=155,
                 forecast_seconds=None, forecast_low_seconds=None, forecast_high_seconds=None)
    for line in row, ended:
        assert whyoom("fleet", "collect", "-", cwd=tmp_path,
                      stdin=json.dumps(line)).returncode == 0
    assert ask(tmp_path, "forecasts") == [{"cause": "leak", "forecasts": 1, "ran_out": 1,
                                           "within": 1, "mean_error_seconds": 5}]


def test_own_questions(fleet, tmp_path):
    own = tmp_path / "own.sql"
    own.write_text("SELECT count(*) AS n FROM crash")
    assert ask(fleet, own) == [{"n": 4}]
    for bad in "DELETE FROM crash", "SELECT nothing", "":
        own.write_text(bad)
        done = whyoom("fleet", "ask", own, cwd=fleet)
        assert done.returncode == 1 and done.stderr.startswith("whyoom: "), bad
    assert ask(fleet, "causes")[0]["crashes"] == 3


def test_a_broken_run_is_a_row_with_its_error(traces, tmp_path):
    shutil.copytree(traces / "a", tmp_path / "t" / "good")
    (tmp_path / "t" / "bad").mkdir()
    (tmp_path / "t" / "bad" / "1.0.whyoom").write_bytes(b"none" * 2000)
    done = whyoom("fleet", "collect", "t", cwd=tmp_path)
    assert done.returncode == 0 and "of which 1 cannot be read" in done.stderr
    rows = sqlite3.connect(tmp_path / "fleet.db").execute(
        "SELECT run, error IS NULL FROM crash ORDER BY run").fetchall()
    assert rows == [("t/bad", 0), ("t/good", 1)]
    assert ask(tmp_path, "causes")[0]["crashes"] == 1


@pytest.mark.parametrize("line, words", [
    ("{", "line 2: not a line of JSON"), ('{"schema":2}', "line 2: not of schema 1"),
    ('{"schema":1,"id":3}', "line 2: without id and run")])
def test_a_wrong_line_changes_nothing(tmp_path, line, words):
    good = json.dumps({"schema": 1, "id": "a", "run": "a", "ledger": [], "sites": []})
    done = whyoom("fleet", "collect", "-", cwd=tmp_path, stdin=f"{good}\n{line}\n")
    assert done.returncode == 1 and words in done.stderr
    again = whyoom("fleet", "ask", "causes", cwd=tmp_path)
    assert again.returncode == 1, again.stdout


def test_refusals(fleet, tmp_path):
    for words, rc, said in ((["collect"], 2, "needs a folder"), (["ask", "what"], 2, "no question"),
                            (["judge"], 2, "collect, ask or page"),
                            (["collect", "none"], 1, "none"),
                            (["ask", "causes"], 1, "no such database"),
                            (["collect", "-j", "0", "x"], 2, "--jobs")):
        done = whyoom("fleet", *words, cwd=tmp_path)
        assert done.returncode == rc and said in done.stderr, (words, done.stderr)
    (tmp_path / "fleet.db").write_text("this is a text, not a database" * 99)
    for words in ["ask", "causes"], ["collect", fleet]:
        done = whyoom("fleet", *words, cwd=tmp_path)
        assert done.returncode == 1 and "not a database" in done.stderr, done.stderr
    sqlite3.connect(tmp_path / "other.db").execute("CREATE TABLE t(x)").connection.commit()
    done = whyoom("fleet", "collect", "-o", "other.db", fleet, cwd=tmp_path)
    assert done.returncode == 1 and "no database of" in done.stderr
    assert "first-seen" in whyoom("fleet", "ask").stdout


def test_text_fits_the_terminal(fleet):
    for columns in 40, 80, 200:
        done = whyoom("fleet", "ask", "same-crash", cwd=fleet,
                      env=dict(os.environ, COLUMNS=str(columns)))
        assert done.returncode == 0 and "leak" in done.stdout
        if columns == 200:
            assert all(len(line) <= 200 for line in done.stdout.splitlines())


def test_page_leads_to_the_reports(fleet, tmp_path):
    folder = tmp_path / "page"
    done = whyoom("fleet", "page", "-d", fleet / "fleet.db", "-o", folder)
    assert done.returncode == 0 and done.stdout == f"{folder}/index.html\n", done.stderr
    index = (folder / "index.html").read_text()
    assert "3 of 4 runs ran out of memory, in 3 pods" in index and "default-src 'none'" in index
    for question in ask(fleet, "causes") + ask(fleet, "first-seen"):
        assert f">{question['cause']}<" in index
    assert re.findall(r'href="(crash[^"]*)"', index) == ["crash-1.html"]
    assert "serve" in (folder / "crash-1.html").read_text()
    assert sorted(p.name for p in folder.iterdir()) == ["crash-1.html", "index.html"]
    again = whyoom("fleet", "page", "-d", fleet / "fleet.db", "-o", folder)
    assert again.returncode == 1 and "File exists" in again.stderr
    assert (folder / "index.html").read_text() == index


def test_page_never_has_markup_of_a_run(tmp_path):
    evil = "<script>alert(1)</script>\x1b[31m\u202e"
    row = {"schema": 1, "id": evil, "run": evil, "cause": evil, "blame_function": evil, "pod": evil,
           "version": evil, "stack": evil, "started": evil, "day": evil, "model": evil,
           "node": evil, "space": evil, "limit_bytes": 9, "free_bytes": 1, "seconds": 1,
           "ledger": [], "sites": [{"function": evil, "live_bytes": 5}]}
    assert whyoom("fleet", "collect", "-", cwd=tmp_path, stdin=json.dumps(row)).returncode == 0
    assert whyoom("fleet", "page", cwd=tmp_path).returncode == 0
    page = (tmp_path / "fleet-page" / "index.html").read_text()
    assert "alert(1)" in page and "<script" not in page
    assert "\x1b" not in page and "\u202e" not in page
    assert "href=\"crash" not in page  # its traces are not here


def test_page_without_runs(tmp_path):
    (tmp_path / "t").mkdir()
    assert whyoom("fleet", "collect", "t", cwd=tmp_path).returncode == 0
    assert whyoom("fleet", "page", cwd=tmp_path).returncode == 0
    page = (tmp_path / "fleet-page" / "index.html").read_text()
    assert "None of 0 runs ran out of memory" in page and "No run answers this" in page
