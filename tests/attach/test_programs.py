"""Programs under load are attached to and detached from, and are none the worse for it: blocks,
registers, signals and mappings are as before."""
import json
import os
import re
import resource
import signal
import subprocess
import time

import jsonschema
import pytest
from lib import BUILD, PYTHON, PYTHON_LOAD, attach, finish, left_clean, pause_ms, status, until

LOADS = {"1 thread": ["load", 1], "8 threads": ["load", 8], "C++": ["cxx"],
         "Python 3.11": [PYTHON, "-c", PYTHON_LOAD]}


@pytest.mark.parametrize("name", LOADS)
def test_under_load(name, programs, stand_in, folder):
    p = programs.start(*LOADS[name])
    before = status(p.pid)
    out = os.path.join(folder, "trace")
    pauses = []
    for _ in range(4):
        said = attach(stand_in, p.pid, "-o", out)
        pauses.append(pause_ms(said))
        assert f"trace      {out}" in said and f"whyoom detach {p.pid}" in said
        assert f"whyoom watch {p.pid}" in said and f"whyoom report {out}" in said
        assert os.path.exists(os.path.join(out, "attached"))
        left_clean(p.pid)
        pauses.append(pause_ms(attach(stand_in, p.pid, command="detach")))
        assert os.path.exists(os.path.join(out, "detached"))
        left_clean(p.pid)
        os.unlink(os.path.join(out, "attached"))
        os.unlink(os.path.join(out, "detached"))
    after = status(p.pid)
    for field in ("SigBlk", "SigIgn", "SigCgt", "Threads"):
        if field != "Threads" or name != "C++":  # whose threads come and go
            assert before[field] == after[field]
    assert re.match(r"right after [1-9]\d* rounds$", finish(p))
    print("shown: {}: paused for {:.1f} ms at the median, {:.1f} at most".format(
        name, sorted(pauses)[4], max(pauses)))


def test_where_nothing_sleeps(programs, stand_in, folder):
    p = programs.start("alone")
    for _ in range(5):
        said = attach(stand_in, p.pid, "-o", "trace", cwd=folder)
        assert f"thread {p.pid} for" in said and "where it was to enter malloc" in said
        left_clean(p.pid)
        attach(stand_in, p.pid, command="detach")
    open(os.path.join(folder, "stop"), "w").close()
    assert re.match(r"right after [1-9]\d* rounds$", p.stdout.read())
    assert p.wait(60) == 0


def test_settings(programs, stand_in, folder):
    p = programs.start("load", 1)
    attach(stand_in, p.pid, "--mode", "sampled", "--sample-every=64KiB", "--no-python", cwd=folder,
           status=2)
    attach(stand_in, p.pid, "--mode", "sampled", "--sample-every=64KiB", "--no-stacks",
           cwd=folder, env=dict(os.environ, WHYOOM_EXACT_FROM="1000000", WHYOOM_OFF="1"))
    trace = os.path.join(folder, f"whyoom.{p.pid}")  # named after the process, not the command
    with open(os.path.join(trace, "attached")) as f:
        settings = f.read().rstrip("\0").split("\0")
    assert sorted(settings) == sorted([
        f"WHYOOM_DIR={trace}", "WHYOOM_MODE=sampled", "WHYOOM_SAMPLE_EVERY=65536",
        "WHYOOM_STACKS=0", "WHYOOM_EXACT_FROM=1000000"])
    finish(p)


def test_for_a_time(programs, stand_in, folder):
    p = programs.start("load", 1)
    began = time.monotonic()
    said = attach(stand_in, p.pid, "--for", "1.5s", "-o", "trace", cwd=folder)
    assert time.monotonic() - began > 1.5
    assert "ends       after 1.50 s, or with Ctrl-C" in said and "recorded no more" in said
    assert os.path.exists(os.path.join(folder, "trace", "detached"))
    left_clean(p.pid)
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        os.unlink(os.path.join(folder, "trace", "detached"))
        with subprocess.Popen([stand_in, "attach", "--for", "10m", "-o", "trace", str(p.pid)],
                              cwd=folder, stdout=subprocess.PIPE, text=True) as watched:
            while "ends" not in watched.stdout.readline():
                pass
            watched.send_signal(number)
            assert "recorded no more" in watched.stdout.read()
            assert watched.wait(30) == 0
        assert os.path.exists(os.path.join(folder, "trace", "detached"))
        left_clean(p.pid)
    # A process that ends first ends the command, too.
    with subprocess.Popen([stand_in, "attach", "--for=2h", "-o", "trace", str(p.pid)],
                          cwd=folder, stdout=subprocess.PIPE, text=True) as watched:
        while "ends" not in watched.stdout.readline():
            pass
        finish(p)
        assert watched.wait(30) == 0


