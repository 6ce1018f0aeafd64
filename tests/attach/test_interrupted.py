"""What goes wrong in the middle leaves the program running."""
import glob
import os
import re
import signal
import subprocess
import time

import pytest
from lib import PYTHON, PYTHON_LOAD, attach, finish, left_clean, status, until


def tracer_of(pid):
    """Of any of its threads: the process that traces it."""
    for path in glob.glob(f"/proc/{pid}/task/*/status"):
        try:
            with open(path) as f:
                found = re.search(r"TracerPid:\t(\d+)", f.read())
        except OSError:
            continue
        if found and found[1] != "0":
            return int(found[1])
    return 0


def begin(whyoom, pid, folder):
    command = subprocess.Popen([whyoom, "attach", "-o", "trace", str(pid)], cwd=folder,
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert until(lambda: os.path.exists(os.path.join(folder, "trace", "began")))
    return command


@pytest.mark.parametrize("program", [["load", 1], ["load", 8], ["cxx"],
                                     [PYTHON, "-c", PYTHON_LOAD]])
def test_the_tracer_is_killed_in_a_call(program, programs, stand_in, folder):
    p = programs.start(*program, env={"ATTACH_TEST": "slow"})
    command = begin(stand_in, p.pid, folder)
    tracer = tracer_of(p.pid)
    assert tracer and tracer != command.pid
    os.kill(tracer, signal.SIGKILL)
    assert "was killed" in command.communicate(timeout=60)[1] and command.returncode == 1
    # The thread finishes the call by itself, and goes on.
    assert until(lambda: os.path.exists(os.path.join(folder, "trace", "attached")))
    assert tracer_of(p.pid) == 0
    assert os.getpriority(os.PRIO_PROCESS, p.pid) == os.getpriority(os.PRIO_PROCESS, 0)
    time.sleep(0.5)
    attach(stand_in, p.pid, command="detach")
    assert finish(p).startswith("right after ")


def test_alone_and_the_tracer_is_killed(programs, stand_in, folder):
    """Not in a wait, but where it was to enter malloc."""
    p = programs.start("alone", env={"ATTACH_TEST": "slow"})
    begin(stand_in, p.pid, folder).kill()
    os.kill(tracer_of(p.pid), signal.SIGKILL)
    assert until(lambda: os.path.exists(os.path.join(folder, "trace", "attached")))
    time.sleep(0.5)
    open(os.path.join(folder, "stop"), "w").close()
    assert p.stdout.read().startswith("right after ") and p.wait(20) == 0


def test_the_tracer_is_killed_while_it_waits(programs, stand_in, folder):
    """A thread that is to stop at malloc's entry must not die there."""
    p = programs.start("alone", 4)
    command = subprocess.Popen([stand_in, "attach", "-o", "trace", str(p.pid)], cwd=folder,
                               stderr=subprocess.PIPE, text=True)
    assert until(lambda: tracer_of(p.pid))
    time.sleep(0.3)
    os.kill(until(lambda: tracer_of(p.pid)), signal.SIGKILL)
    assert "was killed" in command.communicate(timeout=60)[1]
    time.sleep(5)
    assert p.poll() is None
    open(os.path.join(folder, "stop"), "w").close()
    assert p.stdout.read().startswith("right after ") and p.wait(20) == 0


@pytest.mark.parametrize("kind, ends", [("sleep", "0 0"), ("poll", "0 0")])
def test_asleep_and_the_tracer_is_killed(kind, ends, programs, stand_in, folder):
    p = programs.start("waits", kind, 6, env={"ATTACH_TEST": "slow"})
    begin(stand_in, p.pid, folder).kill()
    os.kill(tracer_of(p.pid), signal.SIGKILL)
    out = p.stdout.read()
    # What was called slept, too, so that the kernel has forgotten how long the wait was to last.
    assert out.startswith(ends) or out.startswith("-1 4 "), out
    assert p.wait(20) == 0


def test_the_command_is_killed(programs, stand_in, folder):
    """What traces goes on without it."""
    p = programs.start("load", 8, env={"ATTACH_TEST": "slow"})
    command = begin(stand_in, p.pid, folder)
    command.kill()
    assert until(lambda: os.path.exists(os.path.join(folder, "trace", "attached")))
    assert until(lambda: tracer_of(p.pid) == 0)
    left_clean(p.pid)
    assert finish(p).startswith("right after ")


def test_interrupts_wait(programs, stand_in, folder):
    p = programs.start("load", 8, env={"ATTACH_TEST": "slow"})
    command = begin(stand_in, p.pid, folder)
    command.send_signal(signal.SIGINT)
    command.wait(60)
    assert os.path.exists(os.path.join(folder, "trace", "attached"))
    left_clean(p.pid)
    assert finish(p).startswith("right after ")


def test_a_call_that_does_not_come_back(programs, stand_in, folder):
    p = programs.start("load", 8, env={"ATTACH_TEST": "endless"})
    said = attach(stand_in, p.pid, "-o", "trace", cwd=folder, status=1)
    assert "did not come back within 10 s" in said and "goes on as before" in said
    assert status(p.pid)["TracerPid"] == "0"
    assert until(lambda: os.path.exists(os.path.join(folder, "trace", "attached")))
    time.sleep(0.5)
    attach(stand_in, p.pid, command="detach")
    assert finish(p).startswith("right after ")


def test_a_call_that_crashes(programs, stand_in, folder):
    p = programs.start("load", 8, env={"ATTACH_TEST": "crash"})
    assert "crashed" in attach(stand_in, p.pid, cwd=folder, status=1)
    left_clean(p.pid)
    assert finish(p).startswith("right after ")


def test_stopped_and_continued_in_the_meantime(programs, stand_in, folder):
    p = programs.start("load", 8, env={"ATTACH_TEST": "slow"})
    command = begin(stand_in, p.pid, folder)
    p.send_signal(signal.SIGSTOP)
    time.sleep(0.2)
    p.send_signal(signal.SIGCONT)
    command.communicate(timeout=60)
    p.send_signal(signal.SIGCONT)
    assert os.path.exists(os.path.join(folder, "trace", "attached"))
    assert finish(p).startswith("right after ")


def test_ended_in_the_meantime(programs, stand_in, folder):
    p = programs.start("load", 8, env={"ATTACH_TEST": "slow"})
    command = begin(stand_in, p.pid, folder)
    p.kill()
    assert "ended during the call" in command.communicate(timeout=60)[1]
    assert command.returncode == 1
