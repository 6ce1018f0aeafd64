"""Reading on in a trace gives the same events in the same order as reading the whole file at once,
whenever the looks happen."""
import glob
import os
import signal
import subprocess
import sys
import time

import pytest

COMPARE, CHURN = os.environ["FOLLOW_COMPARE"], os.environ["CHURN"]

THREADS = """
import random, threading, time
kept = {}
def work(k):
    end = time.time() + 1
    while time.time() < end:
        kept[k, random.randrange(3000)] = bytes(random.randrange(600, 9000))
        time.sleep(0.00001)
for _ in range(2):
    all = [threading.Thread(target=work, args=(i,)) for i in range(5)]
    [t.start() for t in all]
    [t.join() for t in all]
"""


def recorded(folder, argv, **variables):
    env = {**os.environ, "WHYOOM_DIR": str(folder), "WHYOOM_QUIET": "1",
           "LD_PRELOAD": os.environ["WHYOOM_SHIM"], **variables}
    process = subprocess.Popen(argv, env=env)
    for _ in range(200):
        found = glob.glob(f"{folder}/{process.pid}.0.whyoom")
        if found and os.path.getsize(found[0]) > 65536:
            return process, found[0]
        time.sleep(0.02)
    raise AssertionError("no trace")


def compare(trace, milliseconds):
    got = subprocess.run([COMPARE, trace, str(milliseconds)], capture_output=True, text=True,
                         timeout=200)
    assert got.returncode == 0, got.stdout + got.stderr
    return int(got.stdout.split()[0]), int(got.stdout.split(" looks, ")[1].split()[0])


@pytest.mark.parametrize("threads, milliseconds", [(1, 5), (6, 20), (14, 100)])
def test_threads_that_come_and_go(tmp_path, threads, milliseconds):
    process, trace = recorded(tmp_path, [CHURN, str(threads), "1", "2"])
    looks, events = compare(trace, milliseconds)
    assert process.wait() == 0
    assert looks > 2 and events > 10000


def test_python(tmp_path):
    real = os.path.realpath(sys.executable)
    process, trace = recorded(tmp_path, [real, "-c", THREADS])
    looks, _ = compare(trace, 10)
    assert process.wait() == 0 and looks > 5


def test_killed(tmp_path):
    process, trace = recorded(tmp_path, [CHURN, "4", "30", "1"])
    follower = subprocess.Popen([COMPARE, trace, "20"], stdout=subprocess.PIPE, text=True)
    time.sleep(0.7)
    process.send_signal(signal.SIGKILL)
    process.wait()
    words, _ = follower.communicate(timeout=100)
    assert follower.returncode == 0, words


def test_checkpoints(tmp_path):
    """A recording that replaces old chunks is read again from its start."""
    process, trace = recorded(tmp_path, [CHURN, "3", "2", "1"], WHYOOM_MODE="sampled",
                              WHYOOM_SAMPLE_EVERY="64", WHYOOM_MAX_TRACE="4MiB")
    compare(trace, 30)
    assert process.wait() == 0
