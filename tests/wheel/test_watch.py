"""A process that looks at itself."""

LEAK = """
import math, resource, sys, time, whyoom
resource.setrlimit(resource.RLIMIT_AS, (2 << 30, 2 << 30))
kept = []
background = sys.argv[1] == "background"
def handle():
    kept.append(bytearray(100000))
end, w = time.time() + 60, None
while time.time() < end and not (w and w.full_in_seconds not in (None, math.inf)):
    handle()
    time.sleep(0.002)
    w = whyoom.watch(0.5, background=background, warm_up=1)
print(type(w).__name__, w.tightest.space, w.tightest.limit, w.tightest.limit_bytes)
print(w.tightest.full_soonest_seconds <= w.full_in_seconds <= w.tightest.full_latest_seconds,
      w.tightest.growth_bytes_per_second > 0, w.resident_bytes > 1 << 20, w.refused, w.dropped)
print(w.headroom_bytes + w.tightest.used_bytes == w.tightest.limit_bytes, 0 < w.used_share < 1)
print(max(w.sites, key=lambda s: s.growth_bytes_per_second or 0).function)
before = w.time
time.sleep(1.2)
print(whyoom.watch(0.5, background=background).time > before)
"""


def sees_the_leak(installed, work, how):
    r = installed.script(LEAK, how, trace=work + "/t")
    assert r.stdout == ("Watched host address space 2147483648\nTrue True True 0 0\nTrue True\n"
                        "handle\nTrue\n"), r.stdout + r.stderr


def test_a_leak_when_asked(installed, work):
    sees_the_leak(installed, work, "asked")


def test_a_leak_in_the_background(installed, work):
    sees_the_leak(installed, work, "background")


def test_not_recorded(installed):
    r = installed.script("import whyoom; print(whyoom.recording(), whyoom.watch(), "
                         "whyoom.watch(background=True))")
    assert (r.stdout, r.stderr) == ("False None None\n", "")


def test_kept_and_shared(installed, work):
    """Calls within the interval, and of threads at once, start one look."""
    r = installed.script("""
import threading, whyoom
from whyoom import _program
looks, real = [], _program.run
_program.run = lambda *a, **k: (looks.append(a), real(*a, **k))[1]
got = []
threads = [threading.Thread(target=lambda: got.append(whyoom.watch(60))) for _ in range(8)]
for t in threads: t.start()
for t in threads: t.join()
print(len(looks), len({id(g) for g in got}), whyoom.watch(60) is got[0], whyoom.watch(0) is got[0])
print(got[0].raw["whyoom_process_info"][0][0]["mode"], got[0].alarm, len(looks))
""", trace=work + "/t")
    assert r.stdout == "1 1 True False\nfull False 2\n", r.stdout + r.stderr


def test_a_fork_looks_at_itself(installed, work):
    r = installed.script("""
import os, time, whyoom
def first():
    for _ in range(100):
        w = whyoom.watch(0.2, background=True)
        if w: return w.pid
        time.sleep(0.1)
one = first()
child = os.fork()
if not child:
    x = bytearray(1 << 20)  # its trace begins with its first block
    os._exit(0 if first() == os.getpid() else 1)
print(one == os.getpid(), os.waitpid(child, 0)[1])
""", trace=work + "/t")
    assert r.stdout == "True 0\n", r.stdout + r.stderr


def test_errors_and_the_end(installed, work):
    """The thread's error reaches the caller; the child ends with the process."""
    r = installed.script("""
import os, time, whyoom
from whyoom import _program
_program.program = lambda: "/bin/false"
said = []
for _ in range(50):
    try:
        whyoom.watch(background=True)
    except whyoom.Error as e:
        said.append(str(e))
    time.sleep(0.05)
print(set(said))
try:
    whyoom.watch()
except whyoom.Error as e:
    print("whyoom watch" in str(e))
""", trace=work + "/t")
    assert r.stdout.startswith("{'whyoom watch ended'}"), r.stdout + r.stderr
    r = installed.script("""
import os, time, whyoom
while not whyoom.watch(0.2, background=True): time.sleep(0.05)
print(whyoom._watch._watcher.child.pid, flush=True)
os.kill(os.getpid(), 9)
""", trace=work + "/u")
    pid = r.stdout.strip()
    gone = installed.script("""
import os, sys, time
for _ in range(100):
    if not os.path.exists("/proc/" + sys.argv[1]) or "zombie" in open(
            "/proc/" + sys.argv[1] + "/status").read():
        sys.exit(0)
    time.sleep(0.1)
sys.exit("it still runs")
""", pid)
    assert gone.returncode == 0, gone.stderr
