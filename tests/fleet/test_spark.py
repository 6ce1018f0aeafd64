"""`whyoom-fleet` on Spark: rows as other ways of judging make them, answers as other engines give
them, and nothing lost or doubled when processes die. Spark and a session of it take their time, so
a test asks for as few as it can."""

import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import time

import pytest
from engines import QUESTIONS, TOP, WHYOOM, command, environment, fleet, lines

sys.path.insert(0, str(TOP / "tests" / "torch"))
import wheel  # noqa: E402

PACKAGES = ["pyspark==4.3.0", "py4j==0.10.9.9", "pyarrow==26.0.1", "duckdb==2.0.1",
            "pandas==2.3.3", "numpy==2.3.5", "python-dateutil==2.9.0.post0", "pytz==2025.2",
            "tzdata==2025.2", "six==1.17.0", "--no-binary=pyspark"]
GOLDEN = TOP / "tests" / "golden"
SPARK = ["--on", "spark", "--master", "local[2]"]
# Executors that are processes of their own: two, of one core.
CLUSTER = ["--on", "spark", "--master", "local-cluster[2,1,1024]"]
PATIENCE = 1800  # seconds, on a machine that has other work
RATIO = 1.3
RUNS = 120  # while processes are killed
# A server of some requests that keeps a share of them, at several places and in several sizes.
SERVER = """
import json, random, sys
draw = random.Random(int(sys.argv[1]))
kept = []
def parse(n):
    return json.loads(json.dumps({str(i): list(range(i % 7)) for i in range(n)}))
def remember(what):
    kept.append(what)
def serve(n):
    made = parse(n)
    if draw.random() < 0.3:
        remember(made)
    return bytearray(n * 900)
for _ in range(int(sys.argv[2])):
    serve(draw.randrange(20, 200))
"""


def say(text):
    print("shown: " + text)


@pytest.fixture(scope="module")
def python():
    if not shutil.which("java"):
        pytest.skip("there is no java")
    try:
        return wheel.environment(("fleet-spark-" + wheel.digest(PACKAGES), PACKAGES))
    except wheel.Skip as reason:
        pytest.skip(str(reason))


@pytest.fixture(scope="module")
def real(tmp_path_factory):
    """Real recordings, two of them in several versions; the traces of the tests of the reader."""
    top = tmp_path_factory.mktemp("real")
    (top / "server.py").write_text(SERVER)
    for n in range(24):
        done = subprocess.run(
            [WHYOOM, "run", "-o", top / f"server-{n}", "--label",
             f"image=chat:1.{n % 3},version=1.{n % 3},model=m{n % 2}", "--", sys.executable,
             top / "server.py", str(n), str(20 + 10 * n)],
            env=dict(os.environ, POD_NAME=f"chat-{n}", NODE_NAME=f"n{n % 4}",
                     PYTHONMALLOC="malloc"),  # events as of a larger server
            capture_output=True, text=True, timeout=PATIENCE)
        assert done.returncode == 0, done.stderr
    (top / "server.py").unlink()
    return top


