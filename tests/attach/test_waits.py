"""A wait goes on as if nothing had been: it is not cut short, and does not fail."""
import os
import re
import signal
import subprocess
import time

import pytest
from lib import attach, left_clean, status, until

# kind: what the wait returns in the end, and errno
ENDS = {"sleep": (0, 0), "epoll": (0, 0), "poll": (0, 0), "select": (0, 0), "condition": (110, 0),
        "signal": (-1, 11), "receive": (-1, 11)}


def asleep(p):
    until(lambda: status(p.pid)["State"][0] == "S")


def beginning(whyoom, pid, folder):
    return subprocess.Popen([whyoom, "attach", "-o", "trace", str(pid)], cwd=folder,
                            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


@pytest.mark.parametrize("kind", ENDS)
def test_timed(kind, programs, stand_in, folder):
    p = programs.start("waits", kind, 3)
    asleep(p)
    said = attach(stand_in, p.pid, "-o", "trace", cwd=folder)
    assert "which was asleep" in said
    assert os.path.exists(os.path.join(folder, "trace", "attached"))
    asleep(p)
    left_clean(p.pid)
    result, error, took = p.stdout.read().split()
    assert (int(result), int(error)) == ENDS[kind]
    # The kernel keeps the end of the first ones; those that it would end begin again.
    assert 2.99 < float(took) < (7 if kind in ("sleep", "poll", "select", "condition") else 30)
    assert p.wait(20) == 0


@pytest.mark.parametrize("command", [["attach"], ["attach", "detach", "attach"]])
def test_what_is_waited_for_comes(command, programs, stand_in, folder):
    p = programs.start("waits", "read", 1)
    asleep(p)
    for c in command:
        attach(stand_in, p.pid, *(["-o", "trace"] if c == "attach" else []), command=c, cwd=folder)
        asleep(p)
        left_clean(p.pid)
    p.stdin.write("x")
    p.stdin.flush()
    assert re.match(r"1 0 ", p.stdout.read())
    assert p.wait(20) == 0


def test_a_signal_in_the_meantime(programs, stand_in, folder):
    """It is kept until the call is over, and then does what it would have done."""
    p = programs.start("waits", "sleep", 30, env={"ATTACH_TEST": "slow"})
    asleep(p)
    with beginning(stand_in, p.pid, folder) as command:
        until(lambda: os.path.exists(os.path.join(folder, "trace", "began")))
        p.send_signal(signal.SIGTERM)
        time.sleep(0.3)
        assert p.poll() is None
        command.wait(60)
    assert p.wait(20) == -signal.SIGTERM
    assert os.path.exists(os.path.join(folder, "trace", "attached"))
