"""What the tests of `whyoom export` share: the traces, the command, and the sums to compare."""

import glob
import json
import os
import subprocess

WHYOOM = os.environ["WHYOOM_EXE"]
TESTS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..")
MEASURES = {"live": "live_bytes", "peak": "peak_bytes", "total": "total_bytes",
            "count": "total_blocks"}
MOMENTS = ("failure", "peak", "end")


def golden():
    """Old traces of one process each: host, devices, PyTorch, sampled, checkpoints."""
    found = glob.glob(os.path.join(TESTS, "golden", "v*", "*"))
    return sorted(path for path in found if os.path.isdir(path))


def whyoom(*words, status=0, text=False, **more):
    done = subprocess.run([WHYOOM, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          text=text, **more)
    assert done.returncode == status, (words, done.stderr)
    return done.stdout


def export(trace, kind, *words, **more):
    return whyoom("export", "--format", kind, *words, trace, **more)


def sites(trace, space, at):
    """The sums over all call sites; None: `whyoom sites` has nothing at that moment."""
    done = subprocess.run([WHYOOM, "sites", "--format", "json", "-n", "0", "--space", space, "--at",
                           at, "--by", "total", trace], capture_output=True)
    if done.returncode:
        return None
    read = json.loads(done.stdout)
    return {name: sum(s[key] for s in read["sites"]) for name, key in MEASURES.items()}


def spaces(trace):
    """The names of all spaces that the trace may have."""
    done = subprocess.run([WHYOOM, "sites", "--space", "no such space", trace],
                          capture_output=True, text=True)
    return done.stderr.partition("there is ")[2].strip().split(", ")
