"""`whyoom watch --engine`: what inference servers publish about their pools, over HTTP, from
servers that answer well, badly or not at all."""
import http.server
import os
import re
import subprocess
import threading
import time

import pytest
from lib import WHYOOM, Server, of, values, watch
from terminal import Terminal

PAGES = {}


def page(name):
    if name not in PAGES:
        PAGES[name] = subprocess.run([os.environ["ENGINE_PAGES"], name], check=True,
                                     capture_output=True).stdout
    return PAGES[name]


class Engine:
    """A server whose answer to each path is a page, or a function that writes to the socket."""

    def __init__(self, answers):
        self.answers, self.seen = answers, []
        engine = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                engine.seen.append((self.path, dict(self.headers)))
                answer = engine.answers.get(self.path.split("?")[0])
                if callable(answer):
                    return answer(self)
                self.send_response(200 if answer is not None else 404)
                self.end_headers()
                self.wfile.write(answer or b"no\n")

            def log_message(self, *unused):
                pass

        class Quiet(http.server.ThreadingHTTPServer):
            daemon_threads = True

            def handle_error(self, *unused):
                pass  # the watcher may leave early

        self.server = Quiet(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"

    def __enter__(self):
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *unused):
        self.server.shutdown()
        self.server.server_close()


@pytest.fixture
def steady(programs):
    programs.start("steady", "60")
    time.sleep(1)
    return programs


@pytest.mark.parametrize("name, words", [
    ("vllm", "vllm at URL/metrics, meta-llama/Llama-3.1-8B-Instruct: pool 98 % full of 432,000 "
             "tokens, 24 run, 72 wait, 3 preempted so far; the pool is too small for them"),
    ("vllm-old", "vllm at URL/metrics, meta-llama/Llama-2-7b: pool 100 % full, 8 run, 0 wait, "
                 "0 preempted so far"),
    ("sglang", "sglang at URL/metrics, qwen: pool 93 % full of 161,721 tokens, 40 run, 5 wait, "
               "11 preempted so far; the pool is too small for them"),
    ("sglang-old", "sglang at URL/metrics, google/gemma-2-9b-it: pool 28 % full, 3 run, 0 wait"),
    ("tgi", "tgi at URL/metrics: does not say how full its pool is, 8 run, 4 wait"),
    ("llama", "llama.cpp at URL/metrics: does not say how full its pool is, 4 run, 1 wait"),
    ("llama-old", "llama.cpp at URL/metrics: pool 63 % full, 4 run, 1 wait")])
def test_engines(name, words, steady):
    with Engine({"/metrics": page(name)}) as e:
        said = watch("--once", "--engine", e.url, steady.folder).stdout
        assert said.splitlines()[-1] == words.replace("URL", e.url)
        assert e.seen[0][1]["Accept"].startswith("text/plain")


def test_metrics_and_a_rising_count(steady, promtool, tmp_path):
    """Preemptions that rise between two looks are pressure, for a minute."""
    quiet = page("vllm").replace(b"} 72.0", b"} 0.0")
    with Engine({"/metrics": quiet}) as e, \
            Server("--interval", "0.2", "--engine", e.url, "--label", "pod=a",
                   steady.folder) as s:
        for _ in range(100):
            now = s.values()
            if any(name == "whyoom_kv_cache_usage_ratio" for name, _ in now):
                break
            time.sleep(0.1)
        labels = {"engine": e.url + "/metrics", "pod": "a"}
        assert of(now, "whyoom_kv_cache_usage_ratio", **labels) == 0.975
        assert of(now, "whyoom_kv_cache_preemptions_total", **labels) == 3
        assert of(now, "whyoom_kv_cache_capacity_tokens", **labels) == 432000
        assert of(now, "whyoom_engine_requests_running", **labels) == 24
        assert of(now, "whyoom_engine_requests_waiting", **labels) == 0
        assert of(now, "whyoom_engine_up", **labels) == 1
        assert of(now, "whyoom_engine_info", kind="vllm", **labels) == 1
        assert of(now, "whyoom_kv_cache_pressure", **labels) == 0
        got = subprocess.run([os.path.join(promtool, "promtool"), "check", "metrics"],
                             input=s.ask("/metrics")[2], capture_output=True)
        assert got.returncode == 0, got.stdout + got.stderr
        assert "pool 98 % full" in s.ask("/")[2].decode()
        e.answers["/metrics"] = quiet.replace(b"} 3.0", b"} 5.0")
        for _ in range(100):
            now = s.values()
            if of(now, "whyoom_kv_cache_preemptions_total", **labels) == 5:
                break
            time.sleep(0.1)
        assert of(now, "whyoom_kv_cache_pressure", **labels) == 1
        # It ends: its numbers go, and the watcher goes on.
        del e.answers["/metrics"]
        for _ in range(100):
            now = s.values()
            if of(now, "whyoom_engine_up", **labels) == 0:
                break
            time.sleep(0.1)
        assert of(now, "whyoom_engine_up", **labels) == 0
        for name in ("usage_ratio", "preemptions_total", "capacity_tokens", "pressure"):
            assert not any(n == "whyoom_kv_cache_" + name for n, _ in now), name
        assert of(now, "whyoom_memory_live_bytes", space="host") > 0


