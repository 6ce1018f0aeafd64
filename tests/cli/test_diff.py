"""whyoom diff: what changed between two traces. tests/diff asks whether it is right on real pairs;
here, what it prints, and its options."""

import json
import os
import pathlib
import subprocess
import sys

import pytest

HERE = pathlib.Path(__file__).parent
sys.path.insert(0, str(HERE.parent / "golden"))
import writer  # noqa: E402

WHYOOM = os.environ["WHYOOM_EXE"]
SERVER = HERE.parent / "diff" / "progs" / "server.c"
KIB = 1024


def whyoom(*words, status=0, **more):
    done = subprocess.run([WHYOOM, *map(str, words)], capture_output=True, text=True, timeout=60,
                          **more)
    assert done.returncode == status, (words, done.stdout, done.stderr)
    return done


def diff(*words, **more):
    return json.loads(whyoom("diff", "--format", "json", *words, **more).stdout)


def trace(folder, kept=40 * KIB, shift=0, pid=4711, limit="1073741824", rounds=64):
    """A buffer that comes and goes in each round, a block that stays. `shift` moves all code."""
    folder.mkdir(exist_ok=True)
    d = writer.Definitions()
    d.module(1, "/nowhere/server")
    for code, (name, line) in enumerate((("main", 50), ("load", 10), ("handle", 20)), 1):
        d.code(code, 0x30B, line + shift, name, "/srv/server.py", bytes([0x80, 0]))
    d.stack(1, [("python", 1, 0), ("python", 2, 0)])
    d.stack(2, [("python", 1, 0), ("python", 3, 0)])
    d.info("limit.as", limit)
    c = writer.Chunk(1, 1000, size=16 * writer.SLOT)
    for n in range(rounds):
        c.alloc(0x10000000 + n * 0x100000, kept, stack=1, ticks=1000 + n * 1000)
        c.alloc(0x8000000, 45000, stack=2, ticks=1200 + n * 1000)
        c.free(0x8000000, 1400 + n * 1000)
    (folder / f"{pid}.0.whyoom").write_bytes(writer.trace([d, c], pid=pid, end=(1, 0)))
    return folder


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    """Two recordings of a server that marks its requests: of 500 and of 1500."""
    folder = tmp_path_factory.mktemp("served")
    exe = folder / "server"
    subprocess.run(["gcc", "-O1", "-g", "-w", "-I", HERE.parent.parent / "include", "-o", exe,
                    SERVER], check=True)
    for requests in (500, 1500):
        whyoom("run", "-o", folder / str(requests), "--", exe, requests)
    return folder / "500", folder / "1500"


def test_sentence_first(tmp_path):
    a, b = trace(tmp_path / "a"), trace(tmp_path / "b", kept=60 * KIB, shift=7)
    text = whyoom("diff", a, b).stdout
    said = " ".join(text.split("\n\n")[0].split())
    assert said.startswith("load (server.py"), said
    assert "1.25 MiB more at the peak: 3.75 MiB instead of 2.50 MiB" in said
    r = diff(a, b)
    assert r["sentence"] == said
    first, = r["changes"]
    assert (first["function"], first["kind"], first["seen_by"]) == ("load", "grew", "held")
    assert first["change_bytes"] == 64 * 20 * KIB and first["matched"]
    assert first["line"] == first["line_before"] + 7
    assert first["stacks"][0]["stack"][0]["function"] == "load"
    assert first["stacks"][0]["b_bytes"] - first["stacks"][0]["a_bytes"] == 64 * 20 * KIB
    assert diff(b, a)["changes"][0]["kind"] == "shrank"


def test_equal(tmp_path):
    a, b = trace(tmp_path / "a"), trace(tmp_path / "b", shift=3, pid=12)
    r = diff(a, b)
    assert r["sentence"].startswith("No change seen") and not r["changes"]
    host, = r["spaces"]
    assert host["a"]["unmatched_bytes"] == host["b"]["unmatched_bytes"] == 0
    assert host["a"]["matched_by_line_bytes"] == 0
    assert "No change seen" in whyoom("diff", "-v", "--native", a, b).stdout


