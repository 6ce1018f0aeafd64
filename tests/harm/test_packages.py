#!/usr/bin/env python3
"""Packages from PyPI whose work is done by native threads, worker processes and allocators of their
own: the same numbers, and the same ends. They lie in an environment in ~/.cache, which is made
once."""

import fcntl
import os
import signal
import subprocess
import sys
import tempfile

import harness
from harness import Skip, check, need, output
from test_servers import Server

PACKAGES = ["numpy==2.4.6", "pandas==3.1.1", "pyarrow==26.0.1", "polars==2.1.0", "duckdb==2.0.1",
            "scikit-learn==1.9.1", "jax==0.10.2",
            "dask[distributed]==2026.8.0", "grpcio==1.85.3", "celery[redis]==5.7.0",
            "tornado==6.6.1", "ray==2.60.0"]
# Two threads, whatever the machine has, or the sums may differ in their last digits.
TWO = {"OPENBLAS_NUM_THREADS": "2", "OMP_NUM_THREADS": "2", "POLARS_MAX_THREADS": "2",
       "PYTHONDONTWRITEBYTECODE": "1", "PYTHONHASHSEED": "0"}

PANDAS = r"""
import hashlib, os, sys
import numpy as np, pandas as pd, pyarrow as pa, pyarrow.compute as pc, pyarrow.dataset as ds, pyarrow.parquet as pq
pa.set_cpu_count(2)
def digest(x): return hashlib.sha256(x.to_csv(float_format="%.6f").encode()).hexdigest()[:16]
r = np.random.default_rng(1)
n = 200000
d = pd.DataFrame({"k": r.integers(0, 500, n), "v": r.standard_normal(n).round(6), "s": ["name %d" % (i * 7919 % 1009) for i in range(n)],
                  "t": pd.date_range("2020-01-01", periods=n, freq="min")})
print("groups", digest(d.groupby(["k"]).agg({"v": ["mean", "std"], "s": "nunique"})))
print("merged", digest(d.head(20000).merge(d[["k", "v"]].drop_duplicates("k"), on="k", suffixes=("", "_r")).sort_values(["t"])))
print("pivot", digest(d.pivot_table(index="s", columns=d.t.dt.month, values="v", aggfunc="sum").round(4)))
print("rolled", digest(d.set_index("t").v.rolling("1D").mean().resample("1D").last().to_frame().round(5)))
d.to_csv("a.csv", index=False)
print("csv", digest(pd.read_csv("a.csv", parse_dates=["t"], engine="pyarrow").describe(include="all")))
t = pa.Table.from_pandas(d)
pq.write_table(t, "a.parquet", compression="zstd", row_group_size=20000)
ds.write_dataset(t.append_column("p", pc.bit_wise_and(t["k"], 3)), "parts", format="parquet", partitioning=["p"], partitioning_flavor="hive")
back = ds.dataset("parts", partitioning="hive").to_table(filter=pc.field("k") < 100).sort_by([("t", "ascending")])
print("parts", back.num_rows, digest(back.to_pandas()[["k", "v", "s"]].reset_index(drop=True)))
g = t.group_by("s").aggregate([("v", "sum"), ("k", "max")]).sort_by("s")
print("arrow", round(pc.sum(g["v_sum"]).as_py(), 4), pc.sum(g["k_max"]).as_py(), pq.read_table("a.parquet", use_threads=True).equals(t))
for kind in ("system", "jemalloc", "mimalloc"):
    try:
        pool = {"system": pa.system_memory_pool, "jemalloc": pa.jemalloc_memory_pool, "mimalloc": pa.mimalloc_memory_pool}[kind]()
    except NotImplementedError:
        print(kind, "not built in"); continue
    blocks = [pa.allocate_buffer(i * 97, memory_pool=pool) for i in range(3000)]
    print(kind, pool.bytes_allocated()); del blocks; print(pool.bytes_allocated())
try:
    pa.allocate_buffer(1 << 60)
except pa.ArrowMemoryError as e:
    print(type(e).__name__, e)
sys.stdout.flush(); sys.exit(7)
"""
POLARS = r"""
import hashlib, sys
import polars as pl
n = 400000
d = pl.DataFrame({"i": range(n)}).with_columns(k=pl.col("i") * 7919 % 1009, v=(pl.col("i") * 31 % 10007).cast(pl.Float64) / 7,
                                               s=pl.format("name {}", pl.col("i") * 17 % 4099))
def digest(x): return hashlib.sha256(x.write_csv(float_precision=5).encode()).hexdigest()[:16]
print("threads", pl.thread_pool_size())
q = d.lazy().filter(pl.col("v") > 100).group_by("k").agg(pl.col("v").mean(), pl.col("s").n_unique().alias("names"), pl.len()).sort("k")
print("groups", digest(q.collect()), digest(q.collect(engine="streaming")))
print("join", digest(d.lazy().join(d.lazy().group_by("s").agg(pl.col("v").max().alias("most")), on="s").sort("i").collect()))
print("windows", digest(d.select("i", pl.col("v").cum_sum().over("k").round(3), r=pl.col("v").rolling_mean(50).round(4))))
print("strings", digest(d.select(pl.col("s").str.extract(r"(\d+)$").cast(pl.Int64).sort(), u=pl.col("s").str.to_uppercase())))
d.write_parquet("a.parquet"); d.write_ipc("a.arrow", compression="lz4")
print("read", pl.scan_parquet("a.parquet").filter(pl.col("k") == 7).select(pl.col("i").sum()).collect().item(), pl.read_ipc("a.arrow").equals(d))
print("sorted", digest(d.sort(["k", "s", "i"]).head(5000)), digest(d.pivot("k", index="s", values="v", aggregate_function="len").sort("s").select("s", "7").head(500)))
try:
    d.select(pl.col("nothing"))
except pl.exceptions.ColumnNotFoundError as e:
    print(type(e).__name__)
print("udf", d.head(5000).select(pl.col("i").map_elements(lambda i: i * i % 97, return_dtype=pl.Int64).sum()).item())
sys.stdout.flush(); sys.exit(7)
"""
DUCKDB = r"""
import sys, threading
import duckdb
c = duckdb.connect("a.db", config={"threads": 2, "memory_limit": "400MB", "temp_directory": "spilled"})
c.execute("create table t as select i, i * 7919 % 10007 as k, 'name ' || (i * 31 % 4099) as s, (i * 17 % 1009) / 7.0 as v from range(1500000) r(i)")
def ask(q): return c.execute(q).fetchall()
print(ask("select count(*), sum(k), max(s), round(sum(v), 3) from t"))
print(ask("select s, count(*) n, round(avg(v), 5) from t group by s order by n desc, s limit 4"))
print(ask("select count(*), sum(a.i) from t a join t b on a.k = b.k and a.i = b.i + 10007"))
print(ask("select sum(r), max(m) from (select row_number() over (partition by k order by v, i) r, max(i) over (partition by s) m from t)"))
print(ask("select md5(string_agg(s, ',' order by v, i)) from t where k < 200"))
print(ask("select i, s from t order by s desc, i desc limit 3 offset 700000"))
c.execute("copy t to 'a.parquet' (format parquet, compression zstd)")
print(ask("select count(*), sum(i) from 'a.parquet' where k between 50 and 60"))
c.execute("begin; update t set v = v + 1 where k % 3 = 0; delete from t where k > 9000; commit; checkpoint")
print(ask("select count(*), round(sum(v), 2) from t"))
out = []
def reader(n):
    out.append((n, c.cursor().execute("select count(*), sum(i) from t where k %% 7 = %d" % n).fetchall()))
threads = [threading.Thread(target=reader, args=(n,)) for n in range(6)]
[t.start() for t in threads]; [t.join() for t in threads]
print(sorted(out))
c.execute("set memory_limit = '60MB'; set max_temp_directory_size = '0KB'")
try:
    print(ask("select list(s || i || repeat('x', 100)) from t"))
except duckdb.OutOfMemoryException as e:
    print(type(e).__name__)
c.close(); sys.stdout.flush(); sys.exit(7)
"""
SKLEARN = r"""
import pickle, sys
import numpy as np
from sklearn import cluster, datasets, decomposition, ensemble, linear_model, model_selection, neighbors, svm
x, y = datasets.make_classification(2500, 20, n_informative=8, random_state=1)
f = ensemble.RandomForestClassifier(60, n_jobs=2, random_state=1).fit(x, y)
print("forest", f.score(x[:500], y[:500]), np.round(f.feature_importances_[:5], 6), len(pickle.dumps(f)) > 100000)
print("boosted", round(ensemble.HistGradientBoostingClassifier(max_iter=30, random_state=1).fit(x, y).score(x, y), 6))
print("svm", svm.SVC(random_state=1).fit(x[:1500], y[:1500]).score(x, y))
k = cluster.KMeans(5, n_init=3, random_state=1).fit(x); print("means", round(k.inertia_, 3))
print("pca", np.round(decomposition.PCA(4, random_state=1).fit(x).explained_variance_ratio_, 6))
print("near", neighbors.KNeighborsClassifier(n_jobs=2).fit(x, y).score(x[:800], y[:800]))
print("line", np.round(linear_model.LogisticRegression(max_iter=300).fit(x, y).coef_[0][:4], 4))
print("in processes", np.round(model_selection.cross_val_score(ensemble.ExtraTreesClassifier(20, random_state=2), x, y, n_jobs=2, cv=4), 6))
try:
    svm.SVC().fit(x[:5], np.zeros(5))
except ValueError as e:
    print(type(e).__name__, str(e)[:60])
sys.stdout.flush(); sys.exit(7)
"""
JAX = r"""
import sys
import jax, jax.numpy as jnp
from jax import lax
print([d.platform for d in jax.devices()])
k = jax.random.PRNGKey(1)
def layers(key, sizes): return [(jax.random.normal(q, (a, b)) / a ** 0.5, jnp.zeros(b)) for q, a, b in zip(jax.random.split(key, len(sizes)), sizes, sizes[1:])]
def net(p, x):
    for w, b in p[:-1]: x = jax.nn.relu(x @ w + b)
    return x @ p[-1][0] + p[-1][1]
x = jax.random.normal(k, (512, 32)); y = jnp.sin(x.sum(1, keepdims=True))
loss = lambda p: jnp.mean((net(p, x) - y) ** 2)
step = jax.jit(lambda p: jax.tree.map(lambda a, g: a - 0.05 * g, p, jax.grad(loss)(p)))
p = layers(k, [32, 96, 96, 1])
for i in range(60): p = step(p)
print("loss", round(float(loss(p)), 3))
print("scan", float(lax.scan(lambda c, v: ((c * 31 + v) % 1009, c), 1, jnp.arange(1000))[0]))
print("vmap", round(float(jax.vmap(lambda m: jnp.linalg.slogdet(m)[1])(jax.random.normal(k, (40, 20, 20))).sum()), 1))
print("while", int(lax.while_loop(lambda s: s[0] < 300, lambda s: (s[0] + 1, s[1] ^ (s[0] * 7919)), (0, 1))[1]))
print("fft", round(float(jnp.abs(jnp.fft.fft(x[0]))[3]), 3), "sort", int(jnp.argsort(x.ravel())[7]))
print("conv", round(float(lax.conv(jnp.ones((1, 3, 40, 40)), jax.random.normal(k, (8, 3, 5, 5)), (1, 1), "SAME").sum()), 1))
for n in range(4): jax.jit(lambda v: jnp.cumsum(v * n)[::-1].sum())(jnp.arange(10 + n)).block_until_ready()
buffers = [jnp.zeros((i, 64)) for i in range(1, 20) for _ in range(100)]; print("live", sum(b.size for b in buffers)); del buffers
try:
    jnp.zeros((1 << 24, 1 << 24)).block_until_ready()
except Exception as e:
    print(type(e).__name__)
sys.stdout.flush(); sys.exit(7)
"""
DASK = r"""
import os, sys
import dask, dask.array as da, dask.bag as db, dask.dataframe as dd, numpy as np, pandas as pd
from dask.distributed import Client, LocalCluster
def busy(k):
    rows = [{"id": i, "text": "x" * (i * k % 200)} for i in range(2000)]
    return sum(len(r["text"]) for r in rows)
def dies(path):
    if not os.path.exists(path):
        open(path, "w").close()
        os._exit(9)
    return "retried"
if __name__ == "__main__":
    dask.config.set({"distributed.worker.daemon": True, "distributed.logging.distributed": "critical", "distributed.logging.bokeh": "critical"})
    with LocalCluster(n_workers=2, threads_per_worker=2, dashboard_address=None, host="127.0.0.1", memory_limit=0) as cluster, Client(cluster) as client:
        x = da.from_array(np.arange(1000000).reshape(1000, 1000) * 7919 % 1009, chunks=(250, 250))
        print("array", int(x.sum().compute()), int((x @ x.T)[::100, ::100].sum().compute()), float(x.std(axis=0).mean().round(6).compute()))
        d = dd.from_pandas(pd.DataFrame({"k": np.arange(60000) * 31 % 500, "v": np.arange(60000.0)}), npartitions=8)
        print("frame", d.groupby("k").v.sum().compute().sort_index().head(3).tolist(), len(d.set_index("v", divisions=[0, 30000, 59999]).compute()))
        print("bag", db.from_sequence(range(5000), npartitions=10).map(lambda i: i * i % 97).frequencies().topk(3, key=lambda p: (p[1], p[0])).compute())
        print("tasks", sum(client.gather(client.map(busy, range(1, 40)))))
        print("killed", client.submit(dies, os.path.abspath("died"), retries=3).result(timeout=120))
        print("again", sum(client.gather(client.map(busy, range(41, 50)))))
        try:
            client.submit(lambda: 1 / 0).result()
        except ZeroDivisionError as e:
            print(type(e).__name__, e)
    print("locally", int(x.max().compute(scheduler="threads")), flush=True)
    sys.exit(7)
"""
RAY = r"""
import logging, os, sys, time
import functools
import numpy as np, ray
# what Ray prints of its processes bears their ids: it goes to stderr
mine = os.fdopen(os.dup(1), "w")
os.dup2(2, 1)
print = functools.partial(print, file=mine, flush=True)
ray.init(num_cpus=3, object_store_memory=200 << 20, include_dashboard=False, log_to_driver=False, logging_level=logging.CRITICAL, _temp_dir=sys.argv[1])
@ray.remote
def busy(k):
    rows = [{"id": i, "text": "x" * (i * k % 200)} for i in range(3000)]
    return sum(len(r["text"]) for r in rows)
@ray.remote
def large(k): return np.full((300, 1000), k, dtype=np.int64)
@ray.remote
def total(*parts): return int(sum(p.sum() for p in parts))
@ray.remote(max_retries=3)
def dies(path):
    if not os.path.exists(path):
        open(path, "w").close()
        os._exit(9)
    return "retried"
@ray.remote
class Counter:
    def __init__(self): self.n = {}
    def add(self, k): self.n[k % 97] = self.n.get(k % 97, 0) + k; return len(self.n)
    def all(self): return sum(self.n.values())
@ray.remote
def fails(): raise ValueError("on purpose")
print("tasks", sum(ray.get([busy.remote(k) for k in range(1, 40)])))
parts = [large.remote(k) for k in range(24)]
print("objects", ray.get(total.remote(*parts)), ray.get(parts[7])[3, 3])
c = Counter.remote()
print("actor", ray.get([c.add.remote(i) for i in range(300)])[-1], ray.get(c.all.remote()))
print("killed", ray.get(dies.remote(os.path.abspath("died")), timeout=120))
try:
    ray.get(fails.remote())
except ValueError as e:
    print(type(e).__name__, "on purpose" in str(e))
ray.kill(c)
try:
    ray.get(c.all.remote())
except ray.exceptions.RayActorError as e:
    print("the actor is dead")
print("again", sum(ray.get([busy.remote(k) for k in range(41, 60)])))
ray.shutdown()
sys.exit(7)
"""
GRPC = r"""
import concurrent.futures, hashlib, subprocess, sys, threading
import grpc
class Service(grpc.GenericRpcHandler):
    def service(self, details):
        name = details.method.rsplit("/", 1)[1]
        return {"one": grpc.unary_unary_rpc_method_handler(lambda q, c: hashlib.sha256(q * 50).digest()),
                "many": grpc.unary_stream_rpc_method_handler(lambda q, c: (q + b"%d" % i for i in range(int(q)))),
                "sum": grpc.stream_unary_rpc_method_handler(lambda qs, c: b"%d" % sum(len(q) for q in qs)),
                "talk": grpc.stream_stream_rpc_method_handler(lambda qs, c: (q[::-1] for q in qs)),
                "fails": grpc.unary_unary_rpc_method_handler(lambda q, c: c.abort(grpc.StatusCode.NOT_FOUND, "on purpose"))}.get(name)
server = grpc.server(concurrent.futures.ThreadPoolExecutor(4), handlers=(Service(),), options=[("grpc.max_receive_message_length", 64 << 20)])
port = server.add_insecure_port("127.0.0.1:0")
server.start()
seen, lock = {}, threading.Lock()
def client(k):
    with grpc.insecure_channel("127.0.0.1:%d" % port, options=[("grpc.use_local_subchannel_pool", 1), ("grpc.max_send_message_length", 64 << 20)]) as ch:
        got = [b"".join(ch.unary_unary("/s/one")(b"x" * (i * 97 % 3000)) for i in range(150)),
               b"".join(ch.unary_stream("/s/many")(b"%d" % (200 + k))), ch.stream_unary("/s/sum")(b"y" * i for i in range(300)),
               b"".join(ch.stream_stream("/s/talk")(b"%d" % i for i in range(300))), ch.unary_unary("/s/one")(b"z" * (3 << 20)),
               b"".join(f.result() for f in [ch.unary_unary("/s/one").future(b"%d" % i) for i in range(100)])]
        try:
            ch.unary_unary("/s/fails")(b"")
        except grpc.RpcError as e:
            got.append(("%s %s" % (e.code(), e.details())).encode())
        try:
            ch.unary_unary("/s/nothing")(b"", timeout=20)
        except grpc.RpcError as e:
            got.append(str(e.code()).encode())
        with lock:
            seen[k] = hashlib.sha256(b"|".join(got)).hexdigest()[:16]
threads = [threading.Thread(target=client, args=(k,)) for k in range(6)]
[t.start() for t in threads]; [t.join() for t in threads]
print(sorted(seen.items()))
print(subprocess.run(["sh", "-c", "echo child; exit 3"], capture_output=True))
server.stop(1).wait()
sys.stdout.flush(); sys.exit(7)
"""
CELERY = r"""
import hashlib, os, sys
from celery import Celery, chain, chord, group
here = os.environ["TMPDIR"]
app = Celery("tasks", broker="redis+socket://%s/s" % here, backend="redis+socket://%s/s" % here)
app.conf.update(worker_max_tasks_per_child=20, worker_hijack_root_logger=False, broker_connection_retry_on_startup=True)
@app.task
def work(n):
    rows = [{"id": i, "text": "x" * (i * n % 300)} for i in range(3000)]
    return hashlib.sha256(repr(rows).encode()).hexdigest()[:12]
@app.task
def add(a, b): return a + b
@app.task
def fails(): raise ValueError("on purpose")
@app.task(acks_late=True, reject_on_worker_lost=False)
def dies(): os._exit(9)
if __name__ == "__main__":
    def get(r): return r.get(timeout=150, interval=0.02)
    print(get(work.delay(7)))
    print([get(r) for r in [work.delay(n) for n in range(60)]])
    print(get(chain(add.s(1, 2), add.s(3), add.s(4)).delay()))
    print(sum(get(r) for r in [add.delay(i, i) for i in range(100)]))
    for t in (fails, dies):
        try:
            get(t.delay())
        except Exception as e:
            print(type(e).__name__)
    print(get(work.delay(8)), flush=True)
    sys.exit(7)
"""
TORNADO = r"""
import concurrent.futures, os, sys
import tornado.httpserver, tornado.ioloop, tornado.netutil, tornado.process, tornado.web
sys.path.insert(0, sys.argv[2])
import app
class Any(tornado.web.RequestHandler):
    async def get(self):
        loop = tornado.ioloop.IOLoop.current()
        status, text = await loop.run_in_executor(pool, app.answer, self.request.path)
        self.set_status(status)
        for i in range(0, len(text), 50):
            self.write(text[i:i + 50]); await self.flush()
    def log_exception(self, *a): pass
sockets = tornado.netutil.bind_sockets(int(sys.argv[1]), "127.0.0.1")
tornado.process.fork_processes(2)
pool = concurrent.futures.ThreadPoolExecutor(4)
server = tornado.httpserver.HTTPServer(tornado.web.Application([(".*", Any)], log_function=lambda h: None))
server.add_sockets(sockets)
tornado.ioloop.IOLoop.current().start()
"""


