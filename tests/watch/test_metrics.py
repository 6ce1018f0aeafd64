"""`whyoom watch --metrics`: what it serves is what the trace says, in the form that Prometheus and
pprof take."""
import gzip
import importlib.util
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import time

import pytest
from lib import WHYOOM, Server, of, values, watch

TESTS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..")
PACKAGING = os.path.join(TESTS, "..", "packaging")


def export_lib():
    path = os.path.join(TESTS, "export", "lib.py")
    module = importlib.util.module_from_spec(spec := importlib.util.spec_from_file_location(
        "export_lib", path))
    spec.loader.exec_module(module)
    return module


def total(profile, kind):
    types, samples = profile
    at = [name for name, _ in types].index(kind)
    return sum(values[at] for _, _, values in samples)


def default_type(lib, profile):
    message = lib.message(gzip.decompress(profile))
    return message[6][message[14][0]]


def check_metrics(promtool, page):
    got = subprocess.run([os.path.join(promtool, "promtool"), "check", "metrics"], input=page,
                         capture_output=True)
    assert got.returncode == 0, got.stdout + got.stderr


def trace_of(programs, pid):
    (found,) = [os.path.join(d, f) for d, _, files in os.walk(programs.folder) for f in files
                if f.endswith(".whyoom") and re.search(rf"\b{pid}\b", f)]
    return found


def test_metrics_over_http(programs, promtool):
    leaks = programs.start("leak", "60")
    time.sleep(1.5)
    with Server("--interval", "0.3", "--warm-up", "0", "--label", "pod=a", programs.folder) as s:
        status, headers, page = s.ask("/metrics")
        assert status == 200
        assert headers["Content-Type"] == "text/plain; version=0.0.4; charset=utf-8"
        check_metrics(promtool, page)
        first = values(page.decode())
        assert of(first, "whyoom_memory_live_bytes", pid=str(leaks.pid), pod="a", space="host") > 0
        assert of(first, "whyoom_allocator_free_bytes", allocator="malloc") > 0
        assert of(first, "whyoom_largest_request_bytes", space="host") >= 60000
        # They go on, and so does a process that comes later.
        second = programs.start("steady", "60")
        for _ in range(100):
            time.sleep(0.1)
            later = s.values()
            if any(name == "whyoom_memory_live_bytes" and ("pid", str(second.pid)) in labels and v
                   for (name, labels), v in later.items()):
                break
        assert of(later, "whyoom_memory_live_bytes", pid=str(second.pid)) > 0
        for name in ("whyoom_watch_looks_total", "whyoom_watch_answers_total",
                     "whyoom_watch_cpu_seconds_total"):
            assert of(later, name) > of(first, name)
        assert of(later, "whyoom_events_total", pid=str(leaks.pid)) > of(
            first, "whyoom_events_total", pid=str(leaks.pid))
        leaks.kill()
        for _ in range(100):
            time.sleep(0.1)
            if f'pid="{leaks.pid}"' not in (page := s.ask("/metrics")[2].decode()):
                break
        assert f'pid="{leaks.pid}"' not in page and f'pid="{second.pid}"' in page
        status, headers, page = s.ask("/")
        assert status == 200 and headers["Content-Type"] == "text/plain; charset=utf-8"
        assert f"pid {second.pid} " in page.decode() and "/debug/pprof/heap" in page.decode()


def test_heap_profile_is_the_export(programs):
    """The process stands still, so the file says the same."""
    lib = export_lib()
    steady = programs.start("steady", "60")
    time.sleep(1)
    with Server("--interval", "0.2", programs.folder) as s:
        steady.send_signal(signal.SIGSTOP)
        time.sleep(0.5)  # what is younger waits for a later look
        looks = of(s.values(), "whyoom_watch_looks_total")
        while of(s.values(), "whyoom_watch_looks_total") < looks + 3:
            time.sleep(0.1)
        status, headers, body = s.ask("/debug/pprof/heap")
        assert status == 200 and headers["Content-Type"] == "application/octet-stream"
        allocs = s.ask(f"/debug/pprof/allocs?pid={steady.pid}&space=host")[2]
        live = of(s.values(), "whyoom_memory_live_bytes", space="host")
    exported = subprocess.run([WHYOOM, "export", "-f", "pprof", "--at", "end", "--space", "host",
                               trace_of(programs, steady.pid)], capture_output=True, check=True)
    steady.send_signal(signal.SIGCONT)

    served, filed = lib.read_pprof(body), lib.read_pprof(exported.stdout)
    assert total(served, "inuse_space") == total(filed, "inuse_space") == live
    for kind in ("alloc_objects", "alloc_space", "inuse_objects", "peak_space"):
        assert total(served, kind) == total(filed, kind) > 0
    assert 0.3e9 < lib.message(gzip.decompress(body))[10][0] < 60e9  # ns that it ran
    # The same with another default.
    assert lib.message(gzip.decompress(body))[6] == lib.message(gzip.decompress(allocs))[6]
    assert default_type(lib, body) == b"inuse_space" and default_type(lib, allocs) == b"alloc_space"


def test_refusals_of_the_server(programs):
    steady = programs.start("steady", "60")
    time.sleep(0.7)
    with Server(programs.folder) as s:
        for path, status, words in (
                ("/none", 404, "there is /, /metrics"), ("/debug/pprof/heap?pid=1", 404, "no such"),
                ("/debug/pprof/heap?space=cuda:7", 404, "no space of that name"),
                ("/debug/pprof/heap?seconds=5", 400, "neither"),
                ("/debug/pprof/allocs?debug=1", 400, "neither")):
            got = s.ask(path)
            assert got[0] == status and words in got[2].decode(), got
        for method in ("POST", "PUT", "DELETE", "OPTIONS"):
            got = s.ask("/metrics", method)
            assert got[0] == 405 and got[1]["Allow"] == "GET, HEAD"
        got = s.ask("/metrics", "HEAD")
        assert got[0] == 200 and not got[2] and int(got[1]["Content-Length"]) > 1000
        # Only this machine is let in, and the port is taken.
        taken = watch("--metrics", f":{s.port}", programs.folder, check=False)
        assert taken.returncode == 1 and "Address already in use" in taken.stderr
    assert steady.poll() is None


