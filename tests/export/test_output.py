"""Where an export goes: whole or not at all on a full disk, an error, an interrupt; never binary to
a terminal; nothing that steers a terminal; and no more memory for more events."""

import functools
import os
import pathlib
import pty
import resource
import signal
import subprocess
import sys
import time
import unicodedata

import pytest
from lib import (TESTS, WHYOOM, example, export, formats, golden, host_formats, read_folded,
                 read_jsonl, read_pprof, read_speedscope)
from prometheus_client.openmetrics.parser import text_string_to_metric_families

sys.path.insert(0, os.path.join(TESTS, "cli"))
import test_hostile  # noqa: E402

# Threads that hand out many small blocks from a few call sites, and then grow.
PROGRAM = r"""
#include <stdlib.h>
#include <string.h>
static void *volatile slot[4096];
__attribute__((noinline)) static void churn(unsigned n, unsigned seed)
{
	for (unsigned i = 0; i < n; i++) {
		seed = seed * 1664525 + 1013904223;
		void *volatile *at = &slot[seed >> 20];
		free((void *)*at);
		*at = malloc(16 + (seed >> 8) % 500);
	}
}
int main(int argc, char **argv)
{
	churn((unsigned)atoi(argv[1]), 1);
	for (;;) {
		char *p = malloc(1 << 20);
		if (!p)
			return 1;
		memset(p, 1, 1 << 20);
	}
}
"""


@pytest.fixture(scope="module")
def recorded(tmp_path_factory):
    """Traces of a tenth and of all of the events."""
    folder = tmp_path_factory.mktemp("recorded")
    (folder / "churn.c").write_text(PROGRAM)
    subprocess.run(["gcc", "-O1", "-g", "-o", folder / "churn", folder / "churn.c"], check=True)
    for name, rounds in (("small", 100000), ("large", 1000000)):
        subprocess.run([WHYOOM, "run", "--quiet", "-o", folder / name, "--", folder / "churn",
                        str(rounds)], capture_output=True, timeout=120, preexec_fn=lambda:
                       resource.setrlimit(resource.RLIMIT_AS, (300 << 20, 300 << 20)))
    return folder


@pytest.fixture
def out(tmp_path):
    """A folder that holds an older result, which nothing but a whole new one replaces."""
    (tmp_path / "out").write_text("older")
    return tmp_path


def untouched(folder):
    return os.listdir(folder) == ["out"] and (folder / "out").read_text() == "older"


@pytest.mark.parametrize("kind", formats())
def test_to_a_file(kind, out):
    """The same bytes as through a pipe, under the usual mode, and twice the same."""
    trace = example(kind)
    export(trace, kind, "-o", out / "out")
    first = (out / "out").read_bytes()
    assert os.listdir(out) == ["out"] and first and first != b"older"
    assert (out / "out").stat().st_mode & 0o777 == 0o666 & ~umask()
    export(trace, kind, "-o", out / "out")
    assert (out / "out").read_bytes() == first
    piped = subprocess.run([WHYOOM, "export", "-f", kind, trace], capture_output=True)
    if piped.returncode == 2:
        assert b"needs a file: -o FILE" in piped.stderr
    else:
        assert piped.stdout == first


def umask():
    mask = os.umask(0)
    os.umask(mask)
    return mask


@pytest.mark.parametrize("kind", host_formats())
def test_full(kind, recorded, out):
    """No room: for the process, on the device, for stdout."""
    small = recorded / "small"
    done = subprocess.run([WHYOOM, "export", "-f", kind, "-o", out / "out", small],
                          capture_output=True, text=True, timeout=120, preexec_fn=lambda:
                          resource.setrlimit(resource.RLIMIT_FSIZE, (200, 200)))
    assert done.returncode == 1 and done.stderr.startswith("whyoom: "), done
    assert "File too large" in done.stderr or "full" in done.stderr or "write" in done.stderr
    assert untouched(out)
    done = subprocess.run([WHYOOM, "export", "-f", kind, "-o", "/dev/full", small],
                          capture_output=True, text=True, timeout=120)
    assert done.returncode in (1, 2) and done.stderr
    with open("/dev/full", "wb") as full:
        done = subprocess.run([WHYOOM, "export", "-f", kind, small], stdout=full,
                              stderr=subprocess.PIPE, text=True, timeout=120)
    assert done.returncode in (1, 2) and done.stderr


@pytest.mark.parametrize("kind", host_formats())
def test_interrupted(kind, recorded, out):
    """At several moments of the run: dead by the signal and nothing left, or done before it."""
    ended = 0
    for number, wait in ((signal.SIGINT, 0.1), (signal.SIGTERM, 0.2), (signal.SIGINT, 0.4)):
        child = subprocess.Popen([WHYOOM, "export", "-f", kind, "-o", out / "out",
                                  recorded / "large"], stderr=subprocess.DEVNULL)
        time.sleep(wait)
        child.send_signal(number)
        if child.wait(60) == 0:
            break
        assert child.returncode == -number
        assert untouched(out)
        ended += 1
    assert ended


