"""whyoom pack: every command reads a packed trace like the original, and any failure leaves the
original and nothing else."""

import json
import mmap
import os
import pathlib
import random
import shutil
import signal
import subprocess
import sys
import time

import pytest

HERE = pathlib.Path(__file__).parent
GOLDEN = HERE.parent / "golden" / "v1"
sys.path.insert(0, str(HERE.parent / "golden"))
import writer  # noqa: E402

WHYOOM = os.environ["WHYOOM_EXE"]
LIBRARY = pathlib.Path(WHYOOM).resolve().parents[2] / "shim" / "libwhyoom.so"
PACKED = b"\x50\x2a\x4d\x18\x10\x00\x00\x00WHYOOMP\n"


def whyoom(*words, **more):
    return subprocess.run([WHYOOM, *words], capture_output=True, timeout=60, **more)


def pack(*words, **more):
    done = whyoom("pack", *words, **more)
    assert done.returncode == 0, done.stderr
    return done


def failing(folder, **more):
    """A trace of a leak, refused at its limit, for the commands that need a failure."""
    folder.mkdir()
    d = writer.Definitions()
    d.module(1, "/nowhere/server")
    d.stack(1, [("native", 1, 0x1000, False), ("native", 1, 0x2000, False)])
    d.stack(2, [("native", 1, 0x1000, False), ("native", 1, 0x3000, False)])
    d.info("limit.as", str(1 << 30))
    c = writer.Chunk(1, 1000, size=16 * writer.SLOT)
    for n in range(20000):
        c.alloc(0x10000000 + n * 65536, 45000, stack=1, ticks=1000 + n * 1000)
        c.alloc(0x8000000, 45000, stack=2, ticks=1200 + n * 1000)
        c.free(0x8000000, 1400 + n * 1000)
    c.levels(writer.FAILED, (0, 0, 1, 12, 1 << 29, 0, 0, 1), ((5, 900 << 20), (128, 1 << 30)),
             ticks=30000000)
    (folder / "4711.0.whyoom").write_bytes(writer.trace([d, c], end=(1, 1)))
    return folder


def all_of(folder):
    return {p.name: p.read_bytes() for p in folder.iterdir()}


COMMANDS = [("report", "--format", "json"), ("report", "-v"), ("map", "--format", "json"),
            ("sites", "--by", "total"),
            ("check", "--format", "json"), ("what-if", "--memory", "64GiB")]


@pytest.mark.parametrize("name", ["kinds", "spaces", "killed", "marks", "arenas", "order",
                                  "failing"])
def test_every_command_reads_it(name, tmp_path):
    folder = tmp_path / "t"
    if name == "failing":
        failing(folder)
    else:
        shutil.copytree(GOLDEN / name, folder)
    raw = all_of(folder)
    before = [whyoom(*words, folder) for words in COMMANDS]
    said = pack(folder).stdout.decode()
    assert said.startswith(f"{len(raw)} file")
    for path in folder.iterdir():
        data = path.read_bytes()
        assert data.startswith(PACKED) and len(data) < len(raw[path.name])
    assert set(all_of(folder)) == set(raw)
    for words, old in zip(COMMANDS, before):
        new = whyoom(*words, folder)
        assert (new.returncode, new.stdout, new.stderr) == (old.returncode, old.stdout,
                                                            old.stderr), words
    assert pack("--unpack", folder).stdout.decode().startswith(f"{len(raw)} file")
    assert all_of(folder) == raw


def test_what_older_ones_packed(tmp_path):
    """Version 1, which any zstd unpacks."""
    folder = tmp_path / "t"
    shutil.copytree(GOLDEN / "packed", folder)
    old = all_of(folder)
    pack("-u", folder)
    for name, data in old.items():
        plain = subprocess.run(["zstd", "-dc"], input=data, stdout=subprocess.PIPE,
                               check=True).stdout
        assert plain == (folder / name).read_bytes()
    assert b"is not packed" in pack("-u", folder).stderr
    assert whyoom("pack", "-u", "-k", folder).returncode == 2


def test_replay_and_reduce(tmp_path):
    folder = failing(tmp_path / "t")
    pack(folder)
    done = whyoom("replay", "--format", "json", folder)
    assert done.returncode == 0, done.stderr
    json.loads(done.stdout)
    done = whyoom("reduce", "--time", "3", "-o", tmp_path / "small", folder)
    assert done.returncode == 0, done.stderr
    pack(tmp_path / "small")
    assert whyoom("report", tmp_path / "small").returncode == 0


def test_a_directory_may_hold_both(tmp_path):
    folder = tmp_path / "t"
    shutil.copytree(GOLDEN / "killed", folder)
    before = whyoom("report", "--format", "json", folder)
    pack(folder / "200.0.whyoom")
    assert whyoom("report", "--format", "json", folder).stdout == before.stdout
    done = pack(folder)
    assert b"200.0.whyoom is packed already" in done.stderr and done.stdout.startswith(b"2 files")
    assert whyoom("report", "--format", "json", folder).stdout == before.stdout


