"""_spark.py - judges runs on Spark's executors into Parquet, and asks that or lines the questions.
Needs the package pyspark on the driver, pyarrow on driver and executors; whyoom, program and
package, on the driver alone."""

import contextlib
import glob
import os
import re
import sys
import tempfile
import urllib.parse

from whyoom import _program
from whyoom.fleet import _columns, _judge, _local, _sources

# The larger part of a task's time is judging, and what is lost with an executor is little.
RUNS_A_TASK = 8
FILES_A_BATCH = 4
# What the session has unless the user says otherwise. Snappy's library does not load where Debian's
# package musl is installed, which is xerial/snappy-java's issue 692.
DEFAULTS = {"spark.app.name": "whyoom-fleet",
            "spark.ui.enabled": "false",
            "spark.ui.showConsoleProgress": "false",
            "spark.log.level": "ERROR",
            "spark.io.compression.codec": "zstd",
            "spark.sql.parquet.compression.codec": "zstd",
            "spark.sql.session.timeZone": "UTC"}
# On one machine: a task is tried again when its Python process dies, as it is on a cluster.
LOCAL_ATTEMPTS = 4
LOCAL = {"spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1",
         "spark.sql.shuffle.partitions": "8"}


def retrying(master):
    """local[N] with retries."""
    return re.sub(r"^local\[(\d+|\*)\]$", rf"local[\1,{LOCAL_ATTEMPTS}]",
                  "local[1]" if master == "local" else master)


@contextlib.contextmanager
def session(master=None, conf=()):
    """A session of Spark, which ends with the block. master: None is spark-submit's, else all
    processors of this machine. conf: pairs. Raises Error where there is none."""
    try:
        from pyspark import SparkConf
        from pyspark.errors import PySparkException
        from pyspark.sql import SparkSession
    except ImportError as error:
        raise _program.Error(f"Spark needs the package pyspark: {error}") from error
    settings = SparkConf()
    for name, value in conf:
        settings.set(name, value)
    settings.setMaster(retrying(master or settings.get("spark.master", "local[*]")))
    local = settings.get("spark.master").startswith("local")
    for name, value in {**DEFAULTS, **(LOCAL if local else {})}.items():
        settings.setIfMissing(name, value)
    if local:  # else the executors' own python3, which need not lie where this one does
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)
    try:
        spark = SparkSession.builder.config(conf=settings).getOrCreate()
    except PySparkException as error:
        raise _program.Error(first_line(error)) from error
    try:
        yield spark
    except PySparkException as error:
        raise _program.Error(first_line(error)) from error
    except Exception as error:
        if type(error).__module__.startswith("py4j"):  # the JVM is gone, or never said why
            raise _program.Error(first_line(error)) from error
        raise
    finally:
        with contextlib.suppress(Exception):  # gone already
            spark.stop()


def first_line(error):
    return "Spark: " + (str(error).strip().splitlines() or [type(error).__name__])[0]


# --- the runs ---

def listed(spark, sources):
    """The runs of all sources, each once: run, run_bytes, run_changed_ns, largest (bytes of its
    largest trace), fetched (its files must be brought to who judges it)."""
    local = [s for s in sources if not _sources.is_url(s)]
    remote = [s for s in sources if _sources.is_url(s)]
    found = spark.createDataFrame(
        [(*run, 0, False) for run in _sources.find_all(local)],
        "run STRING, run_bytes BIGINT, run_changed_ns BIGINT, largest BIGINT, fetched BOOLEAN")
    for source in remote:
        files = (spark.read.format("binaryFile").option("recursiveFileLookup", "true")
                 .load(source).select("path", "modificationTime", "length"))
        empty = spark.createDataFrame(empty_runs(files), found.schema)
        found = found.union(files.selectExpr(
            "regexp_extract(path, '^(.*)/[^/]*$', 1) AS run", "length",
            "unix_micros(modificationTime) * 1000 AS changed",
            # as _sources.is_trace() has it
            r"path RLIKE '/[^/.][^/]*\\.(whyoom|whyooms)$' AS trace")
            .where("trace").groupBy("run").agg(
                *map(expression, ("sum(length)", "max(changed)", "max(length)", "true"))))
        found = found.union(empty.join(found, "run", "left_anti"))
    return found.dropDuplicates(["run"])


