"""The pytest plugin: limits that hold, and failures that name the line."""

import json
import os
import re

import pytest
from conftest import KEPT

TESTS = """
import logging, os, re, resource, signal, threading
import pytest
import kept

@pytest.fixture(scope="module")
def large():
    yield bytearray(50 << 20)

@pytest.mark.whyoom(peak="24 MiB")
def test_fits(large):
    assert len(large) and kept.build(1000)

@pytest.mark.whyoom(peak="100 KiB")
def test_exceeds():
    held = kept.build(200)
    assert held

@pytest.mark.whyoom(peak=1 << 20)
def test_exceeds_in_a_thread():
    t = threading.Thread(target=kept.build, args=(3000,))
    t.start()
    t.join()

@pytest.mark.whyoom(leaks=0)
def test_no_leak():
    for _ in range(100):
        kept.work()

@pytest.mark.whyoom(leaks=0)
def test_leaks():
    for _ in range(100):
        kept.remember()

@pytest.mark.whyoom(leaks=0)
def test_caches_are_no_leak():
    assert re.compile("a+(b|c)*[0-9]{3}xyz").match("aab123xyz")
    logging.getLogger("one").debug("not shown")

@pytest.mark.whyoom(peak="1 GiB", leaks="10 KiB")
class TestClass:
    def test_method(self, tmp_path):
        assert tmp_path

    @pytest.mark.parametrize("n", [1, 2])
    def test_each(self, n):
        assert n

@pytest.mark.whyoom
def test_out_of_memory():
    resource.setrlimit(resource.RLIMIT_AS, (400 << 20, 400 << 20))
    held = []
    while True:
        held.append(bytearray(1 << 20))

@pytest.mark.whyoom(peak="1 MiB")
def test_is_killed():
    os.kill(os.getpid(), signal.SIGKILL)

@pytest.mark.whyoom(peak="1 MiB")
def test_fails():
    print("what it printed")
    assert 1 == 2

@pytest.mark.whyoom(peak="1 MiB")
def test_skips():
    pytest.skip("not today")

@pytest.mark.whyoom(peak="many")
def test_wrong_size():
    pass

@pytest.mark.whyoom(peek="1 MiB")
def test_wrong_argument():
    pass

def test_not_marked(large):
    assert len(large) == 50 << 20
"""
OUTCOMES = {"test_fits": "passed", "test_exceeds": "failed", "test_exceeds_in_a_thread": "failed",
            "test_no_leak": "passed", "test_leaks": "failed", "test_caches_are_no_leak": "passed",
            "test_method": "passed", "test_each[1]": "passed", "test_each[2]": "passed",
            "test_out_of_memory": "failed", "test_is_killed": "failed", "test_fails": "failed",
            "test_skips": "skipped", "test_wrong_size": "error", "test_wrong_argument": "error",
            "test_not_marked": "passed"}


def project(folder):
    for name, text in (("kept.py", KEPT), ("test_it.py", TESTS), ("pytest.ini", "[pytest]\n")):
        with open(os.path.join(folder, name), "w") as f:
            f.write(text)


@pytest.fixture(scope="module")
def told(beside_pytest):
    """The outcome of each test, and what pytest printed of it."""
    folder = os.path.join(os.environ["WHYOOM_BUILD"], "package-project")
    os.makedirs(folder, exist_ok=True)
    project(folder)
    r = beside_pytest.run(beside_pytest.python, "-m", "pytest", "-rA", "--junitxml=out.xml",
                          "-vv", "--tb=short", cwd=folder, timeout=600)
    assert r.returncode == 1, r.stdout + r.stderr
    assert os.path.getsize(folder + "/out.xml") > 5000
    sections = re.split(r"^_{3,} (?:ERROR at setup of )?(?:\w+\.)?(\S+) _{3,}$", r.stdout,
                        flags=re.M)
    texts = dict(zip(sections[1::2], sections[2::2]))
    outcomes = {}
    for word, name in re.findall(r"^(PASSED|FAILED|ERROR) test_it.py::(?:\w+::)?(\S+)", r.stdout,
                                 flags=re.M):
        outcomes[name] = word.lower()
    for name in re.findall(r"^test_it.py::(\S+) SKIPPED", r.stdout, flags=re.M):
        outcomes[name] = "skipped"
    return outcomes, texts, r.stdout