def test_sums(tmp_path, served):
    """The lines of a side add up to what `sites` says of it."""
    for a, b in ((trace(tmp_path / "a"), trace(tmp_path / "b", kept=50 * KIB)), served):
        host = diff("-n", "0", a, b)
        for side, path in (("a", a), ("b", b)):
            sites = json.loads(whyoom("sites", "--at", "peak", "-n", "0", "--format", "json",
                                      path).stdout)
            total = host["spaces"][0][side]["amount"]["bytes"]
            assert total == sites["live_bytes"]
            assert total == sum(p[side]["bytes"]
                                for p in host["changes"] + host["spaces"][0]["unchanged"])


def test_new_and_gone(tmp_path):
    a, b = trace(tmp_path / "a"), tmp_path / "b"
    data = next(trace(b).iterdir())
    data.write_bytes(data.read_bytes().replace(b"load", b"fill").replace(b"main", b"boss"))
    # Two names changed, and all else is alike: the same line.
    r = diff(a, b)
    assert not r["changes"]
    trace(b, kept=4 * KIB)
    data.write_bytes(data.read_bytes().replace(b"load", b"fill").replace(b"main", b"boss"))
    r = diff(a, b)
    assert [(p["kind"], p["function"], p["matched"]) for p in r["changes"]] == [
        ("gone", "load", False), ("new", "fill", False)]
    assert r["spaces"][0]["a"]["unmatched_bytes"] == 64 * 40 * KIB
    assert "Lines without a match hold 2.50 MiB of A and 256 KiB of B" in " ".join(
        whyoom("diff", a, b).stdout.split())


def test_fail_if_larger(tmp_path):
    a, b = trace(tmp_path / "a"), trace(tmp_path / "b", kept=44 * KIB)
    assert diff(a, b)["growth"] == pytest.approx(0.1, abs=0.01)
    assert "larger than A by" in whyoom("diff", "--fail-if-larger", "5%", a, b, status=1).stderr
    whyoom("diff", "--fail-if-larger", "20%", a, b)
    whyoom("diff", "--fail-if-larger", "0%", b, a)
    whyoom("diff", "--fail-if-larger", "0%", a, a)
    # The result is written in either case.
    out = tmp_path / "out.json"
    whyoom("diff", "--format", "json", "-o", out, "--fail-if-larger", "5%", a, b, status=1)
    assert json.loads(out.read_text())["changes"]


def test_two_moments(tmp_path):
    a = trace(tmp_path / "a")
    end = json.loads(whyoom("report", "--format", "json", a).stdout)["processes"][0]["seconds"]
    r = diff(a, "--at", f"{end / 2}s", "--and", "end")
    assert r["one_run"] and r["b"]["at"] == "end"
    assert r["changes"][0]["function"] == "load"
    assert r["changes"][0]["change_bytes"] == pytest.approx(32 * 40 * KIB, rel=0.1)
    assert not diff(a, "--at", "end", "--and", "end")["changes"]


def test_by_total(tmp_path):
    a, b = trace(tmp_path / "a"), trace(tmp_path / "b")
    assert not diff("--by", "total", a, b)["changes"]
    assert diff("--by", "total", a, b)["a"]["at"] == "end"
    r = diff("--by", "total", a, trace(tmp_path / "c", kept=90 * KIB))
    assert [p["seen_by"] for p in r["changes"]] == ["acquired"]


def test_facts(tmp_path):
    a, b = trace(tmp_path / "a"), trace(tmp_path / "b", limit="2147483648")
    facts = {(f["kind"], f["name"]): (f["a"], f["b"]) for f in diff(a, b)["facts"]}
    assert facts["limit", "limit.as"] == ("1073741824", "2147483648")
    assert any(kind == "ledger" for kind, _ in facts)
    text = whyoom("diff", a, b).stdout
    assert "limit.as is 2147483648, before 1073741824" in " ".join(text.split())


