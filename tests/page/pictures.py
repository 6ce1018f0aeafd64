#!/usr/bin/env python3
"""Makes the pictures of docs/page.md and docs/diff.md: records two small servers that keep too
much, writes their pages, compares two versions of another one, and takes pictures of all.

    pictures.py WHYOOM [DIR [NAME]]

DIR: docs/pictures of the checkout. NAME: only pictures whose names begin so."""
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
# Two versions of a server, of which the second keeps more answers, reads ahead, and needs less for
# an answer.
VERSIONS = '''
import collections
import time

class Index:
    def __init__(self, parts):
        self.parts = []
        for n in range(parts):
            self.parts.append(bytearray(1 << 20))
            time.sleep(0.01)

class Cache:
    def __init__(self, room):
        self.answers = collections.deque(maxlen=room)

    def remember(self, answer):
        self.answers.append(bytearray(answer))

def render(question, size):
    pages = [bytearray(size + 100 * (question %% 50)) for _ in range(6)]
    return b"".join(pages)[:60000]

%s
def serve(index, cache, questions):
    ahead = []
    for question in range(questions):
        answer = render(question, %d)
        cache.remember(answer)
        %s
        time.sleep(0.001)

serve(Index(12), Cache(%d), 600)
'''
BEFORE = ("", 300000, "answer = None", 60)
AFTER = ("def read_ahead(ahead, question):\n    if question % 60 == 0:\n"
         "        ahead.append(bytearray(400000))\n", 220000, "read_ahead(ahead, question)", 140)
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
PICTURES_OF_RUNNING = [
    ("page-live", 1100, 440, False, "", "#timeline"),
]
DIFF_PICTURES = [
    ("diff-page", 1100, 1000, False, "", "header"),
    ("diff-flame", 1100, 960, False, "#view=flame", "#timeline"),
    ("diff-lines", 1100, 520, True, "#view=lines", "#details"),
]


def record(whyoom, folder, program, limit):
    (folder / "server.py").write_text(program)
    subprocess.run([whyoom, "run", "-o", "trace", "--html", "page.html", "--",
                    "/usr/bin/python3", "server.py"],
                   cwd=folder, stderr=subprocess.DEVNULL, timeout=300,
                   preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (limit << 20,) * 2))
    return folder / "page.html"


def still_running(whyoom, folder):
    (folder / "server.py").write_text(PROGRAM)
    with subprocess.Popen([whyoom, "run", "-o", "trace", "--", "/usr/bin/python3", "server.py"],
                          cwd=folder, stderr=subprocess.DEVNULL,
                          preexec_fn=lambda: resource.setrlimit(
                              resource.RLIMIT_AS, (600 << 20,) * 2)) as server:
        time.sleep(10)
        subprocess.run([whyoom, "report", "trace", "--warm-up", "0", "--format", "html", "-o",
                        "page.html"], cwd=folder, timeout=300, check=True)
        server.kill()
    return folder / "page.html"


def compare(whyoom, folder):
    for name, version in (("before", BEFORE), ("after", AFTER)):
        (folder / "server.py").write_text(VERSIONS % version)
        subprocess.run([whyoom, "run", "-o", name, "--", "/usr/bin/python3", "server.py"],
                       cwd=folder, stderr=subprocess.DEVNULL, timeout=300, check=True)
    subprocess.run([whyoom, "diff", "before", "after", "--format", "html", "-o", "diff.html"],
                   cwd=folder, timeout=300, check=True)
    return folder / "diff.html"


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
    shows = ((lambda *at: record(*at, PROGRAM, 420), PICTURES),
             (lambda *at: record(*at, WORKERS, 300), PICTURES_OF_WORKERS),
             (still_running, PICTURES_OF_RUNNING),
             (compare, DIFF_PICTURES))
    for make, pictures in shows:
        pictures = [p for p in pictures if p[0].startswith("".join(sys.argv[3:]))]
        with tempfile.TemporaryDirectory(dir="/var/tmp") as folder:
            page = pictures and make(whyoom, pathlib.Path(folder))
            for name, *how in pictures:
                data = picture(driver, page, *how)
                assert len(data) <= LARGEST, (name, len(data))
                (to / f"{name}.png").write_bytes(data)
    driver.quit()


if __name__ == "__main__":
    main()
