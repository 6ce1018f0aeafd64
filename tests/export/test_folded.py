"""`whyoom export --format folded`, read as flamegraph.pl and speedscope read it."""

import os
import re

import pytest
from lib import MEASURES, MOMENTS, export, golden, sites, spaces

LINE = re.compile(r"^(.*) (\d+)$")  # speedscope's


def read(text):
    stacks = []
    for line in text.decode().split("\n")[:-1]:
        stack, value = LINE.match(line).groups()
        stacks.append((stack.split(";"), int(value)))
    return stacks


@pytest.mark.parametrize("trace", golden(), ids=os.path.basename)
def test_sums(trace):
    compared = 0
    for space in spaces(trace):
        for at in MOMENTS:
            expected = sites(trace, space, at)
            if not expected:
                continue
            stacks = {measure: read(export(trace, "folded", "--space", space, "--at", at,
                                           "--measure", measure)) for measure in MEASURES}
            # `whyoom sites` lists no call site that only had blocks of no bytes.
            some = {tuple(frames) for frames, _ in stacks["total"]}
            for measure in MEASURES:
                assert all(value > 0 and all(frames) for frames, value in stacks[measure])
                total = sum(value for frames, value in stacks[measure] if tuple(frames) in some)
                assert total == expected[measure], (space, at, measure)
                compared += 1
    assert compared
