"""One wheel for every CPython from 3.10 on: those that can be had here. And what the marks cost."""

import subprocess
import sys

import pytest
from conftest import BUILD, SOURCE, install

PROGRAM = """
import sys, whyoom
@whyoom.request("decorated")
def work(n):
    return n
def numbers():
    yield from range(3)
with whyoom.mark("loading"), whyoom.request("chat", tokens=3) as r, r.part():
    print(work(1), list(whyoom.request("numbers")(numbers)()), bool(r.id), whyoom.recording())
kept = [bytearray(10) for _ in range(1000)]
print(sys.version_info[:2], type(whyoom.watch(1)).__name__)
"""


@pytest.mark.parametrize("version", ["3.10", "3.11", "3.12", "3.13", "3.14"])
def test_version(wheel, work, version):
    got = subprocess.run([sys.executable, SOURCE + "/tests/python/get-python", "--cache",
                          BUILD + "/pythons", version], capture_output=True, text=True)
    if got.returncode:
        pytest.skip(got.stderr.strip()[-200:])
    try:
        made = install(wheel, "python" + version, got.stdout.strip())
    except subprocess.CalledProcessError as error:
        pytest.skip(f"{version} makes no virtual environment: {error.stderr[-200:]!r}")
    numbers = tuple(map(int, version.split(".")))
    r = made.script(PROGRAM)
    assert r.stdout == f"1 [0, 1, 2] False False\n{numbers} NoneType\n", r.stderr
    r = made.script(PROGRAM, trace=work + "/t")
    assert r.stdout == f"1 [0, 1, 2] True True\n{numbers} Watched\n", r.stderr


def test_cost(installed):
    r = subprocess.run([sys.executable, SOURCE + "/tests/bench/python_marks.py",
                        installed.python], capture_output=True, text=True)
    print("\n".join(line for line in r.stdout.splitlines() if line.startswith("shown: ")))
    assert r.returncode == 0, r.stdout + r.stderr
