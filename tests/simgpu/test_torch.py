#!/usr/bin/env python3
"""PyTorch's own wheel on the simulated device: test_torch.py CASE.

The wheel comes from PyPI, without CUDA's libraries, into a folder that is kept between runs
(~/.cache/whyoom-tests, or WHYOOM_TEST_CACHE); exit status 77 when it cannot be had.
"""
import fcntl
import json
import os
import re
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
LIBRARY = os.environ["WHYOOM_TEST_SIMGPU"]
WHYOOM = os.environ.get("WHYOOM_EXE")
VERSION = "2.11.0"
PACKAGES = ["torch==" + VERSION, "typing_extensions", "sympy", "mpmath", "networkx", "jinja2",
            "markupsafe", "filelock", "fsspec", "numpy", "setuptools"]
TRANSFORMERS = ["transformers==4.57.1", "huggingface_hub==0.36.0", "tokenizers==0.22.1",
                "safetensors", "regex", "requests", "urllib3", "idna", "certifi",
                "charset_normalizer", "tqdm", "packaging", "pyyaml", "hf_xet"]
passed = failed = 0


def check(good, text):
    global passed, failed
    if good:
        passed += 1
    else:
        failed += 1
        print("FAILED: " + text)


def python(extra=()):
    """The interpreter of a virtual environment that has PyTorch; made once."""
    cache = os.environ.get("WHYOOM_TEST_CACHE") or os.path.expanduser("~/.cache/whyoom-tests")
    folder = os.path.join(cache, "torch-%s-py%d.%d" % ((VERSION,) + sys.version_info[:2]))
    os.makedirs(cache, exist_ok=True)
    with open(folder + ".lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        for name, packages in (("torch", PACKAGES), ("transformers", TRANSFORMERS)):
            done = os.path.join(folder, "has-" + name)
            if os.path.exists(done) or (name != "torch" and name not in extra):
                continue
            if not os.path.exists(os.path.join(folder, "bin", "python")):
                subprocess.run([sys.executable, "-m", "venv", folder], check=True)
            made = subprocess.run([os.path.join(folder, "bin", "python"), "-m", "pip", "install", "-q",
                                   "--no-deps", *packages], capture_output=True, text=True)
            if made.returncode:
                print(f"SKIP {sys.argv[1]}: pip cannot install {packages[0]}: "
                      f"{made.stderr.strip().splitlines()[-1][:200] if made.stderr.strip() else ''}")
                sys.exit(77)
            open(done, "w").close()
    return os.path.join(folder, "bin", "python")


class Run:
    def __init__(self, script, *arguments, extra=(), **environment):
        base = {k: v for k, v in os.environ.items()
                if not k.startswith(("WHYOOM_SIMGPU", "CUDA_", "LD_", "PYTORCH_"))}
        self.process = subprocess.Popen(
            [python(extra), os.path.join(HERE, "torch", script), *arguments], text=True,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            env=dict(base, LD_PRELOAD=LIBRARY,
                     **dict({"WHYOOM_SIMGPU_MACHINE": "torch-%d" % os.getpid()}, **environment)))

    def end(self):
        self.out, self.err = self.process.communicate(timeout=500)
        self.lines = self.out.strip().splitlines() or [""]
        self.last = self.lines[-1]
        if self.process.returncode:
            print(self.out[-2000:], self.err[-3000:])
        check(self.process.returncode == 0, f"the program ended with {self.process.returncode}")
        self.figures = next((json.loads(line) for line in self.lines if line.startswith("{")), {})
        print(" ".join(f"{k}={v}" for k, v in self.figures.items() if k != "curve"), "|",
              self.last[:400])
        return self


def size(text, pattern):
    """Bytes, from a figure as PyTorch prints it."""
    m = re.search(pattern.replace("SIZE", r"([\d.]+) (bytes|KiB|MiB|GiB)"), text)
    return float(m[1]) * {"bytes": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30}[m[2]] if m else -1


def out_of_memory(run, total=3 << 30):
    """The whole message is there, and its figures are those of the device."""
    text = run.last
    check("CUDA out of memory" in text, "no out of memory: " + text[:200])
    check(size(text, "total capacity of SIZE") == total, "the capacity")
    tried, free = size(text, "Tried to allocate SIZE"), size(text, "of which SIZE is free")
    check(0 <= free < tried, f"{free} are free of {tried}")
    used = size(text, "this process has SIZE memory in use")
    check(abs(used + free - total) < total / 100, f"{used} in use and {free} free are not {total}")
    check(abs(size(text, "Of the allocated memory SIZE") - run.figures["allocated"]) < 1 << 24,
          "allocated")


def failing(which, extra=(), **environment):
    return Run("failures.py", which, extra=extra, WHYOOM_SIMGPU="3GiB", **environment).end()


def case_features():
    run = Run("features.py", WHYOOM_SIMGPU="4GiB").end()
    check(run.last == "ok", run.last)
    check(run.err.count("not real") == 1, "it says once that results are not real")


def case_model():
    out_of_memory(failing("model"))


def case_kv_cache():
    run = failing("kv_cache")
    out_of_memory(run)
    # 12 layers of 64 KiB a step, and what is kept of other sizes
    check(1000 < run.figures["steps"] < 4000, f"{run.figures['steps']} steps")


def case_leak():
    run = failing("leak")
    out_of_memory(run)
    curve = run.figures["curve"]
    steps = {b - a for a, b in zip(curve, curve[1:])}
    check(steps == {4 << 20}, f"each request leaves the same behind: {steps}")


def case_fragmentation():
    run = failing("fragmentation")
    out_of_memory(run)
    hole = size(run.last, "SIZE is reserved by PyTorch but unallocated")
    check(hole > 1 << 30, f"{hole} lie idle")
    run = failing("fragmentation", PYTORCH_CUDA_ALLOC_CONF="expandable_segments:True")
    check(run.last == "fits", "with expandable segments: " + run.last[:200])


def case_llama():
    run = failing("llama", extra=("transformers",))
    out_of_memory(run)
    check(run.figures["steps"] > 500, f"{run.figures['steps']} tokens")


def case_async():
    run = failing("leak", PYTORCH_CUDA_ALLOC_CONF="backend:cudaMallocAsync")
    check("would exceed allowed memory" in run.out, run.last)


def case_sharing():
    """Two processes on one device: what one holds the other cannot have, and its message says who."""
    first = Run("failures.py", "half", WHYOOM_SIMGPU="3GiB")
    check(first.process.stdout.readline() == "holds\n", "the first one")
    second = failing("model")
    free = size(second.last, "of which SIZE is free")
    check(size(second.last, r"Process %d has SIZE memory in use" % first.process.pid) > 1 << 30,
          "who else holds memory")
    check(free < 64 << 20, f"{free} free")
    first.end()
    check("CUDA out of memory" in first.last, first.last[:200])


def case_run():
    """whyoom run --simgpu is all it takes."""
    with tempfile.TemporaryDirectory(dir=os.environ.get("WHYOOM_TEST_TMP")) as folder:
        environment = {k: v for k, v in os.environ.items()
                       if not k.startswith(("WHYOOM_SIMGPU", "CUDA_", "LD_"))}
        done = subprocess.run(
            [WHYOOM, "run", "-o", folder + "/traces", "--simgpu", "4GiB", "--", python(),
             os.path.join(HERE, "torch", "features.py")],
            capture_output=True, text=True, env=environment, timeout=500)
        print(done.stdout[-300:], done.stderr[-1500:])
        check(done.returncode == 0 and done.stdout.endswith("ok\n"), f"ended with {done.returncode}")
        traces = os.listdir(folder + "/traces")
        check(len(traces) >= 2, f"{traces}")
        check(not [n for n in os.listdir("/dev/shm") if ".run-" in n and "simgpu" in n],
              "nothing is left in /dev/shm")


globals()["case_" + sys.argv[1]]()
print(f"{passed} passed, {failed} failed")
sys.exit(failed > 0)
