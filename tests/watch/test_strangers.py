"""What strangers do to the port of `whyoom watch --metrics`: the watcher goes on, its memory stays
bounded, and the recorded program does not notice."""
import os
import random
import signal
import socket
import subprocess
import sys
import time

import pytest
from lib import WHYOOM, Server, of

SEED = 25
CONNECTIONS = 16  # HTTP_CONNECTIONS of analyzer/watch/http.h
SECONDS = 10  # HTTP_SECONDS


def connect(server, receive=None):
    c = socket.socket()
    if receive:
        c.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive)
    c.settimeout(20)
    c.connect(("127.0.0.1", server.port))
    return c


def answer(server, sent):
    """All that comes until the end of the connection; of half a request nothing comes."""
    got = b""
    with connect(server) as c:
        try:
            c.sendall(sent)
            c.settimeout(0.2)
            while piece := c.recv(1 << 16):
                got += piece
        except (ConnectionError, TimeoutError):
            pass
    return got


def garbage(chance):
    line = chance.choice([b"GET /metrics HTTP/1.1", b"GET / HTTP/1.0", b"HEAD /metrics HTTP/1.1",
                          b"POST /metrics HTTP/1.1", b"GET /debug/pprof/heap?pid= HTTP/1.1"])
    head = [line, b"Host: x", b"Content-Length: 99999999999999999999",
            b"Transfer-Encoding: chunked", b"Accept: application/openmetrics-text",
            b"X: " + bytes(chance.randrange(32, 127) for _ in range(chance.randrange(300)))]
    whole = bytearray(b"\r\n".join(chance.sample(head, chance.randrange(1, len(head) + 1))) +
                      b"\r\n\r\n")
    if chance.random() < 0.5:
        whole = bytearray(line + b"\r\n") + whole
    for _ in range(chance.randrange(6)):
        whole[chance.randrange(len(whole))] = chance.randrange(256)
    if chance.random() < 0.3:
        whole = whole[:chance.randrange(len(whole))]
    if chance.random() < 0.1:
        whole = bytearray(chance.randbytes(chance.randrange(5000)))
    return bytes(whole)


def check_alive(server, program, resident):
    assert server.ask("/metrics")[0] == 200
    now = server.values()
    assert of(now, "whyoom_watch_resident_bytes") < resident + (8 << 20)
    assert server.process.poll() is None and program.poll() is None
    return now


def test_garbage(programs):
    steady = programs.start("steady", "100")
    time.sleep(0.7)
    with Server("--interval", "0.3", programs.folder) as s:
        before = s.values()
        resident = of(before, "whyoom_watch_resident_bytes")
        chance = random.Random(SEED)
        for i in range(300):
            got = answer(s, garbage(chance))
            assert not got or got.startswith(b"HTTP/1."), (SEED, i, got[:100])
        for sent in (b"", b"\r\n" * 1000, b"GET", b"GET /" + b"a" * 100_000 + b" HTTP/1.1\r\n\r\n",
                     b"GET / HTTP/1.1\r\n" + b"A: b\r\n" * 20_000, b"\0" * 50_000,
                     b"GET /%00%ff%2e%2e/%0d%0aX:%20y HTTP/1.1\r\nHost: x\r\n\r\n",
                     b"GET /debug/pprof/heap?" + b"pid=1&" * 2000 + b" HTTP/1.1\r\n\r\n",
                     b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000\r\n\r\n" +
                     b"x" * 1_000_000):
            got = answer(s, sent)
            assert not got or got.startswith(b"HTTP/1."), got[:100]
            assert b"\nX: y" not in got
        after = check_alive(s, steady, resident)
        assert of(after, "whyoom_watch_looks_total") > of(before, "whyoom_watch_looks_total")
        assert of(after, "whyoom_events_total") > of(before, "whyoom_events_total")


