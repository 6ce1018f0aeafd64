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