def python():
    """The interpreter of the environment that has them all; Skip where it cannot be made."""
    cache = os.environ.get("WHYOOM_TEST_CACHE") or os.path.expanduser("~/.cache/whyoom-tests")
    number = harness.version([harness.PYTHON, "--version"], r"Python (\d+\.\d+)")
    folder = os.path.join(cache, "harm-py" + number)
    interpreter, ready = os.path.join(folder, "bin", "python"), os.path.join(folder, "has")
    os.makedirs(cache, exist_ok=True)
    with open(folder + ".lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not os.path.exists(ready) or open(ready).read() != " ".join(PACKAGES):
            for words in ([harness.PYTHON, "-m", "venv", "--clear", folder],
                          [interpreter, "-m", "pip", "install", "-q", "--only-binary=:all:",
                           "--retries=2", "--timeout=30",
                           "--disable-pip-version-check", *PACKAGES]):
                done = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                      stdin=subprocess.DEVNULL, text=True)
                if done.returncode:
                    raise Skip("%s: %s" % (words[2],
                                           (done.stdout.strip().splitlines()
                                            or ["it says nothing"])[-1][:200]))
            with open(ready, "w") as f:
                f.write(" ".join(PACKAGES))
    return interpreter


def about(job, name, package, what):
    """The interpreter; and for the table the package's version."""
    interpreter = python()
    ask = "from importlib.metadata import version; print(version(%r))" % package
    job.about("%s %s" % (name, harness.version([interpreter, "-c", ask], r"([\d.]+)")), what)
    return interpreter