def test_phases(served):
    """Of runs that are three times as long, the same phase lies beside the same."""
    r = diff(*served)
    phases = r["spaces"][0]["phases"]
    names = [p["name"] for p in phases]
    assert "serving" in names and len(names) == len(set(names)), names
    for side in "ab":
        own = [p[side] for p in phases if p[side]]
        assert own[0]["from_seconds"] == 0
        # One begins where the one before ends.
        assert [p["until_seconds"] for p in own[:-1]] == [p["from_seconds"] for p in own[1:]]
        assert all(p["peak_bytes"] == max(p["points"]) >= p["end_bytes"] for p in own)
        assert all(len(p["points"]) == 120 for p in own)
        assert max(p["peak_bytes"] for p in own) == r["spaces"][0][side]["peak_bytes"]
    serving, = (p for p in phases if p["name"] == "serving")
    assert serving["a"]["peak_bytes"] == pytest.approx(serving["b"]["peak_bytes"], rel=0.05)
    text = whyoom("diff", "-v", *served).stdout
    assert "serving: at most" in text and "\n  A " in text and "\n  B " in text


def test_curves(tmp_path):
    """Without phases both runs lie side by side from begin to end, but what comes after the moment
    is not known."""
    a, b = trace(tmp_path / "a"), trace(tmp_path / "b", kept=60 * KIB)
    phase, = diff(a, b)["spaces"][0]["phases"]
    assert phase["name"] == "run"
    for side, kept in (("a", 40), ("b", 60)):
        points = phase[side]["points"]
        # It grows all the time, but for the buffer that comes and goes.
        assert len(points) == 120 and all(y >= x - 45000 for x, y in zip(points, points[1:]))
        assert phase[side]["end_bytes"] == 64 * kept * KIB
        assert points[-1] == 64 * kept * KIB + 45000
    end = phase["a"]["until_seconds"]
    phase, = diff(a, "--at", f"{end / 2}s", "--and", "end")["spaces"][0]["phases"]
    assert 58 <= len(phase["a"]["points"]) <= 62 and len(phase["b"]["points"]) == 120
    assert phase["b"]["points"][:len(phase["a"]["points"]) - 1] == phase["a"]["points"][:-1]


def test_marked_phases(tmp_path):
    """The program's own marks are aligned by name; what one side lacks stands alone."""
    def marked(folder, phases):
        folder.mkdir()
        d = writer.Definitions()
        d.module(1, "/nowhere/server")
        d.code(1, 0x30B, 50, "main", "/srv/server.py", bytes([0x80, 0]))
        d.stack(1, [("python", 1, 0)])
        c = writer.Chunk(1, 1000, size=16 * writer.SLOT)
        for n, name in enumerate(phases, 1):
            d.string(n, name)
            at = n * 1000000
            c.extended(writer.MARK, 1, n, n, 1, 0, 0, 0, ticks=at)
            c.alloc(0x10000000 + n * 0x100000, 100 * KIB * (1 + ord(name[0]) % 8), stack=1,
                    ticks=at + 400000)
            c.extended(writer.MARK, 2, n, 0, 1, 0, 0, 0, ticks=at + 900000)
        (folder / "17.0.whyoom").write_bytes(writer.trace([d, c], pid=17, end=(1, 0)))
        return folder

    a = marked(tmp_path / "a", ["load", "warm", "epoch", "epoch"])
    b = marked(tmp_path / "b", ["load", "epoch", "epoch", "save"])
    phases = diff(a, b)["spaces"][0]["phases"]
    assert [(p["name"], p["a"] is not None, p["b"] is not None) for p in phases
            if p["name"] not in ("start-up", "end")] == [
        ("load", True, True), ("warm", True, False), ("epoch", True, True), ("epoch", True, True),
        ("save", False, True)]
    sizes = {p["name"]: p["a"]["end_bytes"] for p in phases if p["a"]}
    assert sizes["load"] == 100 * KIB * (1 + ord("l") % 8)
    text = whyoom("diff", "-v", a, b).stdout
    assert "warm, only in A: " in " ".join(text.split()), text


