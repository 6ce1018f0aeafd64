"""_local.py - judges runs on this machine into a folder of Parquet, as _spark.py does on many: the
same rows in the same files. Needs the package pyarrow. Owns how such a folder is written."""

import concurrent.futures
import glob
import os
import shutil
import uuid

from whyoom import _program
from whyoom.fleet import _columns, _judge, _sources
from whyoom.fleet._duckdb import PARQUET

SECONDS = 120  # for one run, as `whyoom fleet collect` has it
ROUND = 500  # runs of a processor between two commits: some 100 s of work
# Readers leave out what begins with this; so does Spark's own folder of unfinished files.
UNFINISHED = "_temporary"


def known(folder):
    """({(run, bytes, changed, judge)}, the last round) of what the folder has."""
    from pyarrow import ArrowException, parquet
    runs, last = set(), 0
    for path in glob.glob(os.path.join(glob.escape(folder), PARQUET)):
        try:
            # not read_table(): day and image are no columns of the file
            table = parquet.ParquetFile(path).read(["run", "run_bytes", "run_changed_ns", "judge",
                                                    _columns.ROUND])
        except (OSError, ArrowException) as error:
            raise _program.Error(f"{path}: {error}") from error
        for *run, nth in zip(*(column.to_pylist() for column in table.columns)):
            runs.add(tuple(run))
            last = max(last, nth)
    return runs, last


def write(batch, folder):
    """Add rows: each file appears whole. The caller is the only one that writes the folder."""
    import pyarrow
    from pyarrow import dataset, parquet
    unfinished = os.path.join(folder, UNFINISHED)
    shutil.rmtree(unfinished, ignore_errors=True)  # of one that was killed
    try:
        parquet.write_to_dataset(
            pyarrow.Table.from_batches([batch]), unfinished,
            partitioning=dataset.partitioning(
                pyarrow.schema([(p, pyarrow.string()) for p in _columns.PARTITIONS]),
                flavor="hive"),
            basename_template=f"part-{uuid.uuid4()}-{{i}}.zstd.parquet", compression="zstd")
        for path in glob.glob(os.path.join(glob.escape(unfinished), PARQUET)):
            place = os.path.join(folder, os.path.relpath(path, unfinished))
            os.makedirs(os.path.dirname(place), exist_ok=True)
            os.replace(path, place)
    except OSError as error:
        raise _program.Error(f"{folder}: {error}") from error
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)


def slices(items, count):
    for start in range(0, len(items), count):
        yield items[start:start + count]


def judge(sources, out, seconds=SECONDS, jobs=None, runs_a_round=None, tell=lambda text: None):
    """Judge the runs below local folders, `jobs` at once (None: one for each processor). What was
    judged is kept `runs_a_round` at a time. Returns (judged, failed, known)."""
    for url in filter(_sources.is_url, map(os.fspath, [*sources, out])):
        raise _program.Error(f"{url}: only Spark reads and writes URLs (--on spark)")
    jobs = jobs or len(os.sched_getaffinity(0))
    program, version, schema = _program.program(), _sources.version(), _columns.tables()[0]
    before, nth = known(out)
    found = [(*run, version) for run in _sources.find_all(sources)]
    missing = [run for run in found if run not in before]
    failed, judged = 0, 0
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        for part in slices(missing, runs_a_round or ROUND * jobs):
            nth += 1
            rows = list(pool.map(
                lambda run: _judge.judge(program, (*run, schema), run[0], seconds), part))
            failed += sum(row.get("error") is not None for row in rows)
            write(_judge.to_batch(rows, _columns.row_members(), nth), out)
            judged += len(part)
            tell(f"{judged} of {len(missing)} runs judged")
    return judged, failed, len(found) - len(missing)


def lines(folder):
    """Yield the rows of a folder as lines of `collect --jsonl`, in the order in which they were
    judged."""
    import json

    from pyarrow import dataset
    if not glob.glob(os.path.join(glob.escape(folder), PARQUET)):
        raise _program.Error(f"{folder}: no table of judged runs")
    names = list(_columns.members())
    table = dataset.dataset(
        folder, format="parquet", exclude_invalid_files=False,
        schema=_judge.arrow_schema(_columns.row_members()),
        partitioning=dataset.partitioning(
            _judge.arrow_schema({p: "TEXT" for p in _columns.PARTITIONS}), flavor="hive"),
    ).to_table().sort_by([(_columns.ROUND, "ascending"), ("run", "ascending")])
    for batch in table.to_batches(max_chunksize=1024):
        for row in batch.select(names).to_pylist():
            row["labels"] = json.loads(row["labels"] or "{}")
            yield json.dumps(row, ensure_ascii=False)
