#!/usr/bin/env python3
"""mutations.py SOURCE: the text that each change of tests/cuda/mutate.py replaces is in the shim,
once, and the case that is to fail exists. The changes themselves are built and run by
`tests/run mutations` only."""
import os
import sys

sys.dont_write_bytecode = True
SOURCE = sys.argv[1]
sys.path.insert(0, os.path.join(SOURCE, "tests", "cuda"))
import mutate  # noqa: E402


def main():
    problems = mutate.stale(SOURCE)
    passed = len(mutate.CHANGES) - len(problems)
    print("\n".join(problems + [f"{passed} passed, {len(problems)} failed"]))
    return bool(problems)


sys.exit(main())
