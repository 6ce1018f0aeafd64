"""`whyoom watch --verdict-at-end` and `--push`: what ended for want of memory is judged once, and a
server that fails at first, or is away, gets it once."""
import http.server
import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time

import pytest
from lib import WHYOOM

SHIM = os.environ["WHYOOM_SHIM"]
LEAKS = """
import sys
kept = []
def serve(size):
    kept.append(bytearray(size))
try:
    while True:
        serve(300000)
except MemoryError:
    sys.exit(1)
"""
LOADS = """
def load():
    return [bytearray(30 << 20) for i in range(100)]
load()
"""


class Inbox:
    """Answers the given statuses one after the other, then 204."""
    def __init__(self, *statuses, port=0):
        self.asked, self.lines = 0, []
        inbox = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self):  # noqa: N802
                assert self.headers["Content-Type"] == "application/json"
                body = self.rfile.read(int(self.headers["Content-Length"]))
                status = statuses[inbox.asked] if inbox.asked < len(statuses) else 204
                inbox.asked += 1
                if status == 204:
                    inbox.lines.append(json.loads(body))
                self.send_response(status)
                self.end_headers()

            def log_message(self, *_):
                pass
        self.server = http.server.HTTPServer(("127.0.0.1", port), Handler)
        self.url = "http://127.0.0.1:%d/reports" % self.server.server_port
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def close(self):
        self.server.shutdown()
        self.server.server_close()


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "traces").mkdir(mode=0o700)
    return tmp_path / "traces"


@pytest.fixture
def watching(folder):
    started = []

    def start(*arguments):
        log = open(folder.parent / f"log{len(started)}", "w+")
        p = subprocess.Popen([WHYOOM, "watch", "--interval", "0.3", *map(str, arguments), folder],
                             stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=log)
        p.said = lambda: (folder.parent / os.path.basename(log.name)).read_text()
        started.append(p)
        return p
    yield start
    for p in started:
        p.kill()
        p.wait()


def fails(folder, program):
    """As the recorder's manifests preload it; every start writes into the same folder."""
    done = subprocess.run(
        ["prlimit", "--as=300000000", "/usr/bin/python3", "-c", program], capture_output=True,
        text=True, timeout=120, env={"PATH": os.environ["PATH"], "LD_PRELOAD": SHIM,
                                     "WHYOOM_DIR": str(folder), "POD_NAME": "chat-0"})
    assert done.returncode == 1, done.stderr


def until(what, seconds=60):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if got := what():
            return got
        time.sleep(0.1)
    raise AssertionError("it did not come")


def test_once_each_though_the_server_fails_at_first(folder, watching):
    inbox = Inbox(503, 500)
    watcher = watching("--push", inbox.url)
    fails(folder, LEAKS)
    until(lambda: inbox.lines)
    assert inbox.asked == 3
    fails(folder, LOADS)
    until(lambda: len(inbox.lines) == 2)
    first, second = inbox.lines
    assert (first["cause"], first["blame_function"]) == ("leak", "serve")
    assert (second["cause"], second["blame_function"]) == ("oversized-model", "load")
    assert first["pod"] == second["pod"] == "chat-0" and first["id"] != second["id"]
    # The report and the page lie beside the trace, and each line is the fleet's.
    for line in inbox.lines:
        kept, = [p for p in folder.glob("*.failure.json") if json.loads(p.read_text()) == line]
        base = str(kept)[:-len(".failure.json")]
        until(lambda b=base: os.path.exists(b + ".report.html"))
        assert json.loads(open(base + ".report.json").read())["verdict"]["cause"] == line["cause"]
        done = subprocess.run([WHYOOM, "fleet", "collect", "-o", folder.parent / "fleet.db", kept],
                              capture_output=True, text=True, timeout=60)
        assert "1 lines taken in" in done.stderr
    watcher.send_signal(signal.SIGTERM)
    assert watcher.wait(60) == 0
    # A server that answers the same each time is one line of the log.
    assert watcher.said().count("did not take a report") == 2
    # The next watcher finds them told, and a process that ends well is none.
    again = watching("--push", inbox.url)
    subprocess.run([sys.executable, "-c", "x = bytearray(5000000)"], check=True, timeout=60,
                   env={"LD_PRELOAD": SHIM, "WHYOOM_DIR": str(folder)})
    fails(folder, LEAKS)
    until(lambda: len(inbox.lines) == 3)
    again.send_signal(signal.SIGTERM)
    assert again.wait(60) == 0
    assert len({line["id"] for line in inbox.lines}) == 3
    inbox.close()


def test_what_a_server_missed_is_pushed_by_the_next_watcher(folder, watching):
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port = s.getsockname()[1]
    url = f"http://127.0.0.1:{port}/"
    watcher = watching("--push", url, "--textfile", folder.parent / "metrics")
    fails(folder, LEAKS)
    until(lambda: "did not take a report" in watcher.said())
    page = until(lambda: (m := (folder.parent / "metrics").read_text())
                 and "whyoom_reports_pending 1" in m and m)
    assert re.search(r'^whyoom_failures_total\{cause="leak"\} 1$', page, re.M)
    watcher.kill()
    watcher.wait()
    assert not list(folder.glob("*.pushed"))
    inbox = Inbox(port=port)
    watching("--push", url)
    until(lambda: inbox.lines)
    assert inbox.lines[0]["cause"] == "leak"
    until(lambda: list(folder.glob("*.pushed")))
    inbox.close()


def test_at_the_end_of_a_pod(folder, watching):
    """SIGTERM comes right after the failure, as where a Job's pod ends with its server."""
    inbox = Inbox(503)
    watcher = watching("--push", inbox.url, "--interval", "60")
    until(lambda: watcher.said() or watcher.poll() is None)
    fails(folder, LEAKS)
    watcher.send_signal(signal.SIGTERM)
    assert watcher.wait(60) == 0
    assert [line["cause"] for line in inbox.lines] == ["leak"]
    inbox.close()


def test_without_a_server(folder, watching):
    watching("--verdict-at-end")
    fails(folder, LOADS)
    kept = until(lambda: list(folder.glob("*.failure.json")))
    assert json.loads(kept[0].read_text())["cause"] == "oversized-model"
    assert not list(folder.glob("*.pushed"))


@pytest.mark.parametrize("arguments, words", [
    (["--push", "ftp://x/"], "no URL of http"), (["--push", "nonsense"], "no URL of http"),
    (["--push", "http://x/", "--once"], "no --once"),
    (["--verdict-at-end", "--once"], "no --once")])
def test_wrong_usage(folder, arguments, words):
    done = subprocess.run([WHYOOM, "watch", *arguments, folder], capture_output=True, text=True,
                          timeout=60)
    assert done.returncode in (1, 2) and words in done.stderr


def test_one_trace_is_not_enough(folder):
    fails(folder, LOADS)
    trace, = folder.glob("*.whyoom")
    done = subprocess.run([WHYOOM, "watch", "--verdict-at-end", trace], capture_output=True,
                          text=True, timeout=60)
    assert done.returncode == 2 and "a directory" in done.stderr
