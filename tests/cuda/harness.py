"""What the tests of the CUDA hooks share: SHIM PROGRAMS SOURCE [CASE...] are the arguments of each
of them.

run() starts a program on the stand-in driver under the preload; Trace is what it recorded, as the
second reader has it. A case is a function of the name case_*; main() runs those of a module."""
import os
import shutil
import subprocess
import sys
import tempfile

SHIM, PROGS, SOURCE = sys.argv[1:4]
sys.path.insert(0, os.path.join(SOURCE, "tests", "golden"))
import small  # noqa: E402
from spaces import (ARRAY, CAPTURED, HANDLE, OOM, REFERENCE, REGISTERED, STREAM,  # noqa: E402, F401
                    Trace)


class Failed(AssertionError):
    pass


def equal(got, want, what=""):
    if got != want:
        raise Failed(f"{what}: got {got!r}, want {want!r}")


def check(ok, what):
    if not ok:
        raise Failed(what)


class Ran:
    def __init__(self, done, directory):
        self.rc, self.out, self.err = done.returncode, done.stdout, done.stderr
        self.traces = []
        for base, _, names in os.walk(directory):
            for name in sorted(names):
                if name.endswith(".whyoom") and name[0].isdigit():
                    self.traces.append(Trace(os.path.join(base, name)))
            self.traces += [Trace(*t) for t in small.there(base)]
        shutil.rmtree(directory, ignore_errors=True)

    @property
    def trace(self):
        equal(len(self.traces), 1, "traces")
        return self.traces[0]


def run(*argv, before=(), preload=(), env=(), shim=True, rc=0):
    """A program of PROGS, or one by its path; before, preload: other libraries, in front of the
    shim and behind it."""
    directory = tempfile.mkdtemp(prefix="whyoom-cuda-")
    e = {k: v for k, v in os.environ.items() if not k.startswith(("WHYOOM", "STAND", "PYTORCH"))}
    e["LD_LIBRARY_PATH"] = PROGS
    e.update(env)
    if shim or before or preload:
        e["LD_PRELOAD"] = ":".join([*before, *([SHIM] if shim else []), *preload])
    if shim:
        e["WHYOOM_DIR"] = os.path.join(directory, "trace")
    command = [argv[0] if "/" in argv[0] else os.path.join(PROGS, argv[0]), *argv[1:]]
    emulator = os.environ.get("WHYOOM_TEST_EMULATOR")
    if emulator:  # another machine's programs: what is for them is not for the emulator
        given = [x for k in ("LD_PRELOAD", "LD_LIBRARY_PATH") if k in e
                 for x in ("-E", f"{k}={e.pop(k)}")]
        command = emulator.split() + given + command
    done = subprocess.run(command, env=e, capture_output=True, text=True, timeout=120)
    ran = Ran(done, directory)
    if done.returncode != rc:
        raise Failed(f"{argv} ended with {done.returncode}, not {rc}: {done.stdout}{done.stderr}")
    return ran


def direct(case):
    """The program that is linked with the driver, with its slots bound at the start, and at the
    first call."""
    for kind in ("now", "lazy"):
        yield run("direct_" + kind, case)


def takes(trace):
    return [(d["space"], d["size"], d["api"], d["label"]) for d in trace.of("SPACE_ALLOC")]


def main(module):
    """Runs the cases of a module, given as its globals(), or those that were asked for, or all but
    -CASE; the exit status."""
    wanted = [a for a in sys.argv[4:] if a[0] != "-"]
    unwanted = [a[1:] for a in sys.argv[4:] if a[0] == "-"]
    passed = failed = 0
    for name, function in list(module.items()):
        if not name.startswith("case_") or name[5:] in unwanted or (
            wanted and name[5:] not in wanted):
            continue
        try:
            function()
            passed += 1
        except Exception as error:  # noqa: BLE001
            failed += 1
            print(f"{name[5:]}: {error}" if isinstance(error, Failed) else f"{name[5:]}: {error!r}")
            if not isinstance(error, Failed):
                import traceback
                traceback.print_exc(file=sys.stdout)
    print(f"{passed} passed, {failed} failed")
    return failed > 0
