"""wheel.py - PyTorch's own wheels: where they come from, and programs that run on them.

Owns the virtual environments, the runs on the simulated device (recorded or not), and the loop over
a module's cases. Knows nothing of what the programs do, nor of traces.

Packages come from PyPI without what they depend on, as CUDA's libraries are 3 GB and the simulated
device stands in for them. They are kept between runs in ~/.cache/whyoom-tests (WHYOOM_TEST_CACHE).
What cannot be had is a skip, with pip's reason.

From the environment, set by meson: WHYOOM_EXE (the analyzer), WHYOOM_TEST_SIMGPU (the simulated
device), WHYOOM_TEST_TMP (a directory on a real file system).
"""
import argparse
import fcntl
import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
import traceback

sys.dont_write_bytecode = True

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.append(os.path.join(os.path.dirname(HERE), "golden"))  # the reader of traces
WHYOOM = os.environ.get("WHYOOM_EXE", "")
SIMGPU = os.environ.get("WHYOOM_TEST_SIMGPU", "")
TMP = os.environ.get("WHYOOM_TEST_TMP") or None
NOT_OURS = ("WHYOOM", "LD_PRELOAD", "PYTORCH_", "MALLOC_")
NOT_SIMULATED = ("CUDA_", "LD_", "PYTHON")  # of the machine's own device and frameworks

VERSION = "2.11.0"
# What torch imports of what it asks for.
BESIDE_TORCH = ["typing_extensions", "sympy", "mpmath<1.4", "networkx", "jinja2", "markupsafe",
                "filelock", "fsspec", "numpy", "setuptools"]
OFFLINE = 300  # seconds for which a failure to install is believed


class Failed(AssertionError):
    pass


class Skip(Exception):
    """The reason why this machine cannot run the case."""


def check(ok, what):
    if not ok:
        raise Failed(what)


def equal(got, want, what):
    if got != want:
        raise Failed(f"{what}: got {got!r:.1000}, want {want!r:.1000}")


# --- environments ---

def torch_layer(version=VERSION):
    """The first layer of an environment: a name and packages."""
    return "torch-" + version, ["torch==" + version, *BESIDE_TORCH]


def pip(python, packages):
    """Installs; raises Skip with pip's own last words."""
    done = subprocess.run(
        [python, "-m", "pip", "install", "-q", "--no-deps", "--no-cache-dir", "--only-binary=:all:",
         "--retries=2", "--timeout=30", "--disable-pip-version-check", *packages],
        capture_output=True, text=True, stdin=subprocess.DEVNULL)
    if done.returncode:
        said = (done.stderr or done.stdout).strip().splitlines() or ["nothing was said"]
        raise Skip(f"pip cannot install {packages[0]}: {said[-1][:200]}")


def attempt(make, failed):
    """Calls make(). That it could not is kept in the file `failed` and believed for a while, as
    every case asks again and pip takes its time to give up."""
    try:
        if time.time() - os.stat(failed).st_mtime < OFFLINE:
            with open(failed) as f:
                raise Skip(f.read())
        os.unlink(failed)
    except FileNotFoundError:
        pass
    try:
        make()
    except Skip as reason:
        with open(failed, "w") as f:
            f.write(str(reason))
        raise


def digest(packages):
    return hashlib.sha256(" ".join(packages).encode()).hexdigest()[:8]


def make_base(folder, packages):
    """A whole environment or none: it gets its name when it is complete."""
    part = folder + ".part"
    shutil.rmtree(part, ignore_errors=True)
    made = subprocess.run([sys.executable, "-m", "venv", part], capture_output=True, text=True)
    if made.returncode:
        raise Skip("python3 cannot make a virtual environment: " + made.stdout.strip()[-200:])
    pip(os.path.join(part, "bin", "python"), packages)
    os.rename(part, folder)