def test_outcomes(told):
    assert told[0] == OUTCOMES, told[2]


def test_the_peak_and_its_line(told):
    text = told[1]["test_exceeds"]
    found = re.search(r"test_exceeds held (\d+) KiB at its peak; the limit is 100 KiB", text)
    # 200 blocks of 1000 bytes and their headers, and the list
    assert 200 <= int(found[1]) <= 215, text
    # the comprehension is a function of its own until Python 3.12
    assert re.search(r"(\d+) KiB  build(\.<locals>\.<listcomp>)? \(kept\.py:8\), 20\d blocks", text)
    assert "called by test_exceeds (test_it.py:16)" in text
    assert re.search(r"whyoom open \S+/trace", text)


def test_other_threads_count(told):
    text = told[1]["test_exceeds_in_a_thread"]
    assert re.search(r"held (2\.9|3\.0)\d MiB", text) and "MiB  build" in text, text


def test_the_leak_and_its_line(told):
    text = told[1]["test_leaks"]
    assert re.search(r"test_leaks left (19\d|20\d) KiB behind; the limit is 0 bytes", text)
    assert re.search(r"KiB  remember \(kept\.py:6\), 201 blocks", text), text
    assert "called by test_leaks (test_it.py:33)" in text


def test_a_verdict(told):
    text = told[1]["test_out_of_memory"]
    assert "MemoryError" in text and "Where 400 MiB went (RLIMIT_AS)" in text, text
    text = told[1]["test_is_killed"]
    assert "the test's process ended before the test did: signal 9" in text
    text = told[1]["test_fails"]
    assert "assert 1 == 2" in text and "what it printed" in text
    assert "no request was refused" in text


def test_wrong_marks(told):
    assert "peak: 'many' is no size; write '200 MiB'" in told[1]["test_wrong_size"]
    assert "whyoom's mark has no argument peek" in told[1]["test_wrong_argument"]


def test_without_limits(beside_pytest, work):
    project(work)
    r = beside_pytest.run(beside_pytest.python, "-m", "pytest", "-q", "--no-whyoom",
                          "--strict-markers", "-k", "exceeds or leaks", cwd=work)
    assert "3 passed" in r.stdout, r.stdout


def test_chosen_by_name(beside_pytest, work):
    """From another directory, by its node id, with a configuration and without a cache."""
    project(work)
    with open(work + "/pytest.ini", "w") as f:
        f.write("[pytest]\naddopts = -p no:cacheprovider --strict-markers\n")
    os.mkdir(work + "/other")
    r = beside_pytest.run(beside_pytest.python, "-m", "pytest", "-q", "../test_it.py::test_exceeds",
                          "../test_it.py::TestClass::test_each[2]", cwd=work + "/other")
    assert "1 failed, 1 passed" in r.stdout, r.stdout
    assert "held 2" in r.stdout and "whyoom open" not in r.stdout


def test_sizes_are_properties(beside_pytest, work):
    """For reports of other plugins: the numbers of a test that passed."""
    project(work)
    with open(work + "/conftest.py", "w") as f:
        f.write("import json\ndef pytest_runtest_logreport(report):\n"
                "    if report.when == 'call': print(json.dumps(dict(report.user_properties)))\n")
    r = beside_pytest.run(beside_pytest.python, "-m", "pytest", "-q", "-s", "test_it.py::test_fits",
                          cwd=work)
    sizes = json.loads(re.search(r"\{.*\}", r.stdout)[0])
    assert 1_000_000 < sizes["whyoom_peak_bytes"] < 1_200_000
