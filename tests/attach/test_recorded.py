"""With the real library: what a program allocates after the attach is in the trace, by its own
account, and what it does after the detach is not."""
import json
import os
import subprocess

import pytest
from all import PYTHON_GROW, Program, recorded
from lib import PROGS, PYTHON, WHYOOM, attach, left_clean

PROGRAMS = {"C": [os.path.join(PROGS, "attach-grow"), "4"],
            "C++": [os.path.join(PROGS, "attach-growcxx"), "2"],
            "Python 3.11": [PYTHON, "-c", PYTHON_GROW]}


@pytest.mark.parametrize("name", PROGRAMS)
def test_growth_is_in_the_trace(name, folder):
    program = Program(PROGRAMS[name], folder)
    try:
        program.grow()  # before
        for i in range(2):
            trace = os.path.join(folder, f"trace{i}")
            attach(WHYOOM, program.pid, "--mode", "sampled", "--exact-from", "16KiB",
                   "--sample-every", "1TiB", "-o", trace)
            grown = program.grow()
            attach(WHYOOM, program.pid, command="detach")
            left_clean(program.pid)
            program.grow()  # afterwards
            assert 0.95 < recorded(trace, 20000) / grown < 1.05
        assert program.ends_well()
    finally:
        program.end()


CHILDREN = """
import os, subprocess, sys
print("ready", flush=True)
for line in sys.stdin:
    child = os.fork()
    if not child:
        kept = [bytearray(20000 + i) for i in range(1000)]
        os._exit(0)
    os.waitpid(child, 0)
    other = subprocess.Popen([sys.executable, "-c", "kept = [bytearray(20000) for i in range(99)]"])
    print("ran", child, other.pid, other.wait(), flush=True)
print("right after", flush=True)
"""


def test_children(folder):
    """What is forked is recorded, too, in a trace of its own; another program is not, and runs as
    ever. After the detach neither is."""
    program = Program([PYTHON, "-c", CHILDREN], folder)

    def children():
        program.p.stdin.write("\n")
        program.p.stdin.flush()
        said = program.p.stdout.readline().split()
        assert said[0] == "ran" and said[3] == "0", said
        return int(said[1]), int(said[2])

    def recorded_pids():
        said = subprocess.run([WHYOOM, "check", "--format", "json", trace], capture_output=True,
                              text=True, check=True).stdout
        return {p["pid"]: p for p in json.loads(said)["processes"]}

    try:
        trace = os.path.join(folder, "trace")
        assert "children   what it forks, too" in attach(WHYOOM, program.pid, "-o", trace)
        forked, other = children()
        found = recorded_pids()
        assert set(found) == {program.pid, forked}, (found, other)
        assert found[forked]["events"] > 1000
        attach(WHYOOM, program.pid, command="detach")
        left_clean(program.pid)
        children()
        assert set(recorded_pids()) == {program.pid, forked}
        assert program.ends_well()
    finally:
        program.end()