def empty_runs(files):
    """What may be runs without a byte: Spark lists empty files, but has no rows of them. When
    they changed is not told."""
    paths = (urllib.parse.unquote(path) for path in files.inputFiles())
    folders = {os.path.dirname(re.sub("^file://(?=/)", "file:", path)) for path in paths
               if _sources.is_trace(os.path.basename(path))}
    return [(folder, 0, 0, 0, True) for folder in sorted(folders)]


def expression(text):
    from pyspark.sql.functions import expr
    return expr(text)


def table_of(spark, folder):
    """The rows of a folder, or None: there are none yet. Whatever Spark would take day for, it is
    a text."""
    if not exists(spark, folder):
        return None
    return spark.read.schema(_columns.spark_schema(_columns.row_members())).parquet(folder)


def exists(spark, folder):
    """Whether a folder of the local or a distributed file system has a table."""
    jvm = spark.sparkContext._jvm
    path = jvm.org.apache.hadoop.fs.Path(folder)
    system = path.getFileSystem(spark.sparkContext._jsc.hadoopConfiguration())
    return any(s.getPath().getName().startswith("day=")
               for s in system.listStatus(path)) if system.exists(path) else False


def missing(spark, found, table, version):
    """What of the runs is not in the table, as a list; the largest first, so that none of them
    ends last."""
    from pyspark.sql.functions import lit
    found = found.withColumn("judge", lit(version))
    if table is not None:
        found = found.join(table.select("run", "run_bytes", "run_changed_ns", "judge"),
                           ["run", "run_bytes", "run_changed_ns", "judge"], "left_anti")
    return sorted(found.collect(), key=lambda run: (-run.run_bytes, run.run))


# --- judging ---

RUN = "run STRING, run_bytes BIGINT, run_changed_ns BIGINT, largest BIGINT"


