"""Five tests like those of pytest-memray's documentation, under both plugins: two limits of the
peak, and three of leaks, in a loop as it advises. What should fail fails, what should pass passes,
and the failure names the line."""

import os
import re

import pytest
from conftest import KEPT, install, interpreter

TESTS = """
import re
import pytest
import kept

@pytest.mark.{peak_24}
def test_fits():
    assert kept.build(1000)

@pytest.mark.{peak_100}
def test_exceeds():
    held = kept.build(200)
    assert held

@pytest.mark.{no_leaks}
def test_leaks_nothing():
    for _ in range(100):
        kept.work()

@pytest.mark.{no_leaks}
def test_leaks():
    for _ in range(100):
        kept.remember()

@pytest.mark.{no_leaks}
def test_fills_a_cache():
    for _ in range(100):
        assert re.compile("a+(b|c)*[0-9]{{3}}xyz").match("aab123xyz")
"""
MARKS = {
    "whyoom": dict(peak_24='whyoom(peak="24 MB")', peak_100='whyoom(peak="100 KB")',
                   no_leaks='whyoom(leaks=0)'),
    "memray": dict(peak_24='limit_memory("24 MB")', peak_100='limit_memory("100 KB")',
                   no_leaks='limit_leaks("0 B")'),
}
SHOULD_FAIL = {"test_exceeds", "test_leaks"}
# where the bytes come from
LINES = {"test_exceeds": "kept.py:8", "test_leaks": "kept.py:6"}


@pytest.fixture(scope="module")
def found(wheel):
    """{plugin: (tests that failed, what was printed of each)}"""
    made = install(wheel, "memray")
    made.add(interpreter("pytest-memray"))
    results = {}
    for plugin, marks in MARKS.items():
        folder = os.path.join(made.folder, plugin)
        os.makedirs(folder)
        for name, text in (("kept.py", KEPT), ("test_five.py", TESTS.format(**marks)),
                           ("pytest.ini", "[pytest]\n")):
            with open(os.path.join(folder, name), "w") as f:
                f.write(text)
        options = ["--memray"] if plugin == "memray" else []
        r = made.run(made.python, "-m", "pytest", "-q", *options, cwd=folder, timeout=300)
        parts = re.split(r"^_{3,} (\w+) _{3,}$", r.stdout.split("\n= short test summary")[0],
                         flags=re.M)
        texts = dict(zip(parts[1::2], parts[2::2]))
        print(f"shown: {plugin}: {len(texts)} of 5 fail: {', '.join(texts)}")
        results[plugin] = texts
    return results


def test_whyoom_fails_what_should_fail(found):
    assert set(found["whyoom"]) == SHOULD_FAIL, found["whyoom"]


def test_pytest_memray_finds_them_too(found):
    """And more, as caches and its own blocks count: so the comparison is about something."""
    assert set(found["memray"]) > SHOULD_FAIL, found["memray"]


def test_the_line_comes_first(found):
    for name, line in LINES.items():
        first = found["whyoom"][name].strip().splitlines()[1]
        assert line in first, found["whyoom"][name]
        assert f"called by {name} (test_five.py:" in found["whyoom"][name]
    # where whyoom has one line, pytest-memray has a stack for each place in the interpreter
    assert found["memray"]["test_leaks"].count("allocated here") > 3
    assert len(re.findall(r" blocks?$", found["whyoom"]["test_leaks"], flags=re.M)) == 1
