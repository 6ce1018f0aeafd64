"""`whyoom.fleet` asks DuckDB the questions that `whyoom fleet ask` asks SQLite, from the same
lines: the answers are the same."""
import json
import os
import pathlib
import random
import subprocess
import sys

import pytest

TOP = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(TOP / "tests" / "torch"))
import wheel  # noqa: E402

WHYOOM = os.environ["WHYOOM_EXE"]
QUESTIONS = ["causes", "over-time", "first-seen", "growth", "headroom", "forecasts", "same-crash"]
# The package without its extension module, which the wheel's tests build and try.
ASK = """
import json, sys, types
package = types.ModuleType("whyoom")
package.__path__ = [sys.argv[1]]
sys.modules["whyoom"] = package
import importlib
fleet = importlib.import_module("whyoom.fleet")
if sys.argv[2] == "all":
    print(json.dumps({q: fleet.ask(q, *sys.argv[4:]) for q in sys.argv[3].split()}, default=float))
else:
    sys.exit(fleet.main(sys.argv[2:]))
"""


@pytest.fixture(scope="module")
def python():
    try:
        return wheel.environment(("fleet", ["duckdb==2.0.1"]))
    except wheel.Skip as reason:
        pytest.skip(str(reason))


def ask(python, *words, rc=0):
    path = os.pathsep.join([os.path.dirname(WHYOOM), os.environ["PATH"]])
    done = subprocess.run([python, "-c", ASK, TOP / "python" / "whyoom", *words],
                          capture_output=True, text=True, timeout=120,
                          env=dict(os.environ, PATH=path))
    assert done.returncode == rc, done.stderr
    return done


def lines(count):
    """Runs of some versions, pods and sites; some collected twice, some not to be judged."""
    draw = random.Random(7)
    made = []
    for n in range(count):
        version = draw.randrange(4)
        held = draw.sample(["Cache.put", "forward", "parse", "std::vector::push_back"], 3)
        failed = draw.random() < 0.7
        row = {"schema": 1, "id": f"n{n % 5}/{n}/x", "run": f"/t/{n}", "pod": f"p{n % 9}",
               "version": None if n % 17 == 0 else f"1.{version}", "node": f"n{n % 5}",
               "model": None if n % 11 == 0 else f"m{n % 2}", "space": "host",
               "started": f"2026-0{version + 1}-{n % 28 + 1:02}T00:00:00Z",
               "day": f"2026-0{version + 1}-{n % 28 + 1:02}",
               "seconds": round(draw.uniform(1, 90000), 3), "ended": "signal",
               "cause": draw.choice(["leak", "fragmentation", "concurrency"]) if failed
               else "healthy", "failure": "oom-kill" if failed else "none",
               "failure_seconds": 500.25 if failed else None, "blame_function": held[0],
               "stack": " < ".join(held), "limit_bytes": 1 << 30,
               "free_bytes": draw.randrange(1 << 30), "labels": {"team": "a"}, "ledger": [],
               "sites": [{"function": f, "live_bytes": draw.randrange(1, 1 << 40),
                          "live_blocks": 3} for f in held]}
        if n % 13 == 0:  # while it lived
            made.append(dict(row, ended="unknown", failure="none", seconds=400.5, sites=[],
                             forecast_seconds=90.0, forecast_low_seconds=80.0,
                             forecast_high_seconds=120.0))
        if n % 19 == 0:
            made.append({"schema": 1, "id": row["run"], "run": row["run"], "error": "torn"})
        made.append(row if n % 29 else {"schema": 1, "id": row["run"], "run": row["run"],
                                        "error": "torn", "ledger": [], "sites": []})
    return made


def test_same_answers(python, tmp_path):
    made = [json.dumps(row) for row in lines(400)]
    for part, name in ((made[:150], "a.jsonl"), (made[150:], "b.jsonl")):
        (tmp_path / name).write_text("\n".join(part) + "\n")
    subprocess.run([WHYOOM, "fleet", "collect", "a.jsonl", "b.jsonl"], cwd=tmp_path, check=True,
                   timeout=60)
    told = json.loads(ask(python, "all", " ".join(QUESTIONS), tmp_path / "*.jsonl").stdout)
    for question in QUESTIONS:
        done = subprocess.run([WHYOOM, "fleet", "ask", question, "--format", "json"], cwd=tmp_path,
                              capture_output=True, text=True, timeout=60)
        rows = json.loads(done.stdout)["rows"]
        assert rows and told[question] == rows, question


def test_own_question_and_errors(python, tmp_path):
    (tmp_path / "a.jsonl").write_text(json.dumps(lines(2)[-1]) + "\n")
    said = ask(python, "ask", "SELECT count(*) AS n, labels ->> '$.team' AS team FROM crash "
               "GROUP BY 2", tmp_path / "a.jsonl").stdout
    assert json.loads(said) == {"n": 1, "team": "a"}
    (tmp_path / "b.jsonl").write_text('{"schema": 2, "id": "x"}\n')
    for words, text in ((["what", tmp_path / "a.jsonl"], "no question"),
                        (["causes", tmp_path / "b.jsonl"], "1 lines are none of"),
                        (["causes", tmp_path / "none.jsonl"], "none.jsonl"),
                        (["SELECT nothing FROM crash", tmp_path / "a.jsonl"], "nothing")):
        done = ask(python, "ask", *words, rc=1)
        assert done.stderr.startswith("whyoom: ") and text in done.stderr, done.stderr