def test_slow_ones_are_ended(programs):
    """Each holds its connection for the whole time that it may, whether it sends a byte now and
    then, sends nothing, or does not read. Meanwhile the watcher looks on; then the port is free."""
    steady = programs.start("steady", "100")
    time.sleep(0.7)
    with Server("--interval", "0.3", programs.folder) as s:
        before = s.values()
        begin = time.monotonic()
        slow = [connect(s, receive=2048) for _ in range(CONNECTIONS)]
        for i, c in enumerate(slow):
            if i % 3 == 0:
                c.sendall(b"GET /metrics HTTP/1.1\r\nA: ")
            elif i % 3 == 1:
                c.sendall(b"GET /debug/pprof/heap HTTP/1.1\r\nHost: x\r\n\r\n")
        ended = set()
        while len(ended) < CONNECTIONS and time.monotonic() < begin + 3 * SECONDS:
            time.sleep(0.5)
            for i, c in enumerate(slow):
                try:
                    if i % 3 == 0:
                        c.send(b"b")
                    c.setblocking(False)
                    if i % 3 != 1 and not c.recv(1000):
                        ended.add(i)
                except BlockingIOError:
                    pass
                except ConnectionError:
                    ended.add(i)
            if time.monotonic() > begin + SECONDS + 5:
                ended |= {i for i in range(CONNECTIONS) if i % 3 == 1}  # it may lie in buffers
        took = time.monotonic() - begin
        assert ended == set(range(CONNECTIONS)) and SECONDS - 1 < took < 3 * SECONDS, (ended, took)
        after = check_alive(s, steady, of(before, "whyoom_watch_resident_bytes"))
        looks = of(after, "whyoom_watch_looks_total") - of(before, "whyoom_watch_looks_total")
        assert looks > 10
        for c in slow:
            c.close()


COUNTS = """
import sys, time
kept, n = [], 0
end = time.time() + 6
while time.time() < end:
    kept.append(bytes(5000))
    if len(kept) > 100:
        kept.clear()
    n += 1
    time.sleep(0.001)
print(n, len(kept) <= 100)
"""


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGSTOP])
def test_a_watcher_that_is_killed_or_suspended(how, tmp_path):
    """The program works on, ends as it would, and leaves a whole trace."""
    traces = tmp_path / "traces"
    env = {**os.environ, "WHYOOM_DIR": str(traces), "WHYOOM_QUIET": "1",
           "LD_PRELOAD": os.environ["WHYOOM_SHIM"]}
    program = subprocess.Popen([os.path.realpath(sys.executable), "-c", COUNTS], env=env,
                               stdout=subprocess.PIPE, text=True)
    while not traces.exists():
        time.sleep(0.1)
    page = tmp_path / "page.prom"
    watchers = [subprocess.Popen([WHYOOM, "watch", "--interval", "0.1", "--metrics", "0",
                                  "--textfile", page, "--on-alert", "sleep 100",
                                  "--verdict-every", "1", traces], stdout=subprocess.DEVNULL,
                                 stderr=subprocess.DEVNULL) for _ in range(3)]
    for watcher in watchers:
        time.sleep(0.7)
        watcher.send_signal(how)
    told, _ = program.communicate(timeout=60)
    for watcher in watchers:
        watcher.kill()
        watcher.wait()
    assert program.returncode == 0 and told.split()[1] == "True" and int(told.split()[0]) > 50
    # No half a page is left, and nothing beside the trace.
    assert "whyoom_build_info" in page.read_text() and page.read_text().endswith("\n")
    assert [n for n in os.listdir(traces) if not n.endswith(".whyoom")] in ([], ["disk.account"])
    got = subprocess.run([WHYOOM, "check", traces], capture_output=True, text=True)
    assert got.returncode == 0, got.stdout + got.stderr


def test_flood(programs):
    """More connections than it takes: some are closed, and afterwards all is as before."""
    steady = programs.start("steady", "100")
    time.sleep(0.7)
    with Server("--interval", "0.3", programs.folder) as s:
        before = s.values()
        chance = random.Random(SEED)
        for _ in range(10):
            many = []
            for _ in range(100):
                c = socket.socket()
                c.setblocking(False)
                c.connect_ex(("127.0.0.1", s.port))
                many.append(c)
            time.sleep(0.1)
            for c in many:
                try:
                    c.send(garbage(chance))
                except OSError:
                    pass
            for c in many:
                c.close()
        after = None
        for _ in range(60):  # what waits in the kernel's queue is served first
            try:
                after = check_alive(s, steady, of(before, "whyoom_watch_resident_bytes"))
                break
            except (ConnectionError, OSError):
                time.sleep(0.5)
        assert of(after, "whyoom_watch_looks_total") > of(before, "whyoom_watch_looks_total")