def frame(spark, runs):
    """Runs as a DataFrame of tasks, so that each task has some of the large ones."""
    tasks = -(-len(runs) // RUNS_A_TASK)
    # by name: a join puts the columns in another order
    rows = [(run.run, run.run_bytes, run.run_changed_ns, run.largest)
            for nth in range(tasks) for run in runs[nth::tasks]]
    return spark.createDataFrame(spark.sparkContext.parallelize(rows, tasks), RUN)


def judged_runs(spark, runs, how):
    """The rows of one round, which are computed when they are written."""
    schema = _columns.spark_schema(_columns.row_members())
    where_they_lie = [run for run in runs if not run.fetched]
    fetched = [run for run in runs if run.fetched]
    made = []
    if where_they_lie:
        made.append(frame(spark, where_they_lie).mapInArrow(_judge.judging(*how), schema))
    if fetched:
        wanted = frame(spark, fetched)
        files = (spark.read.format("binaryFile").option("ignoreMissingFiles", "true")
                 .option("recursiveFileLookup", "true").load([escaped(run.run) for run in fetched])
                 .where(f"length <= {_judge.FETCH_MAX}").select("path", "content")
                 .withColumn("run", expression("regexp_extract(path, '^(.*)/[^/]*$', 1)")))
        tasks = -(-len(fetched) // RUNS_A_TASK)
        # left: a run whose files are too large or gone is a row, too
        made.append(wanted.join(files, "run", "left").repartition(tasks, "run")
                    .sortWithinPartitions("run").mapInArrow(_judge.judging_fetched(*how), schema))
    return made[0].unionByName(made[1]) if made[1:] else made[0]


def escaped(path):
    """A path in which Hadoop sees no pattern."""
    return re.sub(r"([][{}*?\\])", r"\\\1", path)


def prepare(spark, folder):
    """Send the program to the executors, and the code that runs it by its text."""
    from pyspark import cloudpickle
    archive = os.path.join(folder, "judge.tar.gz")
    _judge.pack(_program.program(), _sources.knowledge(), archive)
    spark.sparkContext.addArchive(f"{archive}#{_judge.ARCHIVE}")
    cloudpickle.register_pickle_by_value(_judge)
    spark.conf.set("spark.sql.execution.arrow.maxRecordsPerBatch", FILES_A_BATCH)


def last_round(table):
    if table is None:
        return 0
    return table.selectExpr(f"max({_columns.ROUND})").first()[0] or 0


def judge(sources, out, seconds=_local.SECONDS, runs_a_round=None, tell=lambda text: None,
          master=None, conf=()):
    """Judge the runs below the sources on Spark: a URL of Hadoop's file systems, whose files are
    fetched, or a folder that each executor has under the same path. What was judged is kept
    `runs_a_round` at a time (None: some 100 s of work). One job at a time may write `out`. Returns
    (judged, failed, known)."""
    sources, out = [os.fspath(s) for s in sources], os.fspath(out)
    version, schema = _sources.version(), _columns.tables()[0]
    with session(master, conf) as spark, tempfile.TemporaryDirectory(prefix="whyoom-") as folder:
        found = listed(spark, sources).cache()
        table = table_of(spark, out)
        nth = last_round(table)
        wanted = missing(spark, found, table, version)
        number = found.count()
        judged = failed = 0
        if wanted:
            prepare(spark, folder)
        runs_a_round = runs_a_round or _local.ROUND * spark.sparkContext.defaultParallelism
        for part in _local.slices(wanted, runs_a_round):
            nth += 1
            rows = judged_runs(spark, part, (_columns.row_members(), version, schema, seconds, nth))
            # one file a partition, and tasks that fail to write judge nothing again
            (rows.repartition(*_columns.PARTITIONS).write.mode("append")
             .partitionBy(*_columns.PARTITIONS).parquet(out))
            judged += len(part)
            tell(f"{judged} of {len(wanted)} runs judged")
        if wanted:
            failed = table_of(spark, out).where(
                f"{_columns.ROUND} > {nth - -(-len(wanted) // runs_a_round)}"
                " AND error IS NOT NULL").count()
    return judged, failed, number - len(wanted)


# --- asking ---

def read_lines(spark, patterns):
    """Lines with `nth`: by pattern, file, block of the file, and line. Raises Error."""
    members = _columns.members()
    read = None
    for place, pattern in enumerate(patterns):
        if not _sources.is_url(pattern) and not glob.glob(pattern):
            raise _program.Error(f"{pattern}: No such file or directory")
        part = (spark.read.schema(_columns.spark_schema(members)).option("mode", "PERMISSIVE")
                .json(pattern).selectExpr(
                    *map("`{}`".format, members),
                    f"struct({place}, _metadata.file_path, _metadata.file_block_start, "
                    "monotonically_increasing_id()) AS nth"))
        read = part if read is None else read.union(part)
    return read


def make_tables(spark, sources):
    """The temporary views crash, ledger, site and forecast. Raises Error."""
    from pyspark import StorageLevel
    if len(sources) == 1 and not sources[0].endswith((".json", ".jsonl")):
        lines = table_of(spark, sources[0])
        if lines is None:
            raise _program.Error(f"{sources[0]}: no table of judged runs")
        lines = lines.selectExpr("*", f"struct({_columns.ROUND}, run) AS nth")
    else:
        # parsed once, not for each table of each question
        lines = read_lines(spark, sources).persist(StorageLevel.MEMORY_AND_DISK)
    wrong = lines.where(f"id IS NULL OR schema IS DISTINCT FROM {_columns.tables()[0]}").count()
    if wrong:
        raise _program.Error(f"{wrong} lines are none of `whyoom fleet collect --jsonl`")
    lines.createOrReplaceTempView("lines")
    for table, select in _columns.statements("explode").items():
        spark.sql(select).createOrReplaceTempView(table)


@contextlib.contextmanager
def connect(*sources, master=None, conf=()):
    """A session of Spark with the tables crash, ledger, site and forecast."""
    with session(master, conf) as spark:
        make_tables(spark, [os.fspath(s) for s in sources])
        yield spark


def ask(questions, *sources, master=None, conf=()):
    """The rows of each SELECT of {name: sql}, by its name: a list of dictionaries."""
    with connect(*sources, master=master, conf=conf) as spark:
        return {name: [row.asDict(recursive=True)
                       for row in spark.sql(_columns.for_spark(sql)).collect()]
                for name, sql in questions.items()}
