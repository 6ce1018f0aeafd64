"""`whyoom export --format torch-snapshot`: the opcodes that PyTorch's viewer reads, the order of
events in which it can replay them, the sums of `whyoom sites`, and PyTorch's own _memory_viz.py."""

import collections
import glob
import importlib.util
import os
import pickle
import pickletools
import random
import resource
import subprocess
import sys

import pytest
from lib import MOMENTS, TESTS, WHYOOM, cases, export, golden, sites, spaces

sys.path.insert(0, os.path.join(TESTS, "golden"))
import writer  # noqa: E402

sys.path.insert(0, os.path.join(TESTS, "cli"))
import test_hostile  # noqa: E402

OPCODES = {"PROTO", "FRAME", "MARK", "STOP", "NONE", "NEWTRUE", "NEWFALSE", "BININT", "BININT1",
           "BININT2", "LONG1", "BINFLOAT", "SHORT_BINUNICODE", "BINUNICODE", "EMPTY_LIST",
           "EMPTY_DICT", "EMPTY_TUPLE", "LIST", "DICT", "TUPLE", "TUPLE1", "TUPLE2", "TUPLE3",
           "APPEND", "APPENDS", "SETITEM", "SETITEMS", "BINPUT", "LONG_BINPUT", "MEMOIZE", "BINGET",
           "LONG_BINGET"}
MIB = 1 << 20
hostile = test_hostile.trace


def read(data):
    """The snapshot, if the viewer's reader would read it, too."""
    marks, depth = [], 0
    for op, value, _ in pickletools.genops(data):
        assert op.name in OPCODES, op.name
        assert op.name != "PROTO" or value == 2
        assert op.name != "LONG1" or 0 <= value <= 1 << 53
        # The number of values above the mark is what the viewer spreads into a call.
        if op.name == "MARK":
            marks.append(depth)
            depth = 0
        elif op.name in ("APPENDS", "SETITEMS"):
            assert op.name != "APPENDS" or depth <= 1000
            depth = marks.pop()
        else:
            depth += len(op.stack_after) - len(op.stack_before)
    assert not marks and depth == 0
    return pickle.loads(data)


def check_segments(d):
    for s in d["segments"]:
        assert s["segment_pool_id"] == (0, 0) and s["frames"] is not None
        at, live = s["address"], 0
        for b in s["blocks"]:
            assert b["address"] == at and b["size"] > 0
            assert b["state"] in ("active_allocated", "inactive")
            assert b["requested_size"] == (b["size"] if b["state"] != "inactive" else 0)
            live += b["requested_size"]
            at += b["size"]
        assert at == s["address"] + s["total_size"]
        assert live == s["allocated_size"] == s["active_size"] == s["requested_size"]


class Replay:
    """The viewer's state of a device, which it takes back event by event from the end."""

    def __init__(self, d, device):
        self.segments = {s["address"]: [s["total_size"], s["stream"]] for s in d["segments"]
                         if s["device"] == device}
        self.blocks = {b["address"]: b["size"] for s in d["segments"] if s["device"] == device
                       for b in s["blocks"] if b["state"] == "active_allocated"}
        self.events = d["device_traces"][device]

    def holding(self, start, end):
        return next(a for a, (n, _) in self.segments.items() if a <= start and end <= a + n)

    def check(self):
        """Each block lies in a segment, as the viewer assumes when it draws."""
        for address, size in self.blocks.items():
            self.holding(address, address + size)

    def add(self, address, size, stream, joins):
        for a, (n, s) in list(self.segments.items()):
            assert address + size <= a or a + n <= address
            if joins and s == stream and a == address + size:
                size += self.segments.pop(a)[0]
            elif joins and s == stream and a + n == address:
                size, address = size + self.segments.pop(a)[0], a
        self.segments[address] = [size, stream]

    def take_back(self, e):
        action, size = e["action"], e["size"]
        if action == "oom":
            assert "addr" not in e and e["device_free"] >= 0
            return
        start, end = e["addr"], e["addr"] + size
        if action == "alloc":
            assert self.blocks.pop(start) == size
        elif action == "free_completed":
            assert start not in self.blocks
            self.blocks[start] = size
        elif action == "free_requested":
            assert self.blocks[start] == size
        elif action in ("segment_free", "segment_unmap"):
            self.add(start, size, e["stream"], action == "segment_unmap")
        elif action == "segment_alloc":
            assert self.segments.pop(start)[0] == size
        else:
            assert action == "segment_map"
            a = self.holding(start, end)
            n, stream = self.segments.pop(a)
            if a < start:
                self.segments[a] = [start - a, stream]
            if end < a + n:
                self.segments[end] = [a + n - end, stream]

    def run(self, every):
        for i, e in enumerate(reversed(self.events)):
            for f in e["frames"]:
                assert set(f) == {"name", "filename", "line"}
                assert isinstance(f["name"], str) and isinstance(f["filename"], str)
            self.take_back(e)
            if i % every == 0:
                self.check()


