"""Shared by the tests of `whyoom attach`: programs that run, and what the kernel says of them."""
import os
import pathlib
import re
import signal
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from waiting import until  # noqa: E402, F401

WHYOOM = os.environ["WHYOOM_EXE"]
SHIM = os.environ["WHYOOM_SHIM"]
RECORDER = os.environ["ATTACH_RECORDER"]
PROGS = os.environ["ATTACH_PROGS"]
BUILD = pathlib.Path(WHYOOM).parent.parent.parent
PYTHON = "/usr/bin/python3"  # Debian's, which is not position-independent
# Allocates on the main thread and another, and checks what it keeps.
PYTHON_LOAD = """
import os, sys, threading
stop = False
rounds = [0, 0]
def work(which):
    kept = {}
    while not stop:
        n = rounds[which]
        kept[n % 500] = bytes([n % 256]) * (500 + n % 5000)
        old = kept.get((n * 7) % 500)
        if old and old[0] != old[-1]:
            os._exit(3)
        rounds[which] = n + 1
def listen():
    global stop
    sys.stdin.read()
    stop = True
for target in (lambda: work(0), listen):
    threading.Thread(target=target).start()
print("ready", flush=True)
work(1)
while threading.active_count() > 1:
    pass
print("right after", sum(rounds), "rounds")
"""


def status(pid):
    with open(f"/proc/{pid}/status") as f:
        return dict(line.rstrip("\n").split(":\t", 1) for line in f if ":\t" in line)


class Programs:
    def __init__(self, folder):
        self.folder = folder
        self.all = []

    def start(self, *command, env=None, **options):
        command = [str(c) for c in command]
        if "/" not in command[0]:
            command[0] = os.path.join(PROGS, "attach-" + command[0])
        p = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                             cwd=self.folder, env=dict(os.environ, **(env or {})), **options)
        self.all.append(p)
        assert p.stdout.readline() == "ready\n"
        return p

    def end(self):
        for p in self.all:
            if p.poll() is None:
                p.send_signal(signal.SIGCONT)
                p.kill()
            p.wait()
            p.stdin.close()
            p.stdout.close()


def attach(whyoom, pid, *options, command="attach", status=0, cwd=None, timeout=60, **more):
    """Returns what it printed: its output, or, where it should fail, its message."""
    done = subprocess.run([whyoom, command, *map(str, options), str(pid)], capture_output=True,
                          text=True, timeout=timeout, cwd=cwd, **more)
    assert done.returncode == status, done.stdout + done.stderr
    return done.stderr if status else done.stdout


def pause_ms(output):
    """Of the line that says how long a thread was paused."""
    m = re.search(r"paused +(?:thread \d+ )?for ([\d.]+) (us|ms|s)\b", output) or \
        re.search(r"was paused for ([\d.]+) (us|ms|s)\b", output) or \
        re.search(r"thread \d+ for ([\d.]+) (us|ms|s)\b", output)
    return float(m[1]) * {"us": 0.001, "ms": 1, "s": 1000}[m[2]]


def left_clean(pid):
    """Nothing of the tracing is left: no tracer, no memory that is writable and executable, no
    thread with another nice value than ours."""
    now = status(pid)
    assert now["TracerPid"] == "0" and now["State"][0] in "RSD", now
    with open(f"/proc/{pid}/maps") as f:
        assert " rwxp " not in f.read()
    ours = os.getpriority(os.PRIO_PROCESS, 0)
    for thread in os.listdir(f"/proc/{pid}/task"):
        try:
            assert os.getpriority(os.PRIO_PROCESS, int(thread)) == ours
        except ProcessLookupError:
            pass  # it has ended


def finish(p):
    """Ends a program by the end of its input; returns its last line."""
    p.stdin.close()
    out = p.stdout.read()
    assert p.wait(60) == 0, out
    return out