def test_textfile(steady, tmp_path):
    with Engine({"/metrics": page("sglang")}) as e:
        watch("--once", "--textfile", tmp_path / "m.prom", "--engine", e.url, steady.folder)
    found = values((tmp_path / "m.prom").read_text())
    assert of(found, "whyoom_kv_cache_usage_ratio") == 0.93
    assert of(found, "whyoom_memory_live_bytes", space="host") > 0


def test_address(steady):
    """A path of one's own is asked, and a password is neither shown nor a label."""
    with Engine({"/here": page("tgi")}) as e:
        said = watch("--once", "--engine", e.url.replace("http://", "http://me:secret@") + "/here",
                     steady.folder).stdout
        assert f"tgi at {e.url}/here:" in said and "secret" not in said
        assert e.seen[0][1]["Authorization"].startswith("Basic ")


def endless(handler):
    handler.send_response(200)
    handler.end_headers()
    line = b"# " + b"x" * 65534 + b"\n"
    while True:
        handler.wfile.write(line)


def large(handler):
    handler.send_response(200)
    handler.send_header("Content-Length", str(1 << 33))
    handler.end_headers()


def silent(handler):
    time.sleep(30)


def slow(handler):
    handler.send_response(200)
    handler.end_headers()
    for _ in range(100):
        handler.wfile.write(b"#\n")
        handler.wfile.flush()
        time.sleep(0.3)


def elsewhere(handler):
    handler.send_response(302)
    handler.send_header("Location", "/other")
    handler.end_headers()


def broken(handler):
    handler.wfile.write(b"\x00\xff not http\r\n\r\n")


@pytest.mark.parametrize("answer, words", [
    (endless, "larger than 4 MiB"), (large, "larger than 4 MiB"), (silent, "within 5 s"),
    (slow, "within 5 s"), (elsewhere, "it answered 302"), (broken, "does not speak HTTP"),
    (None, "--enable-metrics"), (b"<html>", "no page of metrics"),
    (b"process_cpu_seconds_total 1\n", "no metrics of vLLM, SGLang, TGI or llama.cpp"),
    (os.urandom(100000), "")], ids=lambda v: getattr(v, "__name__", "page"))
def test_bad_answers(answer, words, steady):
    with Engine({"/metrics": answer} if answer is not None else {}) as e:
        begin = time.monotonic()
        got = watch("--once", "--engine", e.url, steady.folder)
        assert time.monotonic() - begin < 20
        line = got.stdout.splitlines()[-1]
        assert line.startswith(f"engine at {e.url}/metrics: ") and words in line, line
        assert "pid " in got.stdout  # the process is shown as ever
        assert all(path == "/metrics" for path, _ in e.seen)


def test_nobody_there(steady):
    said = watch("--once", "--engine", "http://127.0.0.1:1", steady.folder).stdout
    assert said.splitlines()[-1].startswith("engine at http://127.0.0.1:1/metrics: ")
    assert "onnect" in said.splitlines()[-1]


def test_looks_do_not_wait(steady):
    """A server that does not answer delays no look, and no end."""
    with Engine({"/metrics": silent}) as e:
        with Server("--interval", "0.2", "--engine", e.url, steady.folder) as s:
            first = of(s.values(), "whyoom_watch_looks_total")
            time.sleep(3)
            assert of(s.values(), "whyoom_watch_looks_total") >= first + 6
            begin = time.monotonic()
        assert time.monotonic() - begin < 2
        assert len(e.seen) == 1  # it is asked once at a time


def test_wrong_usage(steady):
    for url in ("file:///etc/passwd", "ftp://h/metrics", "http://", "http://h:99999", ""):
        got = watch("--once", "--engine", url, steady.folder, check=False)
        assert got.returncode == 1 and "no URL of http" in got.stderr, (url, got.stderr)
    many = [a for i in range(9) for a in ("--engine", f"http://h{i}")]
    got = watch("--once", *many, steady.folder, check=False)
    assert got.returncode == 2 and "at most 8" in got.stderr


def test_loaded_when_asked_for(steady):
    """Linked, it would cost each start of whyoom memory."""
    needed = subprocess.run(["readelf", "-d", WHYOOM], capture_output=True, text=True, check=True)
    assert "libcurl" not in needed.stdout
    with Server(steady.folder) as s:
        assert not re.search("libcurl", open(f"/proc/{s.process.pid}/maps").read())
    with Engine({"/metrics": page("tgi")}) as e, Server("--engine", e.url, steady.folder) as s:
        assert re.search("libcurl", open(f"/proc/{s.process.pid}/maps").read())


@pytest.mark.skipif(os.environ["WHYOOM_NCURSES"] != "yes", reason="this build has no ncurses")
@pytest.mark.parametrize("columns", [40, 100])
def test_view(steady, columns):
    with Engine({"/metrics": page("sglang")}) as e:
        t = Terminal(WHYOOM, "watch", "--interval", "0.3", "--engine", e.url, steady.folder,
                     columns=columns)
        try:
            t.wait_for("sglang at")
            (line,) = [line for line in t.text().splitlines() if "sglang at" in line]
            assert line.startswith(f"sglang at {e.url}"[:columns - 1])
            assert columns < 100 or "pool 93 % full" in line
            assert "call site (" in t.text()
        finally:
            t.close()
