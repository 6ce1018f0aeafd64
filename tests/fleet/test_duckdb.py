"""`whyoom.fleet` asks DuckDB the questions that `whyoom fleet ask` asks SQLite, from the same
lines: the answers are the same."""
import json
import subprocess
import sys

import pytest
from engines import QUESTIONS, TOP, WHYOOM, fleet, lines

sys.path.insert(0, str(TOP / "tests" / "torch"))
import wheel  # noqa: E402


@pytest.fixture(scope="module")
def python():
    try:
        return wheel.environment(("fleet", ["duckdb==2.0.1"]))
    except wheel.Skip as reason:
        pytest.skip(str(reason))


def test_same_answers(python, tmp_path):
    made = [json.dumps(row) for row in lines(400)]
    for part, name in ((made[:150], "a.jsonl"), (made[150:], "b.jsonl")):
        (tmp_path / name).write_text("\n".join(part) + "\n")
    subprocess.run([WHYOOM, "fleet", "collect", "a.jsonl", "b.jsonl"], cwd=tmp_path, check=True,
                   timeout=60)
    told = json.loads(fleet(python, "all", " ".join(QUESTIONS), "duckdb",
                            tmp_path / "*.jsonl").stdout)
    for question in QUESTIONS:
        done = subprocess.run([WHYOOM, "fleet", "ask", question, "--format", "json"], cwd=tmp_path,
                              capture_output=True, text=True, timeout=60)
        rows = json.loads(done.stdout)["rows"]
        assert rows and told[question] == rows, question


def test_own_question_and_errors(python, tmp_path):
    (tmp_path / "a.jsonl").write_text(json.dumps(lines(2)[-1]) + "\n")
    said = fleet(python, "ask", "SELECT count(*) AS n, labels ->> '$.team' AS team FROM crash "
               "GROUP BY 2", tmp_path / "a.jsonl").stdout
    assert json.loads(said) == {"n": 1, "team": "a"}
    (tmp_path / "b.jsonl").write_text('{"schema": 2, "id": "x"}\n')
    for words, text in ((["what", tmp_path / "a.jsonl"], "no question"),
                        (["causes", tmp_path / "b.jsonl"], "1 lines are none of"),
                        (["causes", tmp_path / "none.jsonl"], "none.jsonl"),
                        (["SELECT nothing FROM crash", tmp_path / "a.jsonl"], "nothing")):
        done = fleet(python, "ask", *words, rc=1)
        assert done.stderr.startswith("whyoom: ") and text in done.stderr, done.stderr
