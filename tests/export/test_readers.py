"""The exports in the programs and libraries that they are for, where these come from PyPI:
Perfetto's own protobuf, its whole UI with the trace processor, pyarrow and DuckDB."""

import importlib
import json
import os
import shutil
import subprocess
import sys

import pytest
from lib import MEASURES, TESTS, export, golden, read_jsonl, sites, spaces

sys.path.insert(0, os.path.join(TESTS, "torch"))
import wheel  # noqa: E402

TRACES = [t for t in golden() if os.path.basename(t) in ("order", "spaces", "sampled", "marks")]
PACKAGES = ["perfetto==0.59.1", "protobuf==7.36.2", "viztracer==1.1.1", "objprint==0.3.0",
            "pyarrow==26.0.1", "duckdb==2.0.1"]


@pytest.fixture(scope="module")
def python():
    try:
        return wheel.environment(("export-readers", PACKAGES))
    except wheel.Skip as reason:
        pytest.skip(str(reason))


def run(python, program, *words, timeout=120):
    done = subprocess.run([python, "-c", program, *map(str, words)], capture_output=True, text=True,
                          timeout=timeout)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


PROTOBUF = """
import json, sys
from perfetto.protos.perfetto.trace.perfetto_trace_pb2 import Trace
t = Trace()
t.ParseFromString(open(sys.argv[1], "rb").read())
heaps = {}
for p in t.packet:
    for d in p.profile_packet.process_dumps if p.HasField("profile_packet") else ():
        h = heaps.setdefault(d.heap_name, {})
        # Since the start: the last one of a stack counts.
        h.update((s.callstack_id, s.self_allocated - s.self_freed) for s in d.samples)
print(json.dumps({name: sum(h.values()) for name, h in heaps.items()}))
"""


@pytest.mark.parametrize("trace", TRACES, ids=os.path.basename)
def test_perfetto_protobuf(trace, python, tmp_path):
    path = tmp_path / "t.pftrace"
    path.write_bytes(export(trace, "perfetto", "--at", "end"))
    heaps = run(python, PROTOBUF, path)
    for space in spaces(trace):
        expected = sites(trace, space, "end")
        if expected:
            heap = heaps.get("libc.malloc" if space == "host" else space, 0)
            assert heap == expected["live"]


# The page is served to the browser on loopback; the trace processor in it answers SQL.
PAGE = """
const done = arguments[arguments.length - 1], answers = {};
(async () => {
  while (!(self.app && self.app.trace && self.app.trace.engine))
    await new Promise(f => setTimeout(f, 200));
  for (const [name, [sql, columns]] of Object.entries(arguments[0])) {
    const result = await self.app.trace.engine.query(sql);
    answers[name] = [];
    for (const it = result.iter({}); it.valid(); it.next())
      answers[name].push(columns.map(c => typeof it.get(c) === 'bigint' ? Number(it.get(c))
                                                                       : it.get(c)));
  }
})().then(() => done(answers), e => done('' + e));
"""
QUERIES = {
    "errors": ["select name n, value v from stats where value > 0 and severity = 'error'",
               ["n", "v"]],
    "heaps": ["select heap_name h, sum(size) s from heap_profile_allocation group by 1",
              ["h", "s"]],
    "counters": ["select t.name n, max(value) m from counter join track t on t.id = track_id"
                 " group by 1", ["n", "m"]],
    "slices": ["select t.name t, s.name n from slice s join track t on t.id = s.track_id",
               ["t", "n"]],
}