def environment(base, *layers):
    """The interpreter of a virtual environment that holds the packages of `base`, which names it,
    and of each further layer: pairs (name, packages). Safe when several processes ask."""
    cache = os.environ.get("WHYOOM_TEST_CACHE") or os.path.expanduser("~/.cache/whyoom-tests")
    folder = os.path.join(cache, "%s-py%d.%d" % (base[0], *sys.version_info[:2]))
    python = os.path.join(folder, "bin", "python")
    os.makedirs(cache, exist_ok=True)
    with open(folder + ".lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not os.path.exists(python):
            shutil.rmtree(folder, ignore_errors=True)
            attempt(lambda: make_base(folder, base[1]), folder + ".failed")
        for name, packages in layers:
            marker = os.path.join(folder, f"has-{name}-{digest(packages)}")
            if not os.path.exists(marker):
                attempt(lambda: pip(python, packages), marker + ".failed")
                open(marker, "w").close()
    return python


# --- runs ---

class Run:
    """A program on a device: started at once; end() waits for it, and must be called.

    Run(python, "progs/x.py", "argument", memory="3GiB", PYTORCH_ALLOC_CONF="...")

    script: relative to this directory, or a list, as ["-m", "module"]. memory: of the simulated
    device; None: on the machine's own. record: under `whyoom run` with `options`, and then
    .directory holds the traces until the case is over. machine: processes that name the same one
    share its devices.
    """

    def __init__(self, python, script, *arguments, memory="4GiB", record=True, machine=None,
                 options=(), **variables):
        dropped = NOT_OURS + (NOT_SIMULATED if memory else ())
        environment = {k: v for k, v in os.environ.items() if not k.startswith(dropped)}
        environment["PYTHONDONTWRITEBYTECODE"] = "1"
        if machine or not record:  # whyoom run gives each run its own
            environment["WHYOOM_SIMGPU_MACHINE"] = machine or "test-%d-%d" % (os.getpid(), id(self))
        environment.update(variables)
        command = [python, *([script] if isinstance(script, str) else script), *arguments]
        self.directory = None
        if record:
            self.directory = tempfile.mkdtemp(prefix="torch-", dir=TMP)
            scratch.append(self.directory)
            simulated = ["--simgpu", memory] if memory else []
            command = [WHYOOM, "run", "-o", os.path.join(self.directory, "traces"), *simulated,
                       *options, "--", *command]
        elif memory:
            environment.update(LD_PRELOAD=SIMGPU, WHYOOM_SIMGPU=memory)
        self.process = subprocess.Popen(command, cwd=HERE, env=environment, text=True,
                                        errors="replace",
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=subprocess.PIPE)

    def end(self, status=0, timeout=600):
        """Reads to the end. The last line that is JSON is .figures, what follows it .last."""
        try:
            self.out, self.err = self.process.communicate(timeout=timeout)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.out, self.err = self.process.communicate()
            raise Failed(f"it hangs ({timeout} s): {self.out[-1000:]}{self.err[-3000:]}")
        if self.process.returncode != status:
            raise Failed(f"it ended with {self.process.returncode}, not {status}: "
                         f"{self.out[-1000:]}{self.err[-3000:]}")
        self.figures, self.last = {}, ""
        for line in self.out.splitlines():
            if line.startswith("{"):
                self.figures, self.last = json.loads(line), ""
            else:
                self.last = line
        return self

    @property
    def traces(self):
        """The directory for whyoom's commands."""
        return os.path.join(self.directory, "traces")

    def trace_files(self):
        """Of the recorded processes, the largest first."""
        found = [os.path.join(self.traces, n) for n in os.listdir(self.traces) if n[0].isdigit()]
        return sorted(found, key=os.path.getsize, reverse=True)

    def whyoom(self, command, *options):
        """What a command of whyoom's says of the traces, as JSON."""
        done = subprocess.run([WHYOOM, command, "--format", "json", *options, self.traces],
                              capture_output=True, text=True, timeout=300)
        check(done.returncode == 0, f"whyoom {command} ended with {done.returncode}: {done.stderr}")
        return json.loads(done.stdout)


# --- cases ---

scratch = []  # directories that go when a case is over


def clear():
    while scratch:
        shutil.rmtree(scratch.pop(), ignore_errors=True)


def main(cases, base=torch_layer):
    """Runs a module's case_* functions, or those named; exit status 77 when all were left out.
    base: of the version of PyTorch that is asked for, the environment's first layer."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--torch", default=VERSION, help="the version (default: %(default)s)")
    parser.add_argument("--keep", action="store_true", help="keep the traces")
    parser.add_argument("case", nargs="*")
    options = parser.parse_args()
    names = options.case or [n[5:] for n in cases if n.startswith("case_")]
    counts = {"passed": 0, "failed": 0, "skipped": 0}
    python = None
    for name in names:
        started = time.time()
        try:
            python = python or environment(base(options.torch))
            cases["case_" + name](python)
            result, why = "passed", ""
        except Skip as reason:
            result, why = "skipped", ""
            print(f"SKIP {name}: {reason}")
        except Exception as error:
            result, why = "failed", f": {error}"
            if not isinstance(error, Failed):
                traceback.print_exc()
        counts[result] += 1
        print(f"{name}: {result} in {time.time() - started:.1f} s{why}", flush=True)
        if not (options.keep or result == "failed"):
            clear()
    print("%(passed)d passed, %(failed)d failed, %(skipped)d skipped" % counts)
    sys.exit(1 if counts["failed"] else 77 if not counts["passed"] else 0)
