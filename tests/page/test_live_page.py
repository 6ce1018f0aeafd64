"""The page of a process that still runs, in Chromium: where its memory is going is drawn into the
curve."""
import os
import pathlib
import signal
import subprocess
import sys
import time

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from sample import WHYOOM  # noqa: E402
from test_browser import browser, chromium, settled, show  # noqa: E402,F401

PROGRAM = """
import sys, time
kept = []
def remember(i):
    kept.append(bytes(20000))
def work():
    return [bytes(3000) for _ in range(20)]
i = 0
while True:
    work()
    if sys.argv[1] == "leak":
        remember(i)
    i += 1
    time.sleep(0.002)
"""
WORDS = "return document.getElementById('whole').words.map((w) => w.text)"
BAND = """
    const c = document.getElementById("whole"), g = c.getContext("2d");
    const w = c.width, h = c.height, d = g.getImageData(0, 0, w, h).data;
    const count = (from, to) => {
      const seen = new Set();
      for (let y = Math.floor(h / 4); y < h * 0.9; y += 3)
        for (let x = Math.floor(from * w); x < to * w; x += 3)
          seen.add([0, 1, 2].map((k) => d[4 * (y * w + x) + k]).join());
      return seen.size;
    };
    return count(0.85, 0.97)"""


@pytest.fixture
def page(tmp_path):
    running = []

    def make(kind):
        folder = tmp_path / kind
        running.append(subprocess.Popen(
            [WHYOOM, "run", "-o", folder, "--", "sh", "-c",
             'ulimit -v 600000; exec "$@"', "sh", os.path.realpath(sys.executable), "-c", PROGRAM,
             kind], start_new_session=True))
        time.sleep(8)
        to = tmp_path / (kind + ".html")
        subprocess.run([WHYOOM, "report", folder, "--warm-up", "0", "--format", "html", "-o", to],
                       check=True, timeout=120)
        return to

    yield make
    for p in running:
        os.killpg(p.pid, signal.SIGKILL)
        p.wait()


def test_growth_is_drawn(browser, page):  # noqa: F811
    show(browser, page("leak"))
    settled(browser)
    words = browser.execute_script(WORDS)
    assert "now" in words and any(w.startswith("full at ") for w in words), words
    label = browser.execute_script("return document.getElementById('whole').ariaLabel")
    assert "Still running. host: full in " in label
    assert "where it is going" in browser.execute_script(
        "return document.querySelector('#timeline .legend').textContent")
    assert browser.execute_script(BAND) > 2
    if os.environ.get("WHYOOM_PICTURES"):
        browser.save_screenshot(os.path.join(os.environ["WHYOOM_PICTURES"], "page-live.png"))
        browser.execute_script("document.getElementById('timeline').scrollIntoView()")
        settled(browser)
        browser.save_screenshot(os.path.join(os.environ["WHYOOM_PICTURES"], "page-live-curve.png"))


def test_without_a_trend_nothing_is_drawn(browser, page):  # noqa: F811
    show(browser, page("steady"))
    settled(browser)
    words = browser.execute_script(WORDS)
    assert "now" not in words and not any("full at" in w for w in words), words
