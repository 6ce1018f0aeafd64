#!/usr/bin/env python3
"""Makes the pictures of docs/page.md: records a small server that keeps too much, writes its page
and takes pictures of it in Chromium.

    pictures.py WHYOOM [DIR]      DIR: docs/pictures of the checkout"""
import base64
import pathlib
import resource
import subprocess
import sys
import tempfile
import time

from selenium import webdriver
from selenium.webdriver.chrome.options import Options
from selenium.webdriver.chrome.service import Service

LARGEST = 300 << 10
PROGRAM = '''
import time

class Model:
    def __init__(self, layers):
        self.weights = [bytearray(3 << 20) for _ in range(layers)]

    def forward(self, prompt):
        hidden = [bytearray(400000 + 900 * len(prompt)) for _ in range(12)]
        return b"".join(h[:4000] for h in hidden)

class Sessions:
    def __init__(self):
        self.history = {}

    def remember(self, user, answer):
        self.history.setdefault(user, []).append(answer * 6)

def serve(model, sessions):
    turn = 0
    while True:
        answer = model.forward("tell me more " * (10 + turn % 40))
        sessions.remember(turn % 7, answer)
        turn += 1
        time.sleep(0.003)

serve(Model(24), Sessions())
'''
# Name, width, height, dark, fragment, and the part at the top.
PICTURES = [
    ("page-verdict", 1100, 940, False, "", "header"),
    ("page-timeline", 1100, 860, False, "#from=20&to=44", "#timeline"),
    ("page-dark", 1100, 860, True, "#by=site", "#timeline"),
    ("page-flame", 1100, 760, False, "#view=flame", "#details"),
    ("page-map", 1100, 760, False, "#view=map", "#details"),
    ("page-map-earlier", 1100, 700, True, "#view=map&at=2000000000", "#details"),
    ("page-narrow", 400, 860, False, "", "header"),
]


def record(whyoom, folder):
    (folder / "server.py").write_text(PROGRAM)
    subprocess.run([whyoom, "run", "-o", "trace", "--html", "page.html", "--",
                    "/usr/bin/python3", "server.py"],
                   cwd=folder, stderr=subprocess.DEVNULL, timeout=300,
                   preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (420 << 20,) * 2))
    return folder / "page.html"


def browser():
    options = Options()
    options.binary_location = "/usr/bin/chromium"
    for word in ("--headless=new", "--no-sandbox", "--disable-dev-shm-usage", "--hide-scrollbars"):
        options.add_argument(word)
    return webdriver.Chrome(options=options, service=Service("/usr/bin/chromedriver"))


def picture(driver, page, width, height, dark, fragment, part):
    driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", {
        "width": width, "height": height, "deviceScaleFactor": 1, "mobile": False})
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [
        {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}]})
    driver.get("about:blank")
    driver.get(f"file://{page}{fragment}")
    time.sleep(1)
    driver.execute_script("document.querySelector(arguments[0]).scrollIntoView()", part)
    time.sleep(0.5)
    return base64.b64decode(driver.execute_cdp_cmd("Page.captureScreenshot",
                                                   {"format": "png"})["data"])


def main():
    whyoom = pathlib.Path(sys.argv[1]).resolve()
    to = pathlib.Path(sys.argv[2] if len(sys.argv) > 2 else
                      pathlib.Path(__file__).resolve().parents[2] / "docs" / "pictures")
    to.mkdir(exist_ok=True)
    driver = browser()
    with tempfile.TemporaryDirectory(dir="/var/tmp") as folder:
        page = record(whyoom, pathlib.Path(folder))
        for name, *how in PICTURES:
            data = picture(driver, page, *how)
            assert len(data) <= LARGEST, (name, len(data))
            (to / f"{name}.png").write_bytes(data)
    driver.quit()


if __name__ == "__main__":
    main()
