"""limits.py - runs a command until its memory ends: RLIMIT_AS, RLIMIT_DATA, a kill at a resident
size, a memory cgroup, a simulated device, a /dev/shm of some size.

Knows nothing of labels and verdicts."""
import contextlib
import os
import resource
import signal
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "lib"))
import hung  # noqa: E402
from corpus import Failure  # noqa: E402
from environment import wheel  # noqa: E402

TIMEOUT = 300


def resident(pid):
    try:
        with open("/proc/%d/statm" % pid) as f:
            return int(f.read().split()[1]) * resource.getpagesize()
    except (OSError, IndexError, ValueError):
        return 0


def family(pid):
    found = [pid]
    for p in found:
        try:
            for task in os.listdir("/proc/%d/task" % p):
                with open("/proc/%d/task/%s/children" % (p, task)) as f:
                    found += [int(c) for c in f.read().split()]
        except OSError:
            pass
    return found


def kill_at(process, limit, watched_from):
    """SIGKILLs the largest process of the family at that resident size."""
    while process.poll() is None:
        pids = family(process.pid)[watched_from:]
        largest = max(pids, key=resident, default=None)
        if largest and resident(largest) >= limit:
            with contextlib.suppress(ProcessLookupError):
                os.kill(largest, signal.SIGKILL)
            return
        time.sleep(0.0005)


class Cgroup:
    """A memory cgroup below our own, of either version. `why`: the reason that none can be made."""
    def __init__(self):
        self.why, self.top, self.version = "", "", 0
        try:
            with open("/proc/self/cgroup") as f:
                paths = {c: p for _, names, p in (line.strip().split(":", 2) for line in f)
                         for c in names.split(",")}
            for mount, path, self.version in (("/sys/fs/cgroup/memory", paths.get("memory"), 1),
                                              ("/sys/fs/cgroup", paths.get(""), 2)):
                for top in (mount + (path or ""), mount):
                    if path and os.path.isdir(top) and self.usable(top):
                        self.top = top
                        return
            self.why = "no memory cgroup that we may make groups in"
        except (OSError, ValueError) as e:
            self.why = str(e)

    def limit_name(self):
        return "memory.limit_in_bytes" if self.version == 1 else "memory.max"

    def usable(self, top):
        try:
            with self.made(1 << 30, top) as directory:
                done = subprocess.run(self.inside(directory, ["true"]), capture_output=True)
                return done.returncode == 0
        except OSError:
            return False

    @contextlib.contextmanager
    def made(self, limit, top=None):
        directory = tempfile.mkdtemp(prefix="whyoom-scenario.", dir=top or self.top)
        try:
            for name, value in ((self.limit_name(), limit), ("memory.swappiness", 0),
                                ("memory.swap.max", 0)):
                path = os.path.join(directory, name)
                if name == self.limit_name() or os.path.exists(path):
                    with open(path, "w") as f:
                        f.write(str(value))
            yield directory
        finally:
            self.remove(directory)

    @staticmethod
    def remove(directory):
        for _ in range(200):  # the last process may still be exiting
            try:
                os.rmdir(directory)
                return
            except OSError:
                with open(os.path.join(directory, "cgroup.procs")) as f:
                    for pid in f.read().split():
                        with contextlib.suppress(ProcessLookupError):
                            os.kill(int(pid), signal.SIGKILL)
                time.sleep(0.02)

    @staticmethod
    def inside(directory, command):
        return ["sh", "-c", 'echo $$ > "$0/cgroup.procs" && exec "$@"', directory] + command


# Takes so many bytes bit by bit, then waits. They are a file in memory, like another container's
# volume, and belong to no process, so the kernel takes the program for the largest.
NEIGHBOUR = """
import os, sys, tempfile, time
with tempfile.TemporaryFile(dir="/dev/shm", buffering=0) as f:
    while f.tell() < int(sys.argv[1]):
        f.write(b"x" * (8 << 20))
        time.sleep(0.008)
    time.sleep(1000)
"""


@contextlib.contextmanager
def neighbour(within, bytes_):
    """Another, unrecorded process in the same cgroup."""
    if not bytes_:
        yield
        return
    process = subprocess.Popen(within([sys.executable, "-c", NEIGHBOUR, str(bytes_)]),
                               stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        yield
    finally:
        process.kill()
        process.wait()


# A /dev/shm of its own, of so many bytes, some of which others took before.
SHM = """
mount -t tmpfs -o size="$0" whyoom-scenario /dev/shm && head -c "$1" /dev/zero >/dev/shm/old-run || exit 77
shift
exec "$@"
"""


def shm_why_not():
    """The reason why none can be had here, or ''."""
    try:
        done = subprocess.run(["unshare", "-m", "sh", "-c", SHM, "65536", "0", "true"],
                              capture_output=True, text=True)
        return "" if done.returncode == 0 else done.stderr.strip()[-100:] or "no mount namespace"
    except OSError as e:
        return str(e)


class Runner:
    """Runs programs under `whyoom run`, or with LD_PRELOAD alone if `preload` names the library."""
    def __init__(self, whyoom, preload):
        self.whyoom, self.preload = whyoom, preload
        self.cgroup = Cgroup()

    def run(self, command, extra, limit, trace):
        """The exit status, and the text on stderr."""
        if limit["kind"] == "shm":
            why = shm_why_not()
            if why:
                raise wheel.Skip("a /dev/shm of its own: " + why)
            return self.limited(command, extra, limit, trace, lambda inner: [
                "unshare", "-m", "sh", "-c", SHM, str(limit["bytes"]), str(limit.get("filled", 0)),
                *inner])
        if limit["kind"] != "cgroup":
            return self.limited(command, extra, limit, trace, lambda c: c)
        if self.cgroup.why and "neighbour" in limit:
            raise wheel.Skip("a neighbour needs a cgroup: " + self.cgroup.why)
        if self.cgroup.why:
            return self.limited(command, extra, dict(limit, kind="rss"), trace, lambda c: c)
        with self.cgroup.made(limit["bytes"]) as directory:
            def within(inner):
                return self.cgroup.inside(directory, inner)
            with neighbour(within, limit.get("neighbour", 0)):
                return self.limited(command, extra, limit, trace, within)

    def limited(self, command, extra, limit, trace, within):
        env = dict(os.environ, **extra)
        kind = limit["kind"]
        if kind in ("as", "data"):
            command = ["prlimit", "--%s=%d" % (kind, limit["bytes"])] + command
        if self.preload:
            env.update(LD_PRELOAD=self.preload, WHYOOM_DIR=trace)
        else:
            device = limit["bytes"] if kind == "gpu" else limit.get("gpu")
            simulated = ["--simgpu", str(device)] if device else []
            command = [self.whyoom, "run", "-o", trace, *simulated, "--"] + command
        process = subprocess.Popen(within(command), env=env, stdin=subprocess.DEVNULL,
                                   stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
                                   errors="replace")
        if kind == "rss":
            kill_at(process, limit["bytes"], 0 if self.preload else 1)
        try:
            _, said = process.communicate(timeout=TIMEOUT)
        except subprocess.TimeoutExpired:
            pids = family(process.pid)
            waits = [line for pid in pids for line in ["  pid %d" % pid, *hung.threads(pid),
                                                       *hung.stacks(pid)]]
            for pid in reversed(pids):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            process.communicate()
            raise Failure("\n".join(["still running after %d s" % TIMEOUT, *waits]))
        return process.returncode, said