def check(d, every=1):
    check_segments(d)
    for device in range(len(d["device_traces"])):
        Replay(d, device).run(every)


def live(d, device):
    return sum(s["allocated_size"] for s in d["segments"] if s["device"] == device)


@pytest.fixture(scope="module")
def busy(tmp_path_factory):
    """Two devices, one with an expandable segment; more events than one list takes; a library that
    takes memory of its own; refused at the end."""
    folder = tmp_path_factory.mktemp("busy")
    rng = random.Random(1)
    d = writer.Definitions()
    d.module(1, b"/usr/lib/libtorch.so")
    for n in range(1, 9):
        d.code(n, 3 * 256 + 11, 10 * n, f"layer{n}".encode(), b"/srv/model.py", b"\xf8\x00\x00")
        d.stack(n, [("python", 1, 0), ("python", n, 0), ("native", 1, 0x1000, False)])
    d.string(1, b"cudaMalloc")
    for n, name in enumerate(("cuda:0", "torch:0", "cuda:1", "torch:1"), 1):
        d.space(n, name, n - 1 if n % 2 == 0 else 0)
    c = writer.Chunk(1, 1000, size=40 * writer.SLOT)
    base = {0: 0x7F0000000000, 1: 0x7F8000000000}
    alive, ticks = [], 1000
    c.extended(writer.SPACE_ALLOC, 1, 1, 0x7E0000000000, 9 * MIB, 1, 0, 0, 0, 0, 0, ticks=ticks)
    for i in range(4):
        c.extended(writer.SPACE_ALLOC, 1, 1, base[0] + i * 20 * MIB, 20 * MIB, 1, 0, 0, 0, 0, 0,
                   ticks=ticks + i)
        c.extended(writer.SPACE_ALLOC, 3, 1, 100 + i, 20 * MIB, 1, 0, 0, 1, 0, 0, ticks=ticks + i)
        c.extended(writer.SPACE_MAP, 1, base[1] + i * 20 * MIB, 20 * MIB, 0, 100 + i, 2,
                   ticks=ticks + i)
    for i in range(3000):
        ticks += 1000
        if alive and rng.random() < 0.5:
            device, k = alive.pop(rng.randrange(len(alive)))
            c.extended(writer.SPACE_FREE, 2 + 2 * device, 1, base[device] + k * MIB, 0, 0, 0,
                       ticks=ticks)
            continue
        device, k = rng.randrange(2), rng.randrange(80)
        if any(x == (device, k) for x in alive):
            continue
        alive.append((device, k))
        c.extended(writer.SPACE_ALLOC, 2 + 2 * device, 1, base[device] + k * MIB, 512 * 1024,
                   1 + rng.randrange(8), 0, 0, 0, 0, 0, ticks=ticks)
    c.levels(writer.FAILED, (2, 0, 2, 2, 64 * MIB, 0, 0, 2), ((128, 1 << 30),), ticks=ticks + 10,
             after=(1, 1, 0, 0))
    (folder / "4711.0.whyoom").write_bytes(writer.trace([d, c], end=(1, 1), minor=3))
    return folder / "4711.0.whyoom"


def with_torch():
    return [t for t in golden() if any(s.startswith("torch:") for s in spaces(t))]


