"""_judge.py - judges one run by the program `whyoom`: a row, whatever becomes of it. Uses nothing
else of this package, as Spark sends its functions to machines that have not installed it. Prints
nothing."""

import itertools
import json
import operator
import os
import signal
import subprocess
import tarfile
import tempfile

# Beyond the time limit, which the program keeps by itself: then it is ended from outside.
GRACE = 30
# One that is ended from outside, as for want of memory, is tried again; twice is no accident.
ATTEMPTS = 2
LISTS = ("ledger", "sites")
# The unpacked archive's folder on each executor.
ARCHIVE = "whyoom-judge"
# A trace that is fetched passes through memory, as one value of Spark's.
FETCH_MAX = 1 << 30


def environment():
    """The program is not recorded, whatever the machine preloads."""
    return {k: v for k, v in os.environ.items()
            if k != "LD_PRELOAD" and not k.startswith("WHYOOM_")} | {
        k: os.environ[k] for k in ("WHYOOM_CACHE", "WHYOOM_KNOWLEDGE") if k in os.environ} | {
        "WHYOOM_OFF": "1"}


def attempt(program, folder, seconds):
    """(line, None), or (None, why not)."""
    try:
        child = subprocess.Popen(
            [program, "fleet", "collect", "--jsonl", "--flat", "--jobs=1", f"--timeout={seconds}",
             "--", folder], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, env=environment(), start_new_session=True)
    except (OSError, ValueError) as error:
        return None, f"{program}: {error}"
    with child:
        try:
            line, said = child.communicate(timeout=seconds + GRACE)
        except subprocess.TimeoutExpired:
            os.killpg(child.pid, signal.SIGKILL)  # its own children, too
            return None, f"it took longer than {seconds} s"
    if child.returncode < 0:
        return None, f"whyoom was killed by signal {-child.returncode}"
    if child.returncode:
        said = said.decode(errors="replace").strip().removeprefix("whyoom: ")
        return None, said or f"whyoom ended with {child.returncode}"
    if not line.strip():
        return None, "no traces"
    return json.loads(line.decode(errors="replace")), None


def judge(program, run, folder, seconds):
    """The row, by the names of a line, of run = (path, bytes, changed_ns, judge, schema): its files
    lie in `folder`, which is another path where they were fetched."""
    path, size, changed, version, schema = run
    for _ in range(ATTEMPTS):
        row, why = attempt(program, folder, seconds)
        if row:
            break
    if not row:
        return refused(run, why)
    if row.get("error") is not None:
        row["id"] = path
    row.update(run=path, run_bytes=size, run_changed_ns=changed, judge=version, schema=schema)
    row["labels"] = json.dumps(row.get("labels") or {}, ensure_ascii=False, sort_keys=True)
    return row


def refused(run, why):
    """The row of a run that cannot be judged."""
    path, size, changed, version, schema = run
    return {"id": path, "run": path, "run_bytes": size, "run_changed_ns": changed, "judge": version,
            "schema": schema, "labels": "{}", "error": why, **{name: [] for name in LISTS}}


def arrow_schema(members):
    """Of rows: {name: "TEXT" | "INTEGER" | "REAL" | the columns of an array's rows}."""
    import pyarrow
    plain = {"TEXT": pyarrow.string(), "INTEGER": pyarrow.int64(), "REAL": pyarrow.float64()}

    def kind(of):
        if isinstance(of, dict):
            return pyarrow.list_(pyarrow.struct([(c, plain[t]) for c, t in of.items()]))
        return plain[of]
    return pyarrow.schema([(name, kind(of)) for name, of in members.items()])


def to_batch(rows, members, nth):
    """Rows of the round `nth` as Arrow has them."""
    import pyarrow
    schema = arrow_schema(members)
    real = [name for name, of in members.items() if of == "REAL"]
    for row in rows:
        row["round"] = nth
        for name in real:  # 12.0 is written as 12
            row[name] = None if row.get(name) is None else float(row[name])
    return pyarrow.RecordBatch.from_pylist(rows, schema=schema)


# --- the program that is sent ---

def pack(program, knowledge, archive):
    """Write program and knowledge files as one archive, as they find each other in it."""
    with tarfile.open(archive, "w:gz", compresslevel=1) as tar:
        tar.add(os.path.realpath(program), "bin/whyoom")
        if knowledge:
            tar.add(os.path.realpath(knowledge), "share/whyoom/knowledge", filter=only_knowledge)


def only_knowledge(entry):
    return entry if entry.isdir() or entry.name.endswith(".know") else None


# --- on the executors ---

def sent_program():
    """The program that the driver sent."""
    from pyspark import SparkFiles
    path = SparkFiles.get(ARCHIVE + "/bin/whyoom")
    if not os.access(path, os.X_OK):
        os.chmod(path, 0o755)
    return path


def each(batches):
    """The rows of Arrow's batches as dictionaries."""
    for batch in batches:
        yield from batch.to_pylist()


def judging(members, version, schema, seconds, nth):
    """A function for mapInArrow(): batches of runs, where they lie, become batches of rows."""
    def judged(batches):
        for run in each(batches):
            told = run["run"], run["run_bytes"], run["run_changed_ns"], version, schema
            row = judge(sent_program(), told, run["run"], seconds)
            yield to_batch([row], members, nth)
    return judged


def judging_fetched(members, version, schema, seconds, nth):
    """The same of files with their content, those of a run one after the other."""
    def judged(batches):
        for path, files in itertools.groupby(each(batches), key=operator.itemgetter("run")):
            with tempfile.TemporaryDirectory(prefix="whyoom-fetched-") as folder:
                for file in files:
                    if file["content"] is not None:
                        with open(os.path.join(folder, os.path.basename(file["path"])), "wb") as f:
                            f.write(file["content"])
                told = path, file["run_bytes"], file["run_changed_ns"], version, schema
                if file["largest"] > FETCH_MAX:
                    row = refused(told, f"a trace of {file['largest']} bytes is too large to be "
                                  "fetched: judge it where it lies, or pack it")
                else:
                    row = judge(sent_program(), told, folder, seconds)
            yield to_batch([row], members, nth)
    return judged