@pytest.fixture(scope="module")
def traces(real, tmp_path_factory):
    """Good runs and bad ones."""
    top = tmp_path_factory.mktemp("traces") / "runs"
    shutil.copytree(real, top)
    shutil.copytree(GOLDEN / "v1", top / "golden")
    for name, content in (("empty", b""), ("bad", b"none" * 2000), ("torn [1]", b"")):
        (top / name).mkdir()
        (top / name / "1.0.whyoom").write_bytes(content)
    trace = next((top / "server-0").glob("*.0.whyoom")).read_bytes()
    (top / "torn [1]" / "1.0.whyoom").write_bytes(trace[:len(trace) // 3])
    return top


def copies(real, top, count):
    """That many runs, of which each is one of the recordings."""
    runs = sorted(p for p in real.iterdir() if p.is_dir())
    for n in range(count):
        shutil.copytree(runs[n % len(runs)], top / f"pod-{n}", copy_function=os.link)
    return top


def rows(python, table):
    return [json.loads(x) for x in fleet(python, "lines", table).stdout.splitlines()]


def by_run(made):
    told = {row["run"]: {k: v for k, v in row.items() if v is not None} for row in made}
    assert len(told) == len(made)
    return told


def files(table):
    return {str(p): (p.stat().st_size, p.stat().st_mtime_ns) for p in table.rglob("*")}


def answers_of_sqlite(folder):
    told = {}
    for question in QUESTIONS:
        done = subprocess.run([WHYOOM, "fleet", "ask", question, "--format", "json"], cwd=folder,
                              capture_output=True, text=True, timeout=PATIENCE)
        assert done.returncode == 0, done.stderr
        told[question] = json.loads(done.stdout)["rows"]
    return told


def answers(python, on, *sources):
    return json.loads(fleet(python, "all", " ".join(QUESTIONS), on, *sources,
                            timeout=PATIENCE).stdout)


def test_the_same_rows_wherever_they_are_judged(python, traces, tmp_path):
    """By `collect`, on this machine and on Spark; and the same answers of the three engines. What
    is known is not judged again, whoever judged it."""
    collected = subprocess.run([WHYOOM, "fleet", "collect", "--jsonl", traces],
                               capture_output=True, text=True, timeout=PATIENCE)
    expected = by_run([json.loads(x) for x in collected.stdout.splitlines()])
    assert sum("error" in row for row in expected.values()) >= 2
    fleet(python, "judge", traces, "-o", tmp_path / "local", timeout=PATIENCE)
    done = fleet(python, "judge", traces, "-o", tmp_path / "spark", *SPARK, timeout=PATIENCE)
    bad = sum("error" in row for row in expected.values())
    assert f"{len(expected)} runs judged, of which {bad} cannot be read;" in done.stderr
    for table in "local", "spark":
        assert by_run(rows(python, tmp_path / table)) == expected, table
    assert (tmp_path / "spark" / "day=2023-11-14").is_dir()
    assert list((tmp_path / "spark").glob("day=*/image=chat%3A1.2/*.parquet"))

    before = files(tmp_path / "spark")
    for on in SPARK, ["--on", "local"]:
        done = fleet(python, "judge", traces, "-o", tmp_path / "spark", *on, timeout=PATIENCE)
        assert f"0 runs judged, {len(expected)} known before" in done.stderr
        assert files(tmp_path / "spark") == before

    subprocess.run([WHYOOM, "fleet", "collect", "-"], cwd=tmp_path, check=True, text=True,
                   timeout=PATIENCE, input=fleet(python, "lines", tmp_path / "spark").stdout)
    told = answers_of_sqlite(tmp_path)
    assert told["headroom"] or told["causes"]
    for on in "duckdb", "spark":
        assert answers(python, on, tmp_path / "spark") == told, on


def test_by_url_under_spark_submit(python, traces, tmp_path):
    """The files of each run are fetched through Hadoop's file systems."""
    driver = tmp_path / "driver.py"
    driver.write_text(command(python)[2])
    done = subprocess.run(
        [python, "-c", "import pyspark, os, sys; home = os.path.dirname(pyspark.__file__); "
         "os.environ['SPARK_HOME'] = home; os.execv('/bin/bash', ['bash', home + "
         "'/bin/spark-submit', *sys.argv[1:]])",
         "--master", "local[2,4]", driver, TOP / "python" / "whyoom", "judge", "--on", "spark",
         traces.as_uri(), "-o", tmp_path / "table"], capture_output=True, text=True,
        timeout=PATIENCE, env=environment(PYSPARK_PYTHON=python))
    assert done.returncode == 0, done.stderr[-3000:]
    url = "file:" + str(traces)
    collected = subprocess.run([WHYOOM, "fleet", "collect", "--jsonl", traces],
                               capture_output=True, text=True, timeout=PATIENCE)
    expected = {}
    for row in map(json.loads, collected.stdout.splitlines()):
        row["run"] = row["run"].replace(str(traces), url)
        if row["error"]:
            row["id"] = row["run"]
            row["error"] = None  # it names the file where it was read
        row["run_changed_ns"] = row["run_changed_ns"] // 1000000 if row["run_bytes"] else 0
        expected[row["run"]] = {k: v for k, v in row.items() if v is not None}
    told = rows(python, tmp_path / "table")
    for row in told:
        assert (row["error"] is None) == ("cause" in expected[row["run"]])
        row["error"] = None
        row["run_changed_ns"] //= 1000000
    assert by_run(told) == expected


def test_the_same_answers_from_lines(python, tmp_path):
    made = [json.dumps(row) for row in lines(400)]
    for part, name in ((made[:150], "b.jsonl"), (made[150:], "a.jsonl")):
        (tmp_path / name).write_text("\n".join(part) + "\n")
    sources = tmp_path / "b.jsonl", tmp_path / "a.jsonl"  # not by name: the last line counts
    subprocess.run([WHYOOM, "fleet", "collect", *sources], cwd=tmp_path, check=True,
                   timeout=PATIENCE)
    told = answers_of_sqlite(tmp_path)
    assert all(told.values())
    assert answers(python, "spark", *sources) == told


def test_the_same_answers_from_many_lines(python, traces, tmp_path):
    count = int(os.environ.get("WHYOOM_FLEET_LINES", "200000"))
    with open(tmp_path / "real.jsonl", "w") as f:
        subprocess.run([WHYOOM, "fleet", "collect", "--jsonl", traces], stdout=f, check=True,
                       stderr=subprocess.DEVNULL, timeout=PATIENCE)
    with open(tmp_path / "many.jsonl", "w") as f:
        subprocess.run([sys.executable, TOP / "tests" / "fleet" / "many.py",
                        tmp_path / "real.jsonl", str(count)], stdout=f, check=True,
                       timeout=PATIENCE)
    subprocess.run([WHYOOM, "fleet", "collect", "many.jsonl"], cwd=tmp_path, check=True,
                   timeout=4 * PATIENCE, capture_output=True)
    told = answers_of_sqlite(tmp_path)
    empty = [q for q, rows in told.items() if not rows]
    assert empty in ([], ["headroom"]), empty  # these runs have no limit, or used it up
    for on in "duckdb", "spark":
        made = answers(python, on, tmp_path / "many.jsonl")
        for question in QUESTIONS:
            same_but_for_ties(made[question], told[question], (on, question))
    say(f"{count} lines: SQLite, DuckDB and Spark give the same answers")


def same_but_for_ties(made, expected, what):
    """What engines round differently is a number halfway between two: 0.25 is 0.2 or 0.3."""
    assert len(made) == len(expected), what
    for one, other in zip(made, expected):
        assert one.keys() == other.keys(), what
        for name in one:
            if isinstance(one[name], float) and other[name] is not None:
                step = 1 if name.startswith("bytes") else 0.1
                assert abs(one[name] - other[name]) < step * 1.001, (what, one, other)
            else:
                assert one[name] == other[name], (what, one, other)


def test_refusals(python, tmp_path):
    (tmp_path / "b.jsonl").write_text('{"schema": 2, "id": "x"}\n')
    done = fleet(python, "ask", "causes", tmp_path / "b.jsonl", *SPARK, rc=1, timeout=PATIENCE)
    assert "whyoom: 1 lines are none of" in done.stderr
    for words, said in ((["judge", tmp_path / "none", "-o", tmp_path / "out"], "none: No such"),
                        (["judge", "s3a://b/x", "-o", tmp_path / "out"], "only Spark"),
                        (["ask", "causes", tmp_path], "no table of judged runs"),
                        (["lines", tmp_path], "no table of judged runs")):
        assert said in fleet(python, *words, rc=1).stderr, words
    for words, said in ((["judge", tmp_path], "-o"), (["what"], "invalid choice"),
                        (["judge", tmp_path, "-o", "x", "--round", "0"], "at least 1"),
                        (["ask", "causes", "x", "--conf", "a"], "KEY=VALUE")):
        assert said in fleet(python, *words, rc=2).stderr, words


def test_a_program_that_dies_or_stalls_costs_one_row(python, real, tmp_path):
    copies(real, tmp_path / "runs", 4)
    tools = tmp_path / "tools"
    tools.mkdir()
    (tools / "whyoom").write_text(
        '#!/bin/sh\nunset LD_PRELOAD\ncase "$*" in *pod-1) kill -9 $$ ;; *pod-2) sleep 3600 ;; '
        f'*pod-3) echo "whyoom: no luck" >&2; exit 1 ;; esac\nexec {WHYOOM} "$@"\n')
    (tools / "whyoom").chmod(0o755)
    done = fleet(python, "judge", tmp_path / "runs", "-o", tmp_path / "table", "--timeout", "1",
                 timeout=PATIENCE, PATH=f"{tools}:{os.environ['PATH']}")
    assert "4 runs judged, of which 3 cannot be read" in done.stderr
    made = sorted(rows(python, tmp_path / "table"), key=lambda row: row["run"])
    assert all(isinstance(row["labels"], dict) for row in made)
    errors = [row["error"] for row in made]
    assert errors == [None, "whyoom was killed by signal 9", "it took longer than 1 s", "no luck"]


# --- speed ---

def loop(runs):
    """Seconds of a shell loop over two processes at a time, as Spark has two."""
    started = time.time()
    subprocess.run(f"ls -d {runs}/* | xargs -P 2 -n 1 sh -c "
                   f"'{WHYOOM} fleet collect --jsonl \"$1\" >/dev/null 2>&1' loop",
                   shell=True, check=True, timeout=4 * PATIENCE)
    return time.time() - started


def test_speed_against_a_shell_loop(python, real, tmp_path):
    """One after the other, so once more where the machine had other work meanwhile."""
    count = int(os.environ.get("WHYOOM_FLEET_RUNS", "2000"))
    runs = copies(real, tmp_path / "runs", count)
    for attempt in range(3):
        by_loop = loop(runs)
        table = tmp_path / f"table-{attempt}"
        started = time.time()
        done = fleet(python, "judge", runs, "-o", table, *SPARK, timeout=4 * PATIENCE)
        seconds = time.time() - started
        assert f"{count} runs judged; " in done.stderr
        ratio = seconds / by_loop
        say(f"{count} runs: {seconds:.0f} s on Spark local[2], {by_loop:.0f} s by a shell loop of "
            f"two processes: {ratio:.2f} times")
        if ratio <= RATIO:
            break
    assert ratio <= RATIO
    assert len(by_run(rows(python, table))) == count


# --- death ---

def children(of):
    """The processes below a process: {pid: command line}."""
    parents, told, below = {}, {}, {of}
    for entry in pathlib.Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                stat = (entry / "stat").read_text()
                told[int(entry.name)] = (entry / "cmdline").read_bytes().replace(b"\0", b" ")
                parents[int(entry.name)] = int(stat.rsplit(")", 1)[1].split()[1])
            except OSError:
                pass  # it has ended
    while True:
        more = {p for p, parent in parents.items() if parent in below} - below
        if not more:
            return {p: told[p].decode(errors="replace") for p in below if p in told}
        below |= more


class Judging:
    """A job that runs, in a group of its own."""

    def __init__(self, python, *words, **more):
        self.process = subprocess.Popen(command(python, "judge", *words), text=True,
                                        stderr=subprocess.PIPE, start_new_session=True,
                                        env=environment(**more))

    def wait(self, condition):
        until = time.time() + PATIENCE
        while time.time() < until:
            found = condition()
            if found:
                return found
            assert self.process.poll() is None, self.process.stderr.read()[-3000:]
            time.sleep(0.05)
        raise AssertionError("nothing happened")

    def below(self, *words):
        """The pids of what it started, by words of their command lines."""
        return [pid for pid, line in children(self.process.pid).items()
                if all(w in line for w in words)]

    def end(self):
        said = self.process.communicate(timeout=PATIENCE)[1]
        assert self.process.returncode == 0, said[-3000:]
        return said

    def kill(self):
        for pid in children(self.process.pid):
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        self.process.wait()
        self.process.stderr.close()


@pytest.mark.parametrize("who, words", [
    ("an executor", ["CoarseGrainedExecutorBackend"]), ("a Python process", ["pyspark.daemon"])])
def test_a_killed_executor_costs_no_row(python, real, tmp_path, who, words):
    """While it judges: two processes of whyoom are seen below executors."""
    runs = copies(real, tmp_path / "runs", RUNS)
    job = Judging(python, runs, "-o", tmp_path / "table", *CLUSTER)
    try:
        for _ in range(2):
            job.wait(lambda: job.below("--jsonl", str(runs)))
            victim = job.wait(lambda: job.below(*words))[0]
            os.kill(victim, signal.SIGKILL)
            job.wait(lambda: victim not in children(job.process.pid))
        assert f"{RUNS} runs judged; " in job.end(), who
    finally:
        job.kill()
    made = rows(python, tmp_path / "table")
    assert len(by_run(made)) == RUNS and not any(row["error"] for row in made)
    say(f"{who} killed twice: {RUNS} runs, {RUNS} rows")


def test_a_killed_driver_goes_on(python, real, tmp_path):
    """The whole job dies after its first round; what was kept is not judged again."""
    runs, table = copies(real, tmp_path / "runs", RUNS), tmp_path / "table"
    job = Judging(python, runs, "-o", table, *SPARK, "--round", str(RUNS // 5))
    try:
        job.wait(lambda: (table / "_SUCCESS").exists() and job.below("--jsonl", str(runs)))
    finally:
        job.kill()
    kept = len(rows(python, table))
    assert RUNS // 5 <= kept < RUNS
    done = fleet(python, "judge", runs, "-o", table, *SPARK, timeout=PATIENCE)
    assert f"{RUNS - kept} runs judged, {kept} known before" in done.stderr
    assert len(by_run(rows(python, table))) == RUNS
    say(f"the driver killed with {kept} of {RUNS} rows kept: {RUNS} rows after it went on")
