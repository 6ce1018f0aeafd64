"""`whyoom watch` on a terminal: what it shows, its keys, all sizes, and that the terminal is always
as it was before."""
import os
import re
import signal
import subprocess
import sys
import termios
import time

import pytest
from lib import WHYOOM, Programs
from terminal import DOWN, UP, Terminal

pytestmark = pytest.mark.skipif(
    os.environ["WHYOOM_NCURSES"] != "yes", reason="this build has no ncurses")
PIDS = {}  # of the running programs, by kind
LEAVE = b"\033[?1049l"  # what ends the second screen of xterm


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    programs = Programs(tmp_path_factory.mktemp("view") / "traces")
    programs.start("leak", "600", limit=8 << 30)
    programs.start("steady", "600", limit=1 << 30)
    time.sleep(6)
    PIDS.update(zip(("leak", "steady"), (p.pid for p in programs.all)))
    yield programs.folder
    programs.end()


@pytest.fixture
def view(request):
    opened = []

    def start(*arguments, **more):
        opened.append(Terminal(WHYOOM, "watch", *arguments, **more))
        return opened[-1]

    yield start
    for t in opened:
        t.close()


def select_leak(t):
    def selected():
        for key in "12":
            t.press(key)
            if f"pid {PIDS['leak']} runs" in t.text():
                return
        raise AssertionError(t.text())

    t.until(selected)


def sites(t):
    """The rows below the heading of the call sites."""
    lines = t.text().splitlines()
    at = next((i for i, line in enumerate(lines) if "call site (" in line), len(lines))
    return [line for line in lines[at + 1:-1] if line.strip()]


def test_shows_all(view, folder):
    t = view("--interval", "0.3", "--warm-up", "0", folder, columns=120, rows=40)
    t.wait_for("full in")
    select_leak(t)
    leak, steady = PIDS["leak"], PIDS["steady"]

    def all_is_shown():
        text = t.text()
        assert text.startswith(f"pid {leak}, host: full in ")
        for pid in (leak, steady):
            assert re.search(rf"[> ]\d +{pid} +\d+ % ", text)
        host = t.line("  host ")
        assert re.search(r"[█░]{16} +\d+ %  [\d.]+ .iB left of \d.* GiB \(", host), host
        assert "live: blocks " in text and "; what grows " in text
        row = next((r for r in sites(t) if "remember" in r), "")
        assert re.search(r"iB/s \+[\d.]+ .iB .*[▂-█]+  remember  <string>:8", row), row
        # Newer columns are higher: it only grows.
        spark = re.search(r"[▁-█]{2,}", row)
        assert spark and list(spark.group()) == sorted(spark.group()) and spark.group()[-1] == "█"
        assert t.line("last ")

    t.until(all_is_shown)


def test_early_signs_and_the_likely_cause(view, programs, tmp_path):
    (tmp_path / "memory.pressure").write_text(
        "some avg10=12.50 avg60=1.00 avg300=0.00 total=2500000\n"
        "full avg10=1.25 avg60=0.10 avg300=0.00 total=500000\n")
    (tmp_path / "memory.events").write_text("high 1712\n")
    programs.folder.mkdir()
    programs.start("leak", "300", limit=250 << 20)
    t = view("--interval", "0.3", "--warm-up", "0", "--verdict-every", "5", "--cgroup", tmp_path,
             programs.folder, columns=80, rows=24, NO_COLOR="1")
    t.wait_for("likely leak (", 90)
    for columns in (80, 60, 40):
        t.resize(columns, 24)

        def all_is_shown():
            words = " ".join(t.text().split())
            assert "waits for memory 12 % of the time, 1,712 times at memory.high" in words
            assert re.search(r"likely leak \(\d+ % sure\) in remember \(<string>:8\)", words), words
            assert sites(t)

        t.until(all_is_shown)
    assert not re.search(rb"\033\[[\d;]*(3[0-7]|4[0-7])m", t.raw)


def test_keys(view, folder):
    # Keys are served at once, though the next look is an hour away.
    t = view("--interval", "3600", "--warm-up", "0", folder, columns=120, rows=36)
    t.wait_for("call site (")
    select_leak(t)
    t.wait_for("by growth)")
    assert "remember" in sites(t)[0]
    t.press("s")
    t.wait_for("by live)")
    t.press("s")
    t.wait_for("by count)")
    counts = [int(re.search(r"iB|\d B", r) and re.sub(",", "", re.search(
        r"(?:iB| B) +([\d,]+)", r).group(1))) for r in sites(t)]
    assert counts == sorted(counts, reverse=True) and len(counts) > 5
    t.press("s")
    t.wait_for("by name)")
    t.press("s")
    t.wait_for("by growth)")
    t.press("\t")  # to the call sites
    t.press(DOWN + DOWN + UP)
    t.until(lambda: [r[0] for r in sites(t)[:3]] == [" ", ">", " "])
    t.press("k")
    t.until(lambda: sites(t)[0][0] == ">")
    t.press("\r")
    t.wait_for("Stack of remember <string>:8")
    stack = re.compile(r"^> remember  <string>:8\n  <module>  <string>:1\d$", re.M)
    t.until(lambda: stack.search(t.text()) is not None)
    t.press("\033")
    t.wait_for("call site (")
    t.press("h")
    t.wait_for("freeze what is shown")
    t.press("h")
    t.wait_for("call site (")
    t.press("p")
    t.wait_for(f"pid {PIDS['steady']} runs")
    t.press("p")
    t.wait_for(f"pid {PIDS['leak']} runs")
    t.press("q")
    assert t.wait() == 0 and t.restored()