@pytest.mark.parametrize("at", MOMENTS)
def test_busy(busy, at):
    data = export(busy, "torch-snapshot", "--at", at)
    d = read(data)
    check(d, 50)
    assert all(len(t) > (10 if at == "peak" else 1000) for t in d["device_traces"])
    actions = [collections.Counter(e["action"] for e in t) for t in d["device_traces"]]
    assert actions[0]["segment_alloc"] == 4 and actions[1]["segment_map"] == 4
    assert actions[0]["oom"] == (at != "peak")
    assert {s["is_expandable"] for s in d["segments"] if s["device"] == 1} == {True}
    assert sum(s["total_size"] for s in d["segments"] if s["device"] == 0) == 80 * MIB
    for device in (0, 1):
        expected = sites(busy, f"torch:{device}", at)
        if not expected:
            assert (device, at) == (1, "failure")  # which is the other device's
            continue
        alone = read(export(busy, "torch-snapshot", "--at", at, "--space", f"torch:{device}"))
        assert live(alone, device) == expected["live"]
        assert device == 1 or live(d, device) == expected["live"]
    settings = d["allocator_settings"]["whyoom"]
    assert settings["blocks_left_out"] == 0 and settings["at"] == at


def test_events(busy):
    every = read(export(busy, "torch-snapshot", "--space", "torch:0"))
    for count in (1, 100, 1000):
        few = read(export(busy, "torch-snapshot", "--events", str(count), "--space", "torch:0"))
        check(few, 10)
        kept = few["device_traces"][0]
        assert 0 < len(kept) <= 3 * count and kept == every["device_traces"][0][-len(kept):]
        assert few["segments"] == every["segments"]
        assert few["allocator_settings"]["whyoom"]["events_before_the_first"] > 0
    none = read(export(busy, "torch-snapshot", "--events", "none", "--space", "torch:0"))
    assert none["device_traces"] == [[]] and none["segments"] == every["segments"]


def test_driver(busy):
    """The driver's blocks, each a segment of its own."""
    d = read(export(busy, "torch-snapshot", "--space", "cuda:0", "--at", "end"))
    check(d)
    assert live(d, 0) == sites(busy, "cuda:0", "end")["live"] == 89 * MIB
    assert len(d["segments"]) == 5 and all(len(s["blocks"]) == 1 for s in d["segments"])


def test_golden():
    compared = 0
    for trace in with_torch():
        for space, at, expected in cases(trace):
            if space.startswith("torch:"):
                d = read(export(trace, "torch-snapshot", "--space", space, "--at", at))
                check(d)
                assert live(d, int(space[6:])) == expected["live"], (trace, space, at)
                compared += 1
    assert compared


def test_hostile(hostile):
    d = read(export(hostile, "torch-snapshot"))
    check(d)
    assert any("</script>" in f["name"] for t in d["device_traces"] for e in t for f in e["frames"])


def test_host_only():
    trace = next(t for t in golden() if t.endswith("v1/arenas"))
    done = subprocess.run([WHYOOM, "export", "-f", "torch-snapshot", trace], capture_output=True,
                          text=True)
    assert done.returncode == 1 and not done.stdout
    assert "no memory of PyTorch in this trace: --space cuda:0" in done.stderr


def test_full(busy, tmp_path):
    (tmp_path / "out").write_text("older")
    done = subprocess.run([WHYOOM, "export", "-f", "torch-snapshot", "-o", tmp_path / "out", busy],
                          capture_output=True, text=True, preexec_fn=lambda:
                          resource.setrlimit(resource.RLIMIT_FSIZE, (2000, 2000)))
    assert done.returncode == 1 and "cannot write the output" in done.stderr
    assert os.listdir(tmp_path) == ["out"] and (tmp_path / "out").read_text() == "older"


def memory_viz():
    cache = os.environ.get("WHYOOM_TEST_CACHE") or os.path.expanduser("~/.cache/whyoom-tests")
    found = sorted(glob.glob(os.path.join(cache, "torch-*", "lib", "python3*", "site-packages",
                                          "torch", "cuda", "_memory_viz.py")))
    if not found:
        pytest.skip("PyTorch's wheel is not there: the suite torch installs it")
    spec = importlib.util.spec_from_file_location("memory_viz", found[-1])
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_memory_viz(busy, hostile):
    viz = memory_viz()
    for trace in [busy, hostile, *with_torch()]:
        d = read(export(trace, "torch-snapshot"))
        assert f"segments: {len(d['segments'])}" in viz.segsum(d)
        said = viz.trace(d)
        assert said.count("cudaMalloc(") == sum(e["action"] == "segment_alloc"
                                                for t in d["device_traces"] for e in t)
        lines = viz.memory(d, format_flamegraph=lambda text: text).splitlines()
        assert sum(int(x.rpartition(" ")[2]) for x in lines) == sum(s["total_size"]
                                                                    for s in d["segments"])
        assert "add_local_files" in viz.trace_plot(d)
