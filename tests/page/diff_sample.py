"""Pages of comparisons: of two forged traces, of a real server, of two moments, and of a hostile
trace."""
import os
import pathlib
import random
import subprocess
import sys

import pytest

HERE = pathlib.Path(__file__).resolve().parent
TESTS = HERE.parent
sys.path.insert(0, str(HERE))
sys.path.insert(0, str(TESTS / "golden"))
import writer  # noqa: E402
from sample import hostile_module  # noqa: E402

WHYOOM = os.environ["WHYOOM_EXE"]
KIB = 1024
LINES = {"main": 50, "load": 10, "handle": 20, "old_cache": 30, "new_cache": 40, "steady": 60}


def forge(folder, load, cache, cached, shift, pid):
    """A program whose load() holds `load` bytes in each of 64 rounds, and a cache as many as
    `cached`, with a buffer that comes and goes, a steady part, and a pool on a device."""
    folder.mkdir()
    d = writer.Definitions()
    d.module(1, "/nowhere/server")
    code = {}
    for n, (name, line) in enumerate(LINES.items(), 1):
        code[name] = n
        d.code(n, 0x30B, line + shift, name, "/srv/server.py", bytes([0x80, 0]))
    stacks = [("load",), ("handle",), cache, ("steady",), ("steady", "load")]
    for n, stack in enumerate(stacks, 1):
        d.stack(n, [("python", code[f], 0) for f in ("main", *stack)])
    d.string(1, "cudaMalloc")
    d.space(1, "cuda:0")
    d.info("limit.as", str(1 << 30))
    d.info("env.MALLOC_ARENA_MAX", str(shift))
    c = writer.Chunk(1, 1000, size=16 * writer.SLOT)
    for n in range(64):
        at = 1000 + n * 100000
        c.alloc(0x10000000 + n * 0x100000, load, stack=1, ticks=at)
        c.alloc(0x8000000, 45000, stack=2, ticks=at + 100)
        c.free(0x8000000, at + 200)
        c.alloc(0x40000000 + n * 0x100000, cached, stack=3, ticks=at + 300)
        c.alloc(0x60000000 + n * 0x100000, 50 * KIB, stack=4, ticks=at + 400)
        if n < 8:
            c.extended(writer.SPACE_ALLOC, 1, 1, 0x7F0000000000 + (n << 24), 1 << 20, 5, 0, 0, 0, 0,
                       0, ticks=at + 500)
    (folder / f"{pid}.0.whyoom").write_bytes(writer.trace([d, c], pid=pid, end=(1, 0)))
    return folder


def forge_large(folder, scale, pid):
    """As many boxes as a page shows: 330 stacks of 30 frames that share few. Every seventh line
    holds `scale` times as much."""
    folder.mkdir()
    chance, functions, stacks = random.Random(3), 9000, 330
    d = writer.Definitions(size=256 * writer.SLOT)
    d.module(1, "/nowhere/server")
    for n in range(1, functions + 1):
        d.code(n, 0x30B, 10 + n, f"Layer{n % 90}.forward_{n}", f"/srv/model/part{n % 200}.py",
               bytes([0x80, 0]))
    c = writer.Chunk(1, 1000, size=256 * writer.SLOT)
    trunk, last = [chance.randint(1, functions) for _ in range(30)], []
    for n in range(1, stacks + 1):
        keep = chance.randint(1, 8)
        trunk = trunk[:keep] + [chance.randint(1, functions) for _ in range(30 - keep)]
        d.stack(n, [("python", f, 0) for f in trunk])
        last.append(trunk[-1])
    for k in range(8 * stacks):
        size = chance.randint(20000, 60000) * (scale if last[k % stacks] % 7 == 0 else 1)
        c.alloc(0x10000000 + k * 0x100000, size, stack=1 + k % stacks, ticks=2000 + k * 100)
    (folder / f"{pid}.0.whyoom").write_bytes(writer.trace([d, c], pid=pid, end=(1, 0)))
    return folder


def write(to, *words):
    done = subprocess.run([WHYOOM, "diff", "--format", "html", "-o", to, *map(str, words)],
                          capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return to


@pytest.fixture(scope="session")
def sides(tmp_path_factory, hostile_trace):
    """Name to what `whyoom diff` compares."""
    folder = tmp_path_factory.mktemp("sides")
    a = forge(folder / "a", 40 * KIB, ("old_cache",), 30 * KIB, 0, 4711)
    b = forge(folder / "b", 60 * KIB, ("handle", "new_cache"), 70 * KIB, 7, 4712)
    renamed = forge(folder / "renamed", 40 * KIB, ("new_cache",), 30 * KIB, 3, 4713)
    exe = folder / "server"
    subprocess.run(["gcc", "-O1", "-g", "-w", "-I", TESTS.parent / "include", "-o", exe,
                    TESTS / "diff" / "progs" / "server.c"], check=True)
    for requests in ("500", "1500"):
        subprocess.run([WHYOOM, "run", "-o", folder / requests, "--", exe, requests], check=True,
                       capture_output=True, timeout=60)
    large = [forge_large(folder / f"large{n}", n, 4720 + n) for n in (1, 3)]
    return {"changed": (a, b), "large": large, "equal": (a, renamed),
            "served": (folder / "500", folder / "1500"),
            "moments": (a, "--at", "0.001", "--and", "end"),
            "hostile": (hostile_trace, "--at", "0.0002", "--and", "end")}


@pytest.fixture(scope="session")
def hostile_trace(tmp_path_factory):
    return hostile_module().trace.__wrapped__(tmp_path_factory)


@pytest.fixture(scope="session")
def compared(tmp_path_factory, sides):
    """Name to page."""
    folder = tmp_path_factory.mktemp("compared")
    return {name: write(folder / f"{name}.html", *words) for name, words in sides.items()}