def test_holes_of_the_host(tmp_path):
    """Between the blocks of the same range, and what malloc says is free."""
    a, b = trace(tmp_path / "a"), trace(tmp_path / "b", kept=(1 << 20) - 0x4000)
    host = diff(a, b)["spaces"][0]
    maps = {side: json.loads(whyoom("map", "--space", "host", "--at", "peak", "--format", "json",
                                    path).stdout) for side, path in (("a", a), ("b", b))}
    for side in "ab":
        layout = host[side]["layout"]
        for key in ("holes", "hole_bytes", "largest_hole_bytes"):
            assert layout[key] == maps[side][key], (side, key)
        assert host[side]["malloc_free_bytes"] is None  # nobody asked malloc
    text = " ".join(whyoom("diff", a, b).stdout.split())
    assert "Holes: " in text


def test_processes(tmp_path):
    a, b = trace(tmp_path / "a"), trace(tmp_path / "b", kept=60 * KIB)
    trace(tmp_path / "b", pid=99, rounds=2)
    assert diff(a, b)["b"]["pid"] == 4711  # which the report is about
    assert diff("--pid", "4711,99", a, b)["b"]["pid"] == 99
    assert not diff("--pid", "4711", b, a)["b"]["pid"] != 4711
    assert "no process 99" in whyoom("diff", "--pid", "99", a, b, status=1).stderr


def test_requests(served):
    """Three times as many requests are no change, neither in all nor for each."""
    a, b = served
    r = diff(a, b)
    host = r["spaces"][0]
    assert host["work_in_requests"] and host["work"] == pytest.approx(3, rel=0.15)
    assert not r["changes"], r["sentence"]
    r = diff("--per-request", a, b)
    assert r["per_request"]
    whole = r["spaces"][0]["a"]
    assert whole["amount"]["bytes"] == pytest.approx(
        host["a"]["amount"]["bytes"] / whole["requests"], abs=1)
    assert {f["name"] for f in r["facts"] if f["kind"] == "requests"} >= {
        "begun", "finished", "acquired each"}


def test_no_requests(tmp_path):
    a = trace(tmp_path / "a")
    assert "no requests are known" in whyoom("diff", "--per-request", a, a, status=1).stderr


@pytest.mark.parametrize("words, says", [
    ((), "there are 0"), (("A",), "--at 10s --and 60s"), (("A", "A", "A"), "there are 3"),
    (("--by", "size", "A", "A"), "live or total"), (("--fail-if-larger", "5", "A", "A"), "5%"),
    (("--fail-if-larger", "-1%", "A", "A"), "5%"), (("--pid", "0", "A", "A"), "--pid"),
    (("--pid", "1,", "A", "A"), "--pid"), (("--and", "noon", "A", "A"), "--and"),
    (("--at", "-3s", "A"), "--at"), (("--limit", "x", "A", "A"), "--limit")])
def test_usage(tmp_path, words, says):
    a = trace(tmp_path / "a")
    done = whyoom("diff", *(a if w == "A" else w for w in words), status=2)
    assert says in done.stderr and not done.stdout


def test_wrong_input(tmp_path):
    a = trace(tmp_path / "a")
    assert "no space 'cuda:7'" in whyoom("diff", "--space", "cuda:7", a, a, status=1).stderr
    assert "use --at peak" in whyoom("diff", "--at", "failure", a, a, status=1).stderr
    assert "nothing" in whyoom("diff", a, tmp_path / "nothing", status=1).stderr
    # Narrow, wide, and with nothing but ASCII.
    for columns in ("40", "60", "200"):
        text = whyoom("diff", "-v", a, trace(tmp_path / "b", kept=80 * KIB),
                      env={**os.environ, "COLUMNS": columns, "LC_ALL": "C"}).stdout
        assert max(map(len, text.split("\n"))) <= int(columns)
        assert text.isascii()
