"""Pages of the golden traces, of a program that was recorded here, and of a hostile trace."""
import importlib.util
import os
import pathlib
import resource
import subprocess
import sys

import pytest

HERE = pathlib.Path(__file__).resolve().parent
TESTS = HERE.parent
WHYOOM = os.environ["WHYOOM_EXE"]
GOLDEN = ["v1/spaces", "v1/arenas", "v1/marks", "v1/killed", "v1/kinds", "v2/checkpoint",
          "v2/unwhole"]
PROGRAM = """
kept = []
def remember(i):
    kept.append(bytearray(200000 + i))
def work():
    return [bytes(5000 + 100 * i) for i in range(50)]
def serve():
    i = 0
    while True:
        work()
        remember(i)
        i += 1
serve()
"""


def write(trace, to, *more):
    done = subprocess.run([WHYOOM, "report", trace, "--format", "html", "-o", to, *more],
                          capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return to


@pytest.fixture(scope="session")
def recorded(tmp_path_factory):
    """A Python program that keeps all it makes, until the limit of its address space."""
    folder = tmp_path_factory.mktemp("recorded")
    (folder / "server.py").write_text(PROGRAM)
    done = subprocess.run([WHYOOM, "run", "-o", folder / "trace", "--", sys.executable,
                           folder / "server.py"], capture_output=True, timeout=120,
                          preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS,
                                                                (300 << 20, 300 << 20)))
    assert b"MemoryError" in done.stderr, done.stderr
    return folder / "trace"


@pytest.fixture(scope="session")
def pages(tmp_path_factory, recorded):
    """Name to path."""
    folder = tmp_path_factory.mktemp("pages")
    out = {"recorded": write(recorded, folder / "recorded.html")}
    for name in GOLDEN:
        out[name] = write(TESTS / "golden" / name, folder / (name.replace("/", "-") + ".html"))
    return out


def hostile_module():
    spec = importlib.util.spec_from_file_location("hostile", TESTS / "cli" / "test_hostile.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="session")
def hostile(tmp_path_factory):
    """The page of a trace whose every name holds markup, a terminal's codes and no UTF-8."""
    trace = hostile_module().trace.__wrapped__(tmp_path_factory)
    return write(trace, tmp_path_factory.mktemp("hostile-page") / "page.html")


SERVER = """
import ctypes, sys, threading, time
marks = ctypes.CDLL(None)
marks.whyoom_request_begin.restype = ctypes.c_uint64
marks.whyoom_request_begin.argtypes = [ctypes.c_char_p]
marks.whyoom_request_end.argtypes = [ctypes.c_uint64]
cache = []
def tokenize(n):
    return [bytearray(1000 + i) for i in range(n)]
def attend(n):
    return bytearray(100000 * n)
def answer(i):
    tokens, scores = tokenize(40), attend(1 + i % 9)
    if i % 5 == 0:
        cache.append(scores)
    time.sleep(0.001)
def serve(worker):
    for i in range(40):
        request = marks.whyoom_request_begin(b"POST /chat")
        answer(i)
        marks.whyoom_request_end(request)
    request = marks.whyoom_request_begin(b"POST /v1/completions/last")
    try:
        cache.append(bytearray(1 << 50))
    except MemoryError:
        pass
    marks.whyoom_request_end(request)
workers = [threading.Thread(target=serve, args=(w,)) for w in range(3)]
for worker in workers:
    worker.start()
for worker in workers:
    worker.join()
"""


@pytest.fixture(scope="session")
def server(tmp_path_factory):
    """The page of a server with three threads and 123 marked requests, of which three were
    refused."""
    folder = tmp_path_factory.mktemp("server")
    (folder / "server.py").write_text(SERVER)
    subprocess.run([WHYOOM, "run", "-o", folder / "trace", "--", sys.executable,
                    folder / "server.py"], capture_output=True, timeout=120, check=True)
    return write(folder / "trace", folder / "page.html")
