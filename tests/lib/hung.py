"""hung.py - shows where the processes of a hung program wait, and ends them.

A program's processes are those of its session, and those that took its environment into another
one. Must not wait for any of them without a limit. Returns words only: the caller draws the
conclusions."""

import os
import shutil
import signal
import subprocess
import time

STACKS = (("gdb", ["-p", "%d", "-nx", "-batch", "-ex", "thread apply all bt 24"]),
          ("eu-stack", ["-p", "%d", "-n", "24"]))
STACK_SECONDS = 20  # for each process: symbols are read anew
SHOWN = 4  # processes whose stacks are shown
NOISE = ("[New LWP", "[Thread debugging", "Using host lib", "[Inferior", "warning:",
         "Download failed", "TID ", "PID ")


def read(*path):
    try:
        with open(os.path.join("/proc", *map(str, path)), "rb") as f:
            return f.read()
    except OSError:
        return b""


def state(pid):
    """The state letter, the parent and the session; None once the process has ended."""
    fields = read(pid, "stat").rpartition(b") ")[2].split()
    return (fields[0].decode(), int(fields[1]), int(fields[3])) if fields else None


def processes(leader, token):
    """Running processes of the leader's session, or with token, NAME=VALUE, in the environment."""
    found = []
    for pid in map(int, filter(str.isdigit, os.listdir("/proc"))):
        now = state(pid)
        if now and pid != os.getpid() and now[0] not in "ZX" and (
                now[2] == leader or token.encode() in read(pid, "environ").split(b"\0")):
            found.append(pid)
    return sorted(found)


def threads(pid):
    """A line for each thread: its wait in the kernel."""
    out = []
    for tid in sorted(os.listdir("/proc/%d/task" % pid) if os.path.isdir("/proc/%d/task" % pid)
                      else [], key=int):
        now = read(pid, "task", tid, "stat").rpartition(b") ")[2].split()
        call = read(pid, "task", tid, "syscall").decode().split()
        out.append("    thread %s %s: state %s, in %s, system call %s" % (
            tid, read(pid, "task", tid, "comm").decode(errors="replace").strip(), now[0].decode()
            if now else "gone",
            read(pid, "task", tid, "wchan").decode() or "?", " ".join(call[:4]) or "?"))
    return out


def stacks(pid):
    """The threads' stacks, by the first installed tool that can; nothing without one."""
    for tool, args in STACKS:
        if not shutil.which(tool):
            continue
        try:
            done = subprocess.run([tool] + [a % pid if "%d" in a else a for a in args],
                                  stdin=subprocess.DEVNULL,
                                  stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                                  timeout=STACK_SECONDS,
                                  env={"PATH": os.environ.get("PATH", "")})
        except (subprocess.TimeoutExpired, OSError):
            continue
        lines = [x for x in done.stdout.decode(errors="replace").splitlines() if x.strip()
                 and not x.startswith(NOISE)]
        if any(x.startswith("#") for x in lines):
            return ["    " + x for x in lines[:200]]
    return []


def told(leader, token):
    """Lines about the running processes."""
    out = []
    for n, pid in enumerate(processes(leader, token)):
        line = read(pid, "cmdline").replace(b"\0", b" ").decode(errors="replace").strip()
        now = state(pid) or ("gone", 0, 0)
        out.append("  pid %d, child of %d: %s (%s)" % (
            pid, now[1], line[:200], read(pid, "comm").decode(errors="replace").strip()))
        out += threads(pid)
        if n < SHOWN:
            out += stacks(pid)
    return out or ["  no process of it is left"]


def end(leader, token):
    """Kill them all; the leader must be the caller's unreaped child."""
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline:
        try:
            os.killpg(leader, signal.SIGKILL)
        except (ProcessLookupError, PermissionError):
            pass
        left = processes(leader, token)
        if not left:
            return
        for pid in left:
            try:
                os.kill(pid, signal.SIGKILL)
            except (ProcessLookupError, PermissionError):
                pass
        time.sleep(0.02)
