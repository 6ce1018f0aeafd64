"""--max-memory: a trace that needs more ends with a line that tells how much would be enough, and
leaves no half-written output; that much gives an answer."""

import os
import pathlib
import re
import resource
import subprocess
import sys

import pytest

HERE = pathlib.Path(__file__).parent
sys.path.insert(0, str(HERE.parent / "golden"))
import writer  # noqa: E402

WHYOOM = os.environ["WHYOOM_EXE"]
BLOCKS = 40000


@pytest.fixture(scope="module")
def large(tmp_path_factory):
    """Many live blocks, of many call sites; the last request is refused."""
    folder = tmp_path_factory.mktemp("large")
    definitions = writer.Definitions(size=16 * writer.SLOT)
    definitions.module(1, "/nowhere/server")
    for stack in range(1, 5001):
        definitions.stack(stack, [("native", 1, 0x1000, False),
                                  ("native", 1, 0x2000 + stack * 16, False)])
    definitions.info("limit.as", str(1 << 30))
    chunks, chunk, ticks = [definitions], None, 1000
    for n in range(BLOCKS):
        if n % 20000 == 0:
            chunk = writer.Chunk(1, ticks, sequence=len(chunks) - 1, size=16 * writer.SLOT)
            chunks.append(chunk)
        ticks += 1000
        chunk.alloc(0x10000000 + n * 4096, 1000 + n % 7, stack=1 + n % 5000, ticks=ticks)
        if n % 4 == 0:
            chunk.alloc(0x8000000, 4000, stack=1, ticks=ticks + 200)
            chunk.free(0x8000000, ticks + 400)
    chunk.levels(writer.FAILED, (0, 0, 1, 12, 1 << 29, 0, 0, 5), ((5, 900 << 20), (128, 1 << 30)),
                 ticks=ticks + 1000)
    (folder / "4711.0.whyoom").write_bytes(writer.trace(chunks, end=(1, 1)))
    return folder


COMMANDS = {"report": [], "report-json": ["--format", "json"], "map": [],
            "sites": ["--by", "growth"], "check": [],
            "what-if": ["--memory", "2GiB"], "what-if-cap": ["--cap-growth", "1MiB"],
            "reduce": ["--time", "1"],
            "replay": []}


def ask(name, trace, out, most):
    command = re.match("what-if|[a-z]+", name)[0]
    output = [] if command == "check" else ["-o", out]
    return subprocess.run([WHYOOM, command, *COMMANDS[name], *output, "--max-memory", most, trace],
                          text=True,
                          capture_output=True, timeout=120)


@pytest.mark.parametrize("name", COMMANDS)
def test_says_how_much_would_do(name, large, tmp_path):
    out, most = tmp_path / "out", "3MiB"
    done = ask(name, large, out, most)
    assert done.returncode == 1, done.stdout
    for _ in range(6):
        if not done.returncode:
            break
        # `check` reports as much as it can of a trace that it could not read to its end, if it
        # could begin.
        where = " ".join((done.stdout or done.stderr).split()) if name == "check" else done.stderr
        assert name == "check" or (done.stdout == ""
                                   and len(done.stderr.splitlines()) == 1), done.stderr
        assert not list(tmp_path.iterdir())
        said = re.search(r"--max-memory is ([\d.]+ \w+); (?:try|by how far it came, about) ([\d.]+ "
                         r"\w+)", where)
        assert said, where
        most = said[2].replace(" ", "")
        done = ask(name, large, out, most)
    assert done.returncode == 0, done.stderr
    assert name == "check" or out.exists()


def test_a_small_one_needs_little(tmp_path):
    trace = HERE.parent / "golden" / "v1" / "kinds"
    done = ask("report", trace, tmp_path / "out", "12MiB")
    assert done.returncode == 0, done.stderr


def test_explain(tmp_path):
    log = tmp_path / "log"
    log.write_text("".join(f"torch.OutOfMemoryError: CUDA out of memory. Tried to allocate {n}.00 "
                           f"GiB. GPU 0 has a total "
                           f"capacity of 80.00 GiB of which 1.25 GiB is free.\n"
                           for n in range(1, 2000)))
    done = subprocess.run([WHYOOM, "explain", "--max-memory=2MiB", log], text=True,
                          capture_output=True, timeout=60)
    assert done.returncode == 1 and done.stdout == "" and "--max-memory is 2.00 MiB" in done.stderr
    assert subprocess.run([WHYOOM, "explain", "--max-memory=0", log],
                          capture_output=True).returncode == 0


def test_wrong_ones():
    for words in (["report", "--max-memory", "much", "x"], ["report", "x", "--max-memory"],
                  ["check", "--max-memory=", "x"]):
        done = subprocess.run([WHYOOM, *words], text=True, capture_output=True)
        assert done.returncode == 2 and "--max-memory" in done.stderr, words


def test_a_limit_by_default():
    """By default, too: not more than the machine has."""
    total = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGESIZE")
    with subprocess.Popen([WHYOOM, "explain"], stdin=subprocess.PIPE,
                          stdout=subprocess.DEVNULL) as one:
        limit = resource.RLIM_INFINITY
        while limit == resource.RLIM_INFINITY and one.poll() is None:
            limit = resource.prlimit(one.pid, resource.RLIMIT_DATA)[0]
        one.stdin.close()
    assert 0 < limit <= total