@pytest.mark.parametrize("kind", formats())
def test_terminal(kind):
    """A binary format is refused with what to do instead; text arrives."""
    first, second = pty.openpty()
    done = subprocess.run([WHYOOM, "export", "-f", kind, golden()[0]], stdout=second,
                          stderr=subprocess.PIPE, text=True, timeout=60)
    os.close(second)
    os.close(first)
    assert done.returncode == (0 if kind in ("folded", "speedscope", "openmetrics", "jsonl") else 2)
    assert done.returncode == 0 or "-o FILE" in done.stderr


def peak_of(*words):
    """The most resident bytes of the command, its output thrown away."""
    pid = os.posix_spawn(WHYOOM, [WHYOOM, *map(str, words)], os.environ,
                         file_actions=[(os.POSIX_SPAWN_OPEN, 1, "/dev/null", os.O_WRONLY, 0)])
    _, status, usage = os.wait4(pid, 0)
    assert status == 0
    return usage.ru_maxrss << 10


@functools.cache
def report_peak(trace):
    return peak_of("report", "-o", trace.parent / "report", trace)


@pytest.mark.parametrize("kind", host_formats())
def test_memory(kind, recorded, tmp_path):
    """Ten times the events cost the export no more than a report, and little beside it."""
    beside = {}
    for name in ("small", "large"):
        beside[name] = peak_of("export", "-f", kind, "-o", tmp_path / "out", recorded / name)
        beside[name] -= report_peak(recorded / name)
    assert beside["large"] < beside["small"] + (16 << 20)
    assert beside["large"] < 64 << 20


trace = test_hostile.trace


def calm(text):
    """No character that steers a terminal or misleads the eye, but line ends."""
    return [c for c in text if c != "\n" and unicodedata.category(c) in ("Cc", "Cf", "Cs", "Zl",
                                                                         "Zp")]


def test_hostile_names(trace, tmp_path):
    def text(kind, *words):
        data = export(trace, kind, *words)
        assert not calm(data.decode()), kind
        return data

    for frames, _ in read_folded(text("folded", "--measure", "total", "--space", "host")):
        assert all(frames) and all("\n" not in f for f in frames)
    assert read_folded(text("folded", "--measure", "total", "--space", "host"))
    assert any("</script>" in name for stacks in read_speedscope(text("speedscope")).values()
               for names, _ in stacks for name in names)
    assert list(text_string_to_metric_families(text("openmetrics").decode()))
    assert {line["type"] for line in read_jsonl(text("jsonl"))} >= {"header", "stack", "verdict"}
    _, samples = read_pprof(export(trace, "pprof", "--space", "all"))
    assert samples and not any(calm(name) for _, names, _ in samples for name in names)


def test_damaged(tmp_path):
    """What can be read is exported, and the damage is not hidden."""
    data = (pathlib.Path(TESTS) / "golden/v1/order/100.0.whyoom").read_bytes()[:-66000]
    (tmp_path / "4711.0.whyoom").write_bytes(data)
    for kind in host_formats():
        done = subprocess.run([WHYOOM, "export", "-f", kind, "-o", tmp_path / "out", tmp_path],
                              capture_output=True, text=True)
        assert done.returncode == 0 and "is damaged" in done.stderr, (kind, done)
    header = read_jsonl(export(tmp_path / "4711.0.whyoom", "jsonl"))[0]
    assert header["damaged"] and not read_jsonl(export(golden()[0], "jsonl"))[0]["damaged"]


def test_documented():
    for path in ("analyzer/man/whyoom-export.1", "docs/exports.md"):
        with open(os.path.join(TESTS, "..", path)) as f:
            text = f.read()
        for kind in formats():
            assert f".It Cm {kind}\n" in text or f"\n| `{kind}` |" in text, (path, kind)


def test_wrong_options():
    for words in (["-f", "nothing"], ["--measure", "weight"], ["--at", "noon"],
                  ["-f", "pprof", "--measure", "live"], ["-f", "folded", "--events", "10"],
                  ["-f", "folded", "--history"], ["-f", "folded", "--gzip"],
                  ["-f", "jsonl", "--events", "some"], ["--space", "all"]):
        done = subprocess.run([WHYOOM, "export", *words, golden()[0]], capture_output=True,
                              text=True)
        assert done.returncode == 2 and not done.stdout and "Try `whyoom" in done.stderr, words
    done = subprocess.run([WHYOOM, "export", "--space", "cuda:7", golden()[0]],
                          capture_output=True, text=True)
    assert done.returncode == 1 and "no space 'cuda:7'" in done.stderr
