#!/usr/bin/env python3
"""cpython.py LIBRARY PYTHON... - CPython's own tests with a walk at every allocation, and without:
the same must fail, and no walk may differ from one without its cache."""

import os
import re
import subprocess
import sys
import tempfile

TESTS = ["test_generators", "test_coroutines", "test_gc", "test_sys_settrace",
         "test_sys_setprofile",
         "test_exceptions", "test_code", "test_fork1", "test_threading"]


def run(python, env):
    out = subprocess.run(python + ["-m", "test"] + TESTS, env=env, stdout=subprocess.PIPE,
                         stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, timeout=800)
    text = out.stdout.decode(errors="replace")
    bad = set(re.findall(r"^(?:FAIL|ERROR): (\S+ \(\S+\))", text, re.M))
    ran = re.search(r"Total tests: run=([\d,]+)", text)
    return out.returncode, bad, ran.group(1) if ran else "?", text


def main():
    library, python = sys.argv[1], sys.argv[2:]
    if subprocess.run(python + ["-c", "import test.libregrtest, test.test_generators"],
                      stderr=subprocess.DEVNULL).returncode:
        print("its own tests are not installed")
        return 77
    plain, bad_plain, _, _ = run(python, dict(os.environ))
    with tempfile.TemporaryDirectory(prefix="whyoom-cpython.") as work:
        report = os.path.join(work, "report")
        code, bad, ran, text = run(python, dict(os.environ, LD_PRELOAD=library,
                                                PYTHON_CAPTURE="every",
                                                PYTHON_CAPTURE_REPORT=report))
        with open(report) as f:
            processes = [line.split(None, 4) for line in f]
    problems = ["only with the library: " + x for x in sorted(bad - bad_plain)]
    if code != plain and not problems:
        problems.append("exit status %d, %d without" % (code, plain))
        print(text[-2000:])
    problems += ["a walk was wrong: " + p[4] for p in processes if p[3] != "0"]
    for problem in problems:
        print("FAIL", problem)
    print("%s tests, %d failing with and without; %d processes, %d walks" %
          (ran, len(bad & bad_plain), len(processes), sum(int(p[2]) for p in processes)))
    print("%d passed, %d failed" % (not problems, len(problems)))
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