def test_filter(view, folder):
    t = view("--interval", "60", folder, columns=120, rows=36)
    t.wait_for("call site (")
    select_leak(t)
    everything = len(sites(t))
    t.press("/REMEM")
    t.wait_for("show call sites with: REMEM_")
    t.until(lambda: ["remember" in r for r in sites(t)] == [True])
    t.press("q\177")  # q is a letter here
    t.wait_for("show call sites with: REMEM_")
    t.press("\r")
    t.wait_for('with "REMEM")')
    t.press("/zzzé")
    t.wait_for("no call site has this text")
    t.press("\033")
    t.wait_for("no call site has this text", gone=True)
    t.until(lambda: len(sites(t)) == everything)


def test_freeze(view, folder):
    t = view("--interval", "0.2", folder, columns=100, rows=24)
    t.wait_for("call site (")
    select_leak(t)
    t.press(" ")
    t.wait_for(" frozen ")
    before = t.text()
    t.read(1.5)
    assert t.text() == before
    t.press("s")  # keys go on
    t.wait_for("by live)")
    t.press(" ")
    t.wait_for(" frozen ", gone=True)
    t.until(lambda: sites(t)[:1] and sites(t)[0] not in before)


@pytest.mark.parametrize("size", [(40, 24), (40, 8), (41, 5), (60, 12), (200, 60), (20, 3), (1, 1)],
                         ids=str)
def test_sizes(view, folder, size):
    """Each size alone, and after a larger and a smaller one."""
    t = view("--interval", "0.3", "--warm-up", "0", folder, columns=100, rows=30)
    t.wait_for("call site (")
    for columns, rows in (size, (100, 30), size):
        t.resize(columns, rows)

        def all_is_shown():
            text = t.text()
            if columns >= 40:
                assert "q quit" in text and "live" in text and "grows" in text, text
                assert text.startswith(f"pid {PIDS['leak']}, host: "), text
            if columns >= 40 and rows >= 20:
                assert columns > 60 or re.search(r"host +[█░]{8} +\d+ %  [\d.]+ .iB left$",
                                                 t.line(" host  "))
                assert len(sites(t)) >= 4, text

        t.until(all_is_shown)
    t.press("q")
    assert t.wait() == 0 and t.restored()


def test_suspend(view, folder):
    t = view("--interval", "0.3", folder)
    t.wait_for("call site (")
    assert not t.restored()
    for _ in range(2):
        t.press("\032")
        t.until(lambda: t.state() == "T" and t.restored() and LEAVE in t.raw)
        t.screen.reset()  # as if the shell had written
        t.raw = b""
        os.kill(t.program(), signal.SIGCONT)
        t.wait_for("call site (")
        assert not t.restored()
    # SIGSTOP cannot be seen coming, but after it all is drawn again.
    os.kill(t.program(), signal.SIGSTOP)
    t.read(0.5)
    t.screen.reset()
    termios.tcsetattr(t.slave, termios.TCSANOW, t.before)
    os.kill(t.program(), signal.SIGCONT)
    t.wait_for("call site (")
    t.press("q")
    assert t.wait() == 0 and t.restored()


@pytest.mark.parametrize("how", ["\003", "\034", "TERM", "HUP", "SEGV", "ABRT", "BUS"])
def test_each_end_restores(view, folder, how):
    t = view("--interval", "0.3", folder)
    t.wait_for("call site (")
    expected = {"\003": 0, "\034": 128 + signal.SIGQUIT, "TERM": 0, "HUP": 0}
    if len(how) == 1:
        t.press(how)
        status = expected[how]
    else:
        number = getattr(signal, "SIG" + how)
        os.kill(t.program(), number)
        status = expected.get(how, 128 + number)
    assert t.wait() == status
    assert t.restored() and LEAVE in t.raw
    assert not t.screen.cursor.hidden


def test_an_error_restores(view, folder, tmp_path):
    """The file of metrics cannot be written any more."""
    (tmp_path / "node").mkdir()
    t = view("--interval", "0.2", "--textfile", tmp_path / "node" / "x.prom", folder)
    t.wait_for("call site (")
    subprocess.run(["rm", "-r", tmp_path / "node"], check=True)
    assert t.wait() == 1 and t.restored()
    assert b"x.prom" in t.raw[t.raw.rindex(LEAVE):]  # the error stands on the usual screen