def run(job, name, package, what, script, least, processes=1, arguments=lambda short: [],
        stderr=True):
    """A script to its end. stderr: whether what it says there is compared, too (logs with times are
    not)."""
    interpreter = about(job, name, package, what)
    path = job.source("program.py", script)

    def one(side):
        # the path of a socket in it must be short
        with tempfile.TemporaryDirectory(prefix="whyoom-", dir="/tmp",
                                         ignore_cleanup_errors=True) as short:
            end, out, err = output(side, side.run([interpreter, path, *arguments(short)], env=TWO))
        return (end, out, err) if stderr else (end, out,
                                               [w for w in (b"Fatal Python error", b"whyoom: ")
                                                if w in err])

    got = job.both(one)
    check(got[0] == "status 7", "it ends with %s" % (got,))
    found = job.preload.traces(least=least, processes=processes)
    return "%d traces, %d events" % (len(found), sum(p["events"] for p in found))


def celery(job):
    interpreter = about(job, "Celery", "celery", "prefork workers that are replaced, one that "
                        "dies; tasks through Redis")
    redis = need("redis-server")
    path = job.source("tasks.py", CELERY)

    def session(side):
        env = dict(TWO, PYTHONPATH=job.top)
        got = {}
        broker = side.start([redis, "--port", "0", "--unixsocket", side.path("s"), "--save", ""],
                            preload=False, stdout=subprocess.DEVNULL)
        harness.wait_for(lambda: os.path.exists(side.path("s")), "Redis does not start")
        with open(side.path("log"), "wb") as log:
            p = side.start([interpreter, "-m", "celery", "-A", "tasks", "worker", "-c", "2", "-l",
                            "warning", "--without-gossip", "--without-mingle"],
                           env=env, stdout=log, stderr=subprocess.STDOUT)
        try:
            got["tasks"] = output(side, side.run([interpreter, path], env=env))
        finally:
            got["end"] = harness.stop(p, signal.SIGTERM)
            broker.kill()
            broker.wait()
        with open(side.path("log"), errors="replace") as f:
            text = f.read()
        got["log"] = {w: text.count(w) for w in ("WorkerLostError", "ValueError: on purpose",
                                                 "Fatal", "SIGSEGV", "whyoom: ")}
        return got

    got = job.both(session)
    check(got["tasks"][0] == "status 7" and got["end"] == "status 0", "it ends with %s" % got)
    found = job.preload.traces(least=10000, processes=6)
    return "%d traces, %d events" % (len(found), sum(p["events"] for p in found))


