"""Programs that are recorded, the watcher, and its page of metrics as numbers."""
import glob
import http.client
import os
import re
import resource
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from waiting import until  # noqa: E402

WHYOOM = os.environ["WHYOOM_EXE"]

PROGRAM = """
import random, sys, time
kept, warm = [], {}
def handle(i):
    work = [bytes(random.randrange(1000, 60000)) for _ in range(20)]
    warm[i % 100] = bytes(3000)
def remember(i):
    kept.append(bytes(20000))
end = time.time() + float(sys.argv[2])
i = 0
while time.time() < end:
    handle(i)
    if sys.argv[1] == "leak":
        remember(i)
    i += 1
    time.sleep(0.002)
"""


class Server:
    """`whyoom watch --metrics` on a directory or process, for as long as the `with` lasts."""

    def __init__(self, *arguments):
        self.arguments = [WHYOOM, "watch", "--metrics", "0", *map(str, arguments)]

    def __enter__(self):
        self.process = subprocess.Popen(self.arguments, stdout=subprocess.DEVNULL,
                                        stderr=subprocess.PIPE, text=True)
        said = self.process.stderr.readline()
        found = re.search(r"serving http://127\.0\.0\.1:(\d+)/metrics", said)
        assert found, said + self.process.stderr.read()
        self.port = int(found[1])
        return self

    def __exit__(self, *unused):
        self.process.terminate()
        assert self.process.wait(20) == 0
        self.process.stderr.close()

    def ask(self, path, method="GET"):
        """(status, headers, body); the server ends the connection."""
        c = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        c.request(method, path)
        got = c.getresponse()
        body = got.read()
        assert got.getheader("Connection") == "close"
        return got.status, got.headers, body

    def values(self):
        return values(self.ask("/metrics")[2].decode())


def prometheus(folder):
    """The folder of Prometheus' programs; its package is unpacked into `folder` where it is not
    installed, since installing pulls in much else. None: it cannot be had."""
    if shutil.which("promtool"):
        return os.path.dirname(shutil.which("promtool"))
    programs = os.path.join(folder, "usr/bin")
    if os.path.exists(programs):
        return programs
    if not shutil.which("apt-get"):
        return None
    with tempfile.TemporaryDirectory() as d:
        subprocess.run(["apt-get", "-q", "download", "prometheus"], cwd=d, capture_output=True,
                       timeout=200)
        for package in os.listdir(d):
            subprocess.run(["dpkg-deb", "-x", os.path.join(d, package), d], check=True)
            os.makedirs(folder, exist_ok=True)
            shutil.move(os.path.join(d, "usr"), folder)
    return programs if os.path.exists(programs) else None


class Programs:
    def __init__(self, folder):
        self.folder, self.all = folder, []

    def start(self, *arguments, limit=1 << 30):
        """Start PROGRAM; return it when its trace is there."""
        env = {**os.environ, "WHYOOM_DIR": str(self.folder), "WHYOOM_QUIET": "1",
               "LD_PRELOAD": os.environ["WHYOOM_SHIM"]}
        self.all.append(subprocess.Popen(
            [os.path.realpath(sys.executable), "-c", PROGRAM, *arguments], env=env,
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (limit, limit))))
        started = self.all[-1]
        pattern = os.path.join(self.folder, f"{started.pid}.*.whyoom")
        assert until(lambda: glob.glob(pattern) or started.poll() is not None)
        assert started.poll() is None
        return started

    def end(self):
        for p in self.all:
            p.kill()
            p.wait()


def watch(*arguments, check=True, **more):
    got = subprocess.run([WHYOOM, "watch", *map(str, arguments)], capture_output=True, text=True,
                         timeout=100, **more)
    assert not check or got.returncode == 0, got.stderr
    return got


def values(page):
    """{(name, the labels): number}"""
    found = {}
    for line in page.splitlines():
        if line.startswith("#"):
            continue
        name, labels, number = re.fullmatch(r"(\w+)(?:\{(.*)\})? (\S+)", line).groups()
        labels = re.findall(r'(\w+)="((?:[^"\\]|\\.)*)"', labels or "")
        found[name, frozenset(labels)] = float(number)
    return found


def of(found, name, **labels):
    wanted = set(labels.items())
    got = [v for (n, l), v in found.items() if n == name and wanted <= l]
    assert len(got) == 1, (name, labels, got)
    return got[0]
