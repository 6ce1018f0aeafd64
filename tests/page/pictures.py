#!/usr/bin/env python3
"""Makes the pictures of docs/page.md: records two small servers that keep too much, writes their
pages and takes pictures of them in Chromium.

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
# Processes, threads and requests.
WORKERS = '''
import ctypes, os, random, threading, time

marks = ctypes.CDLL(None)
marks.whyoom_request_begin.restype = ctypes.c_uint64
marks.whyoom_request_begin.argtypes = [ctypes.c_char_p]
marks.whyoom_request_end.argtypes = [ctypes.c_uint64]
cache = {}

def tokenize(words):
    return [bytearray(2000 + i) for i in range(words)]

def attend(words):
    return bytearray(words * 45000)

def remember(key, scores):
    cache[key] = scores

def answer(key, words, forgetful):
    tokens, scores = tokenize(words), attend(words)
    time.sleep(words / 4000)
    if words % forgetful == 0:
        remember(key, scores)
    return len(tokens)

def serve(seed, count, forgetful):
    chance = random.Random(seed)
    for i in range(count):
        request = marks.whyoom_request_begin(chance.choice([b"POST /chat", b"POST /embed"]))
        try:
            answer((seed, i), chance.randint(40, 400), forgetful)
        except MemoryError:
            marks.whyoom_request_end(request)
            return
        marks.whyoom_request_end(request)
        time.sleep(chance.random() / 30)

def work(worker):
    threads = [threading.Thread(target=serve, args=(10 * worker + t, 30, 3 if worker == 1 else 40),
                                name=f"worker-{t}") for t in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

children = []
for worker in range(3):
    children.append(os.fork())
    if not children[-1]:
        work(worker)
        os._exit(0)
for child in children:
    os.waitpid(child, 0)
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
PICTURES_OF_WORKERS = [
    ("page-lanes", 1100, 800, False, "#view=lanes", "#details"),
    ("page-processes", 1100, 760, False, "#process=1", "#processes"),
]


def record(whyoom, folder, program, limit):
    (folder / "server.py").write_text(program)
    subprocess.run([whyoom, "run", "-o", "trace", "--html", "page.html", "--",
                    "/usr/bin/python3", "server.py"],
                   cwd=folder, stderr=subprocess.DEVNULL, timeout=300,
                   preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (limit << 20,) * 2))
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
    for program, limit, pictures in ((PROGRAM, 420, PICTURES), (WORKERS, 300, PICTURES_OF_WORKERS)):
        with tempfile.TemporaryDirectory(dir="/var/tmp") as folder:
            page = record(whyoom, pathlib.Path(folder), program, limit)
            for name, *how in pictures:
                data = picture(driver, page, *how)
                assert len(data) <= LARGEST, (name, len(data))
                (to / f"{name}.png").write_bytes(data)
    driver.quit()


if __name__ == "__main__":
    main()
