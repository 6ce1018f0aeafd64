"""What `whyoom watch` says of what memory is for, of requests and models, and of early signs: of
running programs that have them."""
import os
import resource
import shutil
import subprocess
import sys
import time

import pytest
from lib import of, values, watch

TESTS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..")

CACHE = """
class DynamicCache:
    def __init__(self):
        self.kept = []
    def update(self):
        self.kept.append(bytes(100_000))
"""
SERVER = """
import asyncio, sys, time
from transformers.cache_utils import DynamicCache
cache = DynamicCache()
for _ in range(200):
    cache.update()
own = [bytes(100_000) for _ in range(100)]
async def work(seconds):
    buffer = bytes(50_000)
    await asyncio.sleep(seconds)
async def main():
    await asyncio.gather(*(work(0.1) for _ in range(5)))
    await asyncio.gather(*(work(60) for _ in range(7)))
asyncio.run(main())
"""


@pytest.fixture
def server(tmp_path):
    """A program with a cache as transformers has it, and tasks."""
    (tmp_path / "code/transformers").mkdir(parents=True)
    (tmp_path / "code/transformers/cache_utils.py").write_text(CACHE)
    (tmp_path / "code/server.py").write_text(SERVER)
    env = {**os.environ, "WHYOOM_DIR": str(tmp_path / "traces"), "WHYOOM_QUIET": "1",
           "LD_PRELOAD": os.environ["WHYOOM_SHIM"]}
    limit = 1 << 30
    process = subprocess.Popen(
        [os.path.realpath(sys.executable), tmp_path / "code/server.py", "--model", "m/llama-8b"],
        env=env, preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (limit, limit)))
    process.traces = tmp_path / "traces"
    yield process
    process.kill()
    process.wait()


def look(tmp_path, *arguments):
    page = tmp_path / "metrics.prom"
    watch("--once", "--textfile", page, *arguments)
    return values(page.read_text())


def wait_for(tmp_path, traces, name, wanted):
    for _ in range(60):
        time.sleep(0.5)
        if not traces.exists():
            continue
        found = look(tmp_path, *traces.glob("*.whyoom"))
        if any(n == name and v == wanted for (n, _), v in found.items()):
            return found
    raise AssertionError(found)


def test_what_memory_is_for(server, tmp_path):
    found = wait_for(tmp_path, server.traces, "whyoom_tasks_in_flight", 7)
    kv = of(found, "whyoom_kv_cache_bytes", space="host")
    live = of(found, "whyoom_memory_live_bytes", space="host")
    assert 20_000_000 < kv < 21_000_000, kv  # and not the 10 MB beside it
    assert of(found, "whyoom_kv_cache_ratio", space="host") == pytest.approx(kv / live)
    assert of(found, "whyoom_memory_role_bytes", role="kv-cache") == kv
    assert of(found, "whyoom_memory_retained_bytes", space="host") < live
    assert of(found, "whyoom_process_info", model="m/llama-8b", pid=str(server.pid)) == 1


def test_early_signs(server, tmp_path):
    """Of a directory that has the files that a kernel would show."""
    group = tmp_path / "group"
    group.mkdir()
    wait_for(tmp_path, server.traces, "whyoom_tasks_in_flight", 7)
    assert not any("pressure" in n for n, _ in look(tmp_path, "--cgroup", group, server.traces))
    (group / "memory.pressure").write_text(
        "some avg10=12.50 avg60=1.00 avg300=0.00 total=2500000\n"
        "full avg10=1.25 avg60=0.10 avg300=0.00 total=500000\n")
    (group / "memory.events").write_text("low 0\nhigh 17\nmax 0\noom 0\noom_kill 0\n")
    (group / "memory.stat").write_text("pgscan 30\npgsteal 20\nworkingset_refault_file 5\n")
    found = look(tmp_path, "--cgroup", group, server.traces)
    assert of(found, "whyoom_pressure_ratio", tasks="some") == 0.125
    assert of(found, "whyoom_pressure_ratio", tasks="full") == 0.0125
    assert of(found, "whyoom_pressure_seconds_total", tasks="some") == 2.5
    assert of(found, "whyoom_throttled_total") == 17
    page = resource.getpagesize()
    assert of(found, "whyoom_reclaim_scanned_bytes_total") == 30 * page
    assert of(found, "whyoom_reclaimed_bytes_total") == 20 * page
    assert of(found, "whyoom_refault_bytes_total") == 5 * page


def test_one_pid_in_two_traces(server, tmp_path, promtool):
    """As of containers with pid namespaces of their own, which share a directory."""
    wait_for(tmp_path, server.traces, "whyoom_tasks_in_flight", 7)
    (trace,) = server.traces.glob("*.whyoom")
    again = tmp_path / "again"
    again.mkdir()
    os.link(trace, again / trace.name)
    os.link(trace, again / ("other-" + trace.name))
    page = tmp_path / "metrics.prom"
    watch("--once", "--textfile", page, again)
    promtool = os.path.join(promtool, "promtool")
    got = subprocess.run([promtool, "check", "metrics"], input=page.read_bytes(),
                         capture_output=True)
    assert got.returncode == 0, got.stdout + got.stderr
    lines = [line.rsplit(" ", 1)[0] for line in page.read_text().splitlines()]
    series = [line for line in lines if not line.startswith("#")]
    assert len(series) == len(set(series))
    found = values(page.read_text())
    assert of(found, "whyoom_process_resident_bytes", trace="other-" + trace.stem) > 0
    assert of(found, "whyoom_process_resident_bytes", trace=trace.stem) > 0
    shutil.rmtree(again)