def tornado(job):
    interpreter = about(job, "Tornado", "tornado", "two forked processes with threads under load, "
                        "one killed")
    path = job.source("server.py", TORNADO)

    def session(side):
        port = harness.free_port()
        s = Server(side, [interpreter, path, str(port), harness.HERE], port, env=TWO)
        got = {}
        try:
            got["load"] = s.load()
            victims = s.workers(2)
            os.kill(min(victims), signal.SIGKILL)
            harness.wait_for(lambda: len(s.workers(2) - victims) > 0, s.tail)
            got["after a kill"] = s.load()
            for pid in s.workers(2):
                os.kill(pid, signal.SIGINT)
        finally:
            got["end"] = harness.stop(s.p, signal.SIGTERM, s.tail)
        got["wrong"] = s.wrong()
        return got

    got = job.both(session)
    check(not got["wrong"] and got["load"]["/make/7"][0][0] == 200, "it ends with %s" % got)
    found = job.preload.traces(least=5000, processes=3)
    return "%s, %d traces, %d events" % (got["end"], len(found), sum(p["events"] for p in found))


CASES = {
    "pandas": lambda job: run(job, "pandas, pyarrow", "pandas",
                              "groups, joins, Parquet with threads, Arrow's three allocators",
                              PANDAS, 20000),
    "polars": lambda job: run(job, "Polars", "polars",
                              "lazy and streaming queries in threads, with an allocator of its own",
                              POLARS, 5000),
    "duckdb": lambda job: run(job, "DuckDB", "duckdb", "1.5 million rows in threads, a database "
                              "file, Parquet, a query over its limit", DUCKDB, 20000),
    "sklearn": lambda job: run(job, "scikit-learn", "scikit-learn", "forests, boosting, clusters; "
                               "OpenMP, joblib's threads and processes", SKLEARN, 20000, 3),
    "jax": lambda job: run(job, "JAX (CPU)", "jax", "compiles and runs a training, scans, maps; an "
                           "array that is refused", JAX, 50000),
    "dask": lambda job: run(job, "Dask", "dask", "a cluster of processes, one of which dies: "
                            "arrays, frames, bags, tasks", DASK, 50000, 4, stderr=False),
    "ray": lambda job: run(job, "Ray", "ray", "its store, tasks, actors, a worker that dies", RAY,
                           50000, 4, arguments=lambda short: [short], stderr=False),
    "grpc": lambda job: run(job, "gRPC (Python)", "grpcio",
                            "a server and six clients: calls, streams both ways, errors", GRPC,
                            20000),
    "celery": celery,
    "tornado": tornado,
}

if __name__ == "__main__":
    sys.exit(harness.main(sys.argv, CASES))