def colours(t):
    return {c.fg for line in t.screen.buffer.values() for c in line.values()} - {"default"}


def test_no_color(view, folder):
    t = view("--interval", "60", folder)
    t.wait_for("call site (")
    assert colours(t)
    t = view("--interval", "60", folder, NO_COLOR="1")
    t.wait_for("call site (")
    assert not colours(t) and not re.search(rb"\033\[[\d;]*\b(3[0-7]|38;5)\b", t.raw)


def test_without_unicode(view, folder):
    t = view("--interval", "0.3", folder, LANG="POSIX")
    t.wait_for("call site (")
    t.until(lambda: re.search(r"host +[#.]{16} +\d+ %", t.text()) is not None)
    assert t.raw.isascii()


@pytest.mark.parametrize("term", [None, "", "dumb", "no-such-terminal"])
def test_no_view(view, folder, term):
    """Text, as without a terminal."""
    t = view("--interval", "0.3", folder, columns=100, rows=40, TERM=term)
    t.wait_for(f"pid {PIDS['leak']} ")
    t.read(0.5)
    assert t.restored() and b"\033" not in t.raw and "q quit" not in t.text()
    os.kill(t.program(), signal.SIGTERM)
    assert t.wait() == 0


def test_no_keyboard(folder):
    """stdout is a terminal, stdin is not: text."""
    t = Terminal("/bin/sh", "-c", 'exec "$0" watch --interval 0.3 "$1" </dev/null', WHYOOM, folder)
    try:
        t.wait_for(f"pid {PIDS['leak']} ")
        assert b"\033" not in t.raw
    finally:
        t.close()


HOSTILE = r"""
import time
def f():
    return bytes(3000000)
f.__code__ = f.__code__.replace(co_name="\x1b]0;owned\x07\x9b2Jbad\n", co_qualname="\x1b]0;owned\x07\x9b2Jbad\n") \
    if hasattr(f.__code__, "co_qualname") else f.__code__.replace(co_name="\x1b]0;owned\x07bad")
kept = [f() for _ in range(4)]
time.sleep(60)
"""


def test_hostile_names(view, tmp_path):
    (tmp_path / "traces").mkdir()
    env = {**os.environ, "WHYOOM_DIR": str(tmp_path / "traces"), "WHYOOM_QUIET": "1",
           "LD_PRELOAD": os.environ["WHYOOM_SHIM"]}
    with subprocess.Popen([os.path.realpath(sys.executable), "-c", HOSTILE, "\033]0;owned\007"],
                          env=env) as program:
        try:
            t = view("--interval", "0.3", tmp_path / "traces", columns=160, rows=30)
            t.wait_for("\\x1b]0;owned\\x07")
            t.wait_for("owned")
            t.press("\r")
            t.wait_for("Stack of \\x1b]0;owned\\x07")
            t.read(0.5)
            assert b"\033]" not in t.raw and b"\007" not in t.raw and b"\x9b" not in t.raw
            assert t.screen.title == ""
        finally:
            program.kill()


def seconds_of_cpu(pid):
    with open(f"/proc/{pid}/stat", encoding="ascii") as f:
        fields = f.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def test_ended_process_stays(view, tmp_path):
    """The last state of a process that was watched alone can be read, and waiting costs nothing."""
    programs = Programs(tmp_path / "traces")
    try:
        ends = programs.start("leak", "600")
        t = view("--interval", "0.2", ends.pid)
        t.wait_for("call site (")
        ends.kill()
        ends.wait()
        t.wait_for("has ended")

        def costs_nothing():
            before = seconds_of_cpu(t.program())
            t.read(2)
            assert seconds_of_cpu(t.program()) - before <= 0.05

        t.until(costs_nothing)
        t.press("s")
        t.wait_for("by live)")
        t.press("q")
        assert t.wait() == 0 and t.restored()
    finally:
        programs.end()


def test_waits_for_processes(view, tmp_path):
    programs = Programs(tmp_path / "traces")
    (tmp_path / "traces").mkdir()
    try:
        t = view("--interval", "0.2", programs.folder)
        t.wait_for("waiting for a recorded process")
        t.press("sp\t\r/x\r12")  # nothing to select
        t.press("\033")
        first = programs.start("leak", "60")
        t.wait_for(f"pid {first.pid} runs")
        first.kill()
        first.wait()
        t.wait_for("waiting for a recorded process")
        t.press("q")
        assert t.wait() == 0
    finally:
        programs.end()


def lives(pid):
    try:
        with open(f"/proc/{pid}/stat", encoding="ascii") as f:
            return f.read().rsplit(")", 1)[1].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def test_the_terminal_vanishes(folder):
    t = Terminal(WHYOOM, "watch", "--interval", "60", folder)
    t.wait_for("call site (")
    program = t.program()
    os.close(t.master)
    t.master = os.open("/dev/null", os.O_RDONLY)
    end = time.monotonic() + 60
    while lives(program):
        assert time.monotonic() < end
        time.sleep(0.05)
    t.close()