def results(said):
    """Of --format json: a line each."""
    schema = json.loads((BUILD / "analyzer/report/attach-schema.json").read_text())
    lines = [json.loads(line) for line in said.splitlines()]
    for line in lines:
        jsonschema.Draft202012Validator(schema).validate(line)
    return lines


@pytest.mark.parametrize("threads", [1, 8])
def test_as_json(threads, programs, stand_in, folder):
    p = programs.start("load", threads) if threads > 1 else programs.start("alone")
    out = os.path.join(folder, "trace")
    begun, = results(attach(stand_in, p.pid, "-o", out, "--format", "json"))
    ended, = results(attach(stand_in, p.pid, "--format=json", command="detach"))
    assert (begun["state"], ended["state"]) == ("recording", "ended")
    assert (begun["mode"], begun["trace"], begun["trace_here"]) == ("full", out, out)
    assert (ended["mode"], ended["trace"], ended["trace_here"]) == (None, None, None)
    for r in (begun, ended):
        assert (r["pid"], r["for_ns"]) == (p.pid, None) and r["name"].startswith("attach-")
        # A program of one thread is left with one.
        assert r["own_thread"] == (threads > 1) and r["paused_ns"] > 0
        assert os.path.exists(f"/proc/{p.pid}/task/{r['thread']}") and r["thread"]
    begun, ended = results(attach(stand_in, p.pid, "-o", out, "--format", "json", "--for", "0.2"))
    assert (begun["for_ns"], ended["state"]) == (200000000, "ended")
    assert "text or json" in attach(stand_in, p.pid, "--format", "xml", status=2)
    attach(stand_in, p.pid, "--format", "xml", command="detach", status=2)


def test_the_own_thread_is_gone(programs, stand_in, folder):
    """As many threads as before, and what it had is unmapped or used again."""
    p = programs.start("load", 4)
    before = int(status(p.pid)["Threads"])
    for _ in range(20):
        attach(stand_in, p.pid, "-o", "trace", cwd=folder)
        attach(stand_in, p.pid, command="detach")
        assert int(status(p.pid)["Threads"]) == before
        left_clean(p.pid)
    size = int(status(p.pid)["VmSize"].split()[0])
    for _ in range(10):
        attach(stand_in, p.pid, "-o", "trace", cwd=folder)
        attach(stand_in, p.pid, command="detach")
    # A thread's stack takes 8 MiB, and an arena of malloc reserves 64 MiB.
    assert int(status(p.pid)["VmSize"].split()[0]) < size + 200 * 1024
    finish(p)


@pytest.mark.parametrize("limit", ["nproc", "as", "data"])
def test_a_limit_that_a_thread_would_use_up(limit, programs, stand_in, folder):
    """Then the thread at the safe point does all of it."""
    if limit == "nproc" and os.getuid():
        pytest.skip("a limit of threads is another user's")
    options = {}
    if limit == "nproc":  # those of a user that has no others
        options = {"user": 54321, "preexec_fn": lambda: resource.setrlimit(
            resource.RLIMIT_NPROC, (5, 5))}
        os.chown(folder, 54321, 54321)
    p = programs.start("load", 4, **options)
    assert status(p.pid)["Threads"] == "5" or limit != "nproc"
    if limit != "nproc":
        subprocess.run(["prlimit", f"--{limit}={1 << 40}", "--pid", str(p.pid)], check=True)
    said = attach(stand_in, p.pid, "-o", os.path.join(folder, "trace"), "--format", "json")
    assert not results(said)[0]["own_thread"]
    left_clean(p.pid)
    attach(stand_in, p.pid, command="detach")
    finish(p)


def test_no_directory_is_left_after_a_failure(programs, stand_in, folder):
    p = programs.start("load", 1, env={"ATTACH_TEST": "busy"})
    said = attach(stand_in, p.pid, status=1, cwd=folder)
    assert "another tool in front of malloc" in said and "whyoom run" in said
    assert not os.path.exists(os.path.join(folder, f"whyoom.{p.pid}"))
    left_clean(p.pid)
    finish(p)


def test_twice(programs, stand_in, folder):
    p = programs.start("load", 1)
    attach(stand_in, p.pid, cwd=folder)
    assert "recorded already" in attach(stand_in, p.pid, cwd=folder, status=1)
    attach(stand_in, p.pid, command="detach")
    assert "not recorded any more" in attach(stand_in, p.pid, command="detach", status=1)
    assert until(lambda: status(p.pid)["TracerPid"] == "0")
    finish(p)
