"""With the real library: what a program allocates after the attach is in the trace, by its own
account, and what it does after the detach is not."""
import os

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
