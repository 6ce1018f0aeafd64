"""The page of `whyoom fleet page` in Chromium: its answers, the links to crashes' pages, light and
dark, a narrow window; no script, nothing from elsewhere."""
import os
import pathlib
import subprocess
import sys

import pytest
from selenium.webdriver.common.by import By

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from test_browser import background, browser, chromium, ready, until  # noqa: E402,F401

WHYOOM = os.environ["WHYOOM_EXE"]
PROGRAMS = {
    "leak": "kept = []\ndef serve(n):\n    kept.append(bytearray(n))\nwhile True: serve(300000)\n",
    "load": "def load():\n    return [bytearray(40 << 20) for _ in range(99)]\nload()\n",
    "<b>odd</b>": "k = []\ndef hand(n):\n    k.append(bytearray(n))\nwhile True: hand(90000)\n",
}


def whyoom(*words, cwd=None):
    done = subprocess.run([WHYOOM, *map(str, words)], cwd=cwd, capture_output=True, text=True,
                          timeout=120)
    return done.stdout + done.stderr


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    """Of five crashes: three are the same, of three versions; an image's name is markup."""
    top = tmp_path_factory.mktemp("fleet")
    (top / "runs").mkdir()
    for number, name in enumerate(["leak", "leak", "leak", "load", "<b>odd</b>"]):
        whyoom("run", "-o", top / f"runs/{number}", "--label", f"image={name}:{number}",
               "--label", f"pod=chat-{number},model=tiny", "--", "prlimit", "--as=300000000",
               "/usr/bin/python3", "-c", PROGRAMS[name])
    assert "5 runs judged" in whyoom("fleet", "collect", "runs", cwd=top)
    whyoom("fleet", "page", cwd=top)
    return top / "fleet-page/index.html"


def test_answers_and_links(browser, page):
    browser.get(f"file://{page}")
    text = browser.find_element(By.TAG_NAME, "body").text
    for words in ("oversized-model", "leak", "serve", "load", "<b>odd</b>:4", "in 5 pods"):
        assert words in text, words
    assert not browser.find_elements(By.TAG_NAME, "script")
    parts = browser.find_elements(By.CSS_SELECTOR, "svg rect")
    assert len(parts) == 2 and all(p.find_element(By.TAG_NAME, "title") for p in parts)
    links = [a.get_attribute("href") for a in browser.find_elements(By.CSS_SELECTOR, "td a")]
    assert len(links) == len(set(links)) == 3  # those that are the same have one
    for link in links:
        assert link.startswith(f"file://{page.parent}/")
        browser.get(link)
        until(lambda: ready(browser), "the crash's pictures did not come")
        assert "% sure" in browser.find_element(By.TAG_NAME, "body").text
    browser.back()


def test_loads_nothing(browser, page):
    browser.get(f"file://{page}")
    policy, = browser.find_elements(By.CSS_SELECTOR, "meta[http-equiv=Content-Security-Policy]")
    assert policy.get_attribute("content").startswith("default-src 'none'")
    names = browser.execute_script(
        "return performance.getEntriesByType('resource').map((r) => r.name)")
    assert not [n for n in names if not n.startswith(("data:", "file:"))]


def test_light_and_dark(browser, page):
    seen = {}
    for scheme in ("light", "dark"):
        browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {
            "features": [{"name": "prefers-color-scheme", "value": scheme}]})
        browser.get(f"file://{page}")
        seen[scheme] = background(browser)
        colours = browser.execute_script("""
            return [...document.querySelectorAll("h1, h2, td, th")].map(
                (e) => getComputedStyle(e).color)""")
        assert seen[scheme] not in colours
        shots = os.environ.get("WHYOOM_SCREENSHOTS")
        if shots:
            browser.save_screenshot(f"{shots}/fleet-{scheme}.png")
    assert seen["light"] != seen["dark"]


def test_narrow(browser, page):
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", {
        "width": 400, "height": 800, "deviceScaleFactor": 2, "mobile": True})
    browser.get(f"file://{page}")
    assert browser.execute_script("return document.documentElement.scrollWidth") <= 400
    day = browser.find_element(By.CSS_SELECTOR, ".scale span")
    assert day.size["height"] < 30  # in one line
    if os.environ.get("WHYOOM_SCREENSHOTS"):
        browser.save_screenshot(os.environ["WHYOOM_SCREENSHOTS"] + "/fleet-narrow.png")