@pytest.mark.parametrize("address", ["x", "", ":", "1.2.3:80", "::1:80", "[::1]", "127.0.0.1:65536",
                                     "127.0.0.1:-1", "example.org:80", "[" + "1" * 100 + "]:1"])
def test_wrong_addresses(address, programs):
    programs.start("steady", "60")
    time.sleep(0.5)
    got = watch("--metrics", address, programs.folder, check=False)
    assert got.returncode == 1 and "to listen at" in got.stderr, got.stderr


def test_wrong_usage(tmp_path):
    got = watch("--once", "--metrics", "0", tmp_path, check=False)
    assert got.returncode == 2 and "no --once" in got.stderr


def test_other_addresses(programs):
    programs.start("steady", "60")
    time.sleep(0.7)
    for address, family, host in (("[::1]:0", socket.AF_INET6, "::1"),
                                  ("127.0.0.1:0", socket.AF_INET, "127.0.0.1"),
                                  ("localhost:0", socket.AF_INET, "127.0.0.1")):
        try:
            with socket.socket(family) as probe:
                probe.bind((host, 0))
        except OSError:
            continue
        with subprocess.Popen([WHYOOM, "watch", "--metrics", address, programs.folder],
                              stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                              text=True) as watcher:
            port = int(re.search(r":(\d+)/metrics", watcher.stderr.readline())[1])
            with socket.socket(family) as c:
                c.connect((host, port))
                c.sendall(b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n")
                assert c.recv(100).startswith(b"HTTP/1.1 200 OK")
            watcher.send_signal(signal.SIGTERM)
            assert watcher.wait(20) == 0


def test_devices(tmp_path, promtool):
    page = tmp_path / "metrics.prom"
    watch("--once", "--textfile", page, os.path.join(TESTS, "golden/v1/spaces/4711.0.whyoom"))
    check_metrics(promtool, page.read_bytes())
    found = values(page.read_text())
    left = of(found, "whyoom_memory_headroom_bytes", space="cuda:0")
    assert 0 < left < of(found, "whyoom_memory_limit_bytes", space="cuda:0", limit="device")
    for name in ("hole_bytes", "largest_hole_bytes", "fragmentation_ratio"):
        assert of(found, "whyoom_memory_" + name, space="cuda:0") == 0  # all was released
    assert of(found, "whyoom_largest_request_bytes", space="cuda:0") == 2 << 20


def test_marked_requests(tmp_path):
    page = tmp_path / "metrics.prom"
    watch("--once", "--textfile", page, os.path.join(TESTS, "golden/v1/marks/4711.0.whyoom"))
    found = values(page.read_text())
    assert of(found, "whyoom_requests_total") == 2 and of(found, "whyoom_requests_in_flight") == 1


def test_the_rules(promtool, tmp_path):
    shutil.copy(os.path.join(PACKAGING, "prometheus/whyoom.rules.yml"), tmp_path)
    shutil.copy(os.path.join(TESTS, "watch/rules_test.yml"), tmp_path)
    for words in (("check", "rules", "whyoom.rules.yml"), ("test", "rules", "rules_test.yml")):
        got = subprocess.run([os.path.join(promtool, "promtool"), *words], cwd=tmp_path,
                             capture_output=True, text=True)
        assert got.returncode == 0 and "SUCCESS" in got.stdout, got.stdout + got.stderr


def test_rules_and_dashboard_know_the_metrics(tmp_path):
    """No name that the page does not have, and all by the dashboard's variables."""
    page = tmp_path / "metrics.prom"
    watch("--once", "--textfile", page, os.path.join(TESTS, "golden/v1/spaces/4711.0.whyoom"))
    known = set(re.findall(r"^# TYPE (\w+)", page.read_text(), re.M))
    # those of an engine are on the page only with --engine
    with open(os.path.join(TESTS, "../analyzer/watch/engine/engine_words.c")) as f:
        known |= set(re.findall(r'"(whyoom_\w+)", "(?:gauge|counter)"', f.read()))
    with open(os.path.join(PACKAGING, "prometheus/whyoom.rules.yml")) as f:
        rules = f.read()
    with open(os.path.join(PACKAGING, "grafana/whyoom.json")) as f:
        board = json.load(f)
    asked = [t["expr"] for p in board["panels"] for t in p["targets"]]
    used = set(re.findall(r"\bwhyoom_\w+", rules + "\n".join(asked)))
    assert len(used) > 15 and used <= known, used - known
    names = {v["name"] for v in board["templating"]["list"]}
    assert set(re.findall(r"\$(?!__)\{?(\w+)", json.dumps(board))) == names
    assert board["id"] is None and board["schemaVersion"] >= 36
    assert all(p["datasource"]["uid"] == "${datasource}" for p in board["panels"])
    with open(os.path.join(TESTS, "../docs/watch.md")) as f:
        told = f.read()
    full = {"whyoom_" + n for n in re.findall(r"`whyoom_(\w+)", told)}
    ends = re.findall(r"`_(\w+)`", told)
    missing = {n for n in known if n not in full and not any(n.endswith(e) for e in ends)}
    assert not missing