def test_elsewhere(tmp_path):
    folder = tmp_path / "t"
    shutil.copytree(GOLDEN / "killed", folder)
    raw = all_of(folder)
    pack("-o", tmp_path / "p", folder)
    assert all_of(folder) == raw and set(all_of(tmp_path / "p")) == set(raw)
    pack("-u", "-o", tmp_path / "u", tmp_path / "p")
    assert all_of(tmp_path / "u") == raw
    one = tmp_path / "one.whyoom"
    pack("-o", one, folder / "201.0.whyoom")
    assert one.read_bytes().startswith(PACKED)
    for target, source in ((one, folder / "200.0.whyoom"), (tmp_path / "p", folder)):
        assert whyoom("pack", "-o", target, source).returncode == 1
    assert all_of(folder) == raw


def test_keep(tmp_path):
    folder = tmp_path / "t"
    shutil.copytree(GOLDEN / "kinds", folder)
    raw = all_of(folder)
    os.chmod(folder / "4711.0.whyoom", 0o600)
    pack("--keep", folder)
    found = all_of(folder)
    assert set(found) == {"4711.0.whyoom",
                          "4711.0.whyoom.raw"} and found["4711.0.whyoom.raw"] == raw[
                              "4711.0.whyoom"]
    assert os.stat(folder / "4711.0.whyoom").st_mode & 0o777 == 0o600
    assert len(json.loads(whyoom("check", "--format", "json", folder).stdout)["processes"]) == 1


@pytest.mark.parametrize("how", ["open", "mapped"])
def test_one_that_is_held_is_refused(how, tmp_path):
    folder = tmp_path / "t"
    shutil.copytree(GOLDEN / "killed", folder)
    raw = all_of(folder)
    with open(folder / "201.0.whyoom", "r+b") as f:
        held = mmap.mmap(f.fileno(), 4096) if how == "mapped" else None
        if held:
            f.close()
        done = whyoom("pack", folder)
        assert (done.returncode == 1
                and f"process {os.getpid()} still has it open".encode() in done.stderr)
    assert all_of(folder) == raw


@pytest.mark.skipif(not LIBRARY.exists(), reason="no recording library in this build")
def test_a_running_process_is_refused(tmp_path):
    folder = pathlib.Path(os.getcwd()) / f"pack-{os.getpid()}"  # /tmp may be memory
    env = dict(os.environ, LD_PRELOAD=str(LIBRARY), WHYOOM_DIR=str(folder), WHYOOM_ALLOW_TMPFS="1")
    try:
        with subprocess.Popen(["cat"], env=env, stdin=subprocess.PIPE,
                              stdout=subprocess.PIPE) as one:
            one.stdin.write(b"x\n")
            one.stdin.flush()
            one.stdout.readline()
            done = whyoom("pack", folder)
            assert done.returncode == 1 and b"still has it open" in done.stderr
            one.stdin.close()
            one.wait()
        pack(folder)
        assert whyoom("check", folder).returncode == 0
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def large(folder):
    """One that takes a while, and whose packed form is large."""
    folder.mkdir()
    random.seed(1)
    chunk = writer.Chunk(1, 1000, size=16 * writer.SLOT)
    for _ in range(60000):
        chunk.alloc(random.randrange(1 << 40) * 16, random.randrange(1 << 20), stack=0)
    data = chunk.encode()
    (folder / "4711.0.whyoom").write_bytes(writer.trace([data] * 40, end=(1, 0)))
    return folder


def test_no_room(tmp_path):
    folder = large(tmp_path / "t")
    raw = all_of(folder)
    done = subprocess.run(["prlimit", "--fsize=1000000", WHYOOM, "pack", folder],
                          capture_output=True)
    assert done.returncode == 1 and b"cannot be packed: File too large" in done.stderr
    assert all_of(folder) == raw


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_interrupted(number, tmp_path):
    folder = large(tmp_path / "t")
    raw = all_of(folder)
    with subprocess.Popen([WHYOOM, "pack", folder], stdout=subprocess.DEVNULL) as one:
        while one.poll() is None and len(list(folder.iterdir())) < 2:
            time.sleep(0.001)
        one.send_signal(number)
        assert one.wait() == -number
    assert all_of(folder) == raw


def test_damaged(tmp_path):
    """Packed bytes are not trusted either: no command crashes; each first names the fault, then
    tells the rest."""
    folder = failing(tmp_path / "t")
    pack(folder)
    path = folder / "4711.0.whyoom"
    data = path.read_bytes()
    path.write_bytes(data[:-1])
    done = whyoom("report", folder)
    assert done.returncode == 1 and b"it was cut off" in done.stderr
    middle = len(data) // 2
    path.write_bytes(data[:middle] + bytes(b ^ 0x55 for b in data[middle:middle + 50])
                     + data[middle + 50:])
    damaged = all_of(folder)
    for words in (["report"], ["map"], ["sites"]):
        done = whyoom(*words, folder)
        assert done.returncode == 0 and done.stdout.startswith(b"Damaged trace: "), done
    done = whyoom("check", folder)
    assert done.returncode == 1 and b"unreadable" in done.stdout, done
    done = whyoom("pack", "--unpack", folder)
    assert done.returncode == 1 and b"is damaged" in done.stderr, done
    assert all_of(folder) == damaged


def test_what_is_no_trace(tmp_path):
    path = tmp_path / "1.0.whyoom"
    path.write_text("no trace\n" * 1000)
    assert whyoom("pack", path).returncode == 1
    assert whyoom("pack").returncode == 2 and whyoom("pack", "-o", "x", "a", "b").returncode == 2
    assert path.read_text() == "no trace\n" * 1000 and len(list(tmp_path.iterdir())) == 1