@pytest.fixture(scope="module")
def page(python, tmp_path_factory):
    webdriver = pytest.importorskip("selenium.webdriver")
    if not shutil.which("chromium") or not shutil.which("chromedriver"):
        pytest.skip("chromium with its driver is not installed")
    folder = tmp_path_factory.mktemp("page") / "dist"
    dist = run(python, "import json, os, viztracer; print(json.dumps(os.path.join("
                       "os.path.dirname(viztracer.__file__), 'web_dist')))")
    shutil.copytree(dist, folder)
    server = subprocess.Popen([sys.executable, "-u", "-m", "http.server", "--bind", "127.0.0.1",
                               "--directory", folder, "0"], stdout=subprocess.PIPE,
                              stderr=subprocess.DEVNULL, text=True)
    port = server.stdout.readline().split("port ")[1].split()[0]
    options = webdriver.ChromeOptions()
    options.binary_location = shutil.which("chromium")
    for word in ("--headless=new", "--no-sandbox", "--disable-dev-shm-usage"):
        options.add_argument(word)
    service = importlib.import_module("selenium.webdriver.chrome.service")
    browser = webdriver.Chrome(options=options, service=service.Service(shutil.which(
        "chromedriver")))
    browser.set_script_timeout(100)
    try:
        yield browser, folder, f"http://127.0.0.1:{port}"
    finally:
        browser.quit()
        server.kill()
        server.wait()


@pytest.mark.parametrize("trace", TRACES, ids=os.path.basename)
def test_perfetto_ui(trace, page):
    browser, folder, url = page
    name = os.path.basename(trace) + ".pftrace"
    (folder / name).write_bytes(export(trace, "perfetto", "--at", "end"))
    browser.get("about:blank")
    browser.get(f"{url}/index.html#!/?url={url}/{name}")
    said = browser.execute_async_script(PAGE, QUERIES)
    assert isinstance(said, dict), said
    assert said["errors"] == []
    heaps = dict(said["heaps"])
    for space in spaces(trace):
        expected = sites(trace, space, "end")
        if expected and expected["total"]:
            assert heaps["libc.malloc" if space == "host" else space] == expected["live"]
    lines = read_jsonl(export(trace, "jsonl"))
    most = {}
    for x in lines:
        if x["type"] == "sample":
            key = f"{x['space']}: {x['curve']}"
            most[key] = max(most.get(key, 0), int(x["bytes"]))
    counters = dict(said["counters"])
    assert {key: counters[key] for key in most} == most
    assert "whyoom" in dict(said["slices"])
    assert os.path.basename(trace) != "marks" or "requests" in dict(said["slices"])


TABLES = """
import json, sys, duckdb, pyarrow.parquet as pq
out = {}
for name in ("events", "sums"):
    path = sys.argv[1] + "/" + name + ".parquet"
    table, file = pq.read_table(path), duckdb.sql(f"select * from '{path}'")
    rows = [tuple(r.values()) for r in table.to_pylist()]
    assert rows == file.fetchall() and table.num_rows == pq.read_metadata(path).num_rows
    assert not any(c.null_count for c in table.columns)
    assert pq.read_metadata(path).metadata[b"whyoom.pid"].isdigit()
out["kinds"] = duckdb.sql(f"select kind, count(*) from '{sys.argv[1]}/events.parquet' group by 1").fetchall()
out["sums"] = duckdb.sql("select space, " + ", ".join(f"sum({c})::bigint" for c in sys.argv[2:]) +
                         f" from '{sys.argv[1]}/sums.parquet' where total_bytes > 0 group by 1").fetchall()
print(json.dumps(out))
"""


@pytest.mark.parametrize("trace", golden(), ids=os.path.basename)
def test_parquet(trace, python, tmp_path):
    (tmp_path / "events.parquet").write_bytes(export(trace, "parquet"))
    (tmp_path / "sums.parquet").write_bytes(export(trace, "parquet", "--events", "none", "--at",
                                                   "end"))
    said = run(python, TABLES, tmp_path, *MEASURES.values())
    found = {space: values for space, *values in said["sums"]}
    for space in spaces(trace):
        expected = sites(trace, space, "end")
        if expected and expected["total"]:
            assert found[space] == list(expected.values()), space
    kinds = [x["kind"] for x in read_jsonl(export(trace, "jsonl")) if x["type"] == "event"]
    assert dict(said["kinds"]) == {k: kinds.count(k) for k in set(kinds) - {"mark"}}
