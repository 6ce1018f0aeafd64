"""`whyoom watch` on running programs: what grows is named, what does not is not accused, and
nothing is changed by looking."""
import glob
import os
import re
import signal
import subprocess
import time

import pytest
from lib import WHYOOM, of, until, values, watch


def test_growth_is_named(programs, tmp_path):
    leaks = programs.start("leak", "60")
    steady = programs.start("steady", "60")
    time.sleep(8)
    page = tmp_path / "metrics.prom"
    watch("--once", "--warm-up", 0, "--textfile", page, "--label", "pod=a", programs.folder)
    found = values(page.read_text())
    host = {"space": "host", "pod": "a"}
    rate = of(found, "whyoom_memory_growth_bytes_per_second", pid=str(leaks.pid), **host)
    left = of(found, "whyoom_memory_headroom_bytes", pid=str(leaks.pid), **host)
    assert rate > 100_000
    assert of(found, "whyoom_time_to_failure_seconds", pid=str(leaks.pid), bound="expected",
              **host) == pytest.approx(left / rate, rel=0.01)
    assert of(found, "whyoom_memory_growth_bytes_per_second", pid=str(steady.pid), **host) == 0
    assert of(found, "whyoom_time_to_failure_seconds", pid=str(steady.pid), bound="soonest",
              **host) == float("inf")
    sites = {v: dict(l)["function"] for (n, l), v in found.items()
             if n == "whyoom_site_growth_bytes_per_second"}
    assert sites[max(sites)] == "remember"
    text = watch("--once", "--warm-up", 0, programs.folder).stdout
    first = text.splitlines()[0]
    assert first.startswith(f"pid {leaks.pid}, host: full in ") and "in remember (" in first
    assert "does not grow" in text
    # By its pid alone.
    alone = watch("--once", leaks.pid).stdout
    assert f"pid {leaks.pid} " in alone and f"pid {steady.pid} " not in alone
    assert "too early to tell" in alone  # the usual warm-up is a minute
    assert leaks.poll() is None and steady.poll() is None


def report(process):
    """What `whyoom report` says of a running process's trace, in one line."""
    found = glob.glob(os.path.join(process.folder, f"{process.pid}.*.whyoom"))
    said = subprocess.run([WHYOOM, "report", *found], capture_output=True, text=True, timeout=60)
    assert said.returncode == 0, said.stderr
    return " ".join(said.stdout.split())


def test_report_says_what_comes(programs):
    """A report on a process that still runs names its end before it comes."""
    leaks = programs.start("leak", "120", limit=160 << 20)
    steady = programs.start("steady", "120")
    for process in (leaks, steady):
        process.folder = programs.folder
    while "It still runs, and at this rate the " not in (said := report(leaks)):
        assert leaks.poll() is None, said
        time.sleep(0.5)
    assert re.search(r"that are left will be full in [^(]+\([^)]+\)\.", said), said
    assert re.search(r"If it were full now, that would be leak, \d\d % sure, in remember "
                     r"\(<string>:8\)\.", said), said
    assert "It still runs, and" not in report(steady)
    assert steady.poll() is None


def test_processes_come_and_go(programs, tmp_path):
    """The one with the least room is told: it changes as they come and go."""
    lines = tmp_path / "lines"

    def told(process):
        assert until(lambda: f"pid {process.pid}" in lines.read_text()), lines.read_text()

    first = programs.start("steady", "600")
    with open(lines, "w") as out, subprocess.Popen(
            [WHYOOM, "watch", "--interval", "0.3", programs.folder], stdout=out) as watcher:
        told(first)
        second = programs.start("leak", "600", limit=120 << 20)
        told(second)
        first.kill()
        third = programs.start("steady", "600")
        second.kill()
        told(third)
        watcher.send_signal(signal.SIGINT)
        assert watcher.wait(60) == 0


def test_textfile_is_whole_and_removed(programs, tmp_path):
    programs.start("steady", "600")
    page = tmp_path / "node" / "whyoom.prom"
    page.parent.mkdir()
    with subprocess.Popen([WHYOOM, "watch", "--interval", "0.1", "--textfile", page,
                           programs.folder], stdout=subprocess.DEVNULL) as watcher:
        assert until(page.exists)
        for _ in range(20):
            assert page.read_text().endswith("\n") and "whyoom_build_info" in page.read_text()
            time.sleep(0.05)
        watcher.terminate()
        assert watcher.wait(60) == 0
    assert not os.listdir(page.parent)


def test_the_process_ends(programs):
    ends = programs.start("steady", "5")
    got = watch("--interval", "0.2", ends.pid)
    assert ends.wait(60) == 0 and len(got.stdout.splitlines()) > 2


def test_wrong_usage(tmp_path):
    for arguments, words in (
            ([], "one directory, trace or process"),
            (["--label", "pid=1", tmp_path], "is no name of a label"),
            (["--label", "a", tmp_path], "KEY=VALUE"),
            (["--interval", "0", tmp_path], "0.1 seconds at least"),
            (["--interval", "x", tmp_path], "number of seconds")):
        got = watch(*arguments, check=False)
        assert got.returncode == 2 and words in got.stderr, got.stderr
    got = watch(tmp_path / "none", check=False)
    assert got.returncode == 1 and "No such file" in got.stderr
    got = watch("--once", os.getpid(), check=False)
    assert got.returncode == 1 and "is not recorded" in got.stderr
    got = watch("--once", tmp_path, check=False)
    assert got.returncode == 1 and "no recorded process is running" in got.stderr
