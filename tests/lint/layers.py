#!/usr/bin/env python3
"""Data moves right, includes point left. The shim, the simulated GPU and the analyzer include
themselves, include/ and the system, and not each other; a folder of the shim or of the analyzer
includes itself and those before it.

    layers.py TREE
"""
import os
import re
import sys

TOP = sys.argv[1]
INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"', re.M)

# "." is shim.h, guard, note and record: the contract between hooks and core. lifecycle.c composes
# all folders, so its header is for itself and for hooks only.
SHIM = ["base", "trace", "loaded", "levels", "python", "stack", "sampling", "checkpoint", "thread",
        ".", "cuda", "exec", "hooks", "lifecycle"]
# A second product. It shares the raw system calls with the shim, and the driver's interface.
SIMGPU = ["base/sys.h", "cuda/cuda_abi.h", "cuda/cuda_api.def"]

ANALYZER = ["util", "trace", "model", "knowledge", "detect", "verdict", "diff", "replay", "reduce",
            "explain", "report", "import", "export", "watch", "fleet",
            "attach", "cmd"]
# The wire format stops at trace/; cmd/ writes a supervisor's file, and knows the options.
WIRE = {"trace": ("whyoom/trace.h", "whyoom/trace_fields.h"),
        "cmd": ("whyoom/trace.h", "whyoom/trace_fields.h", "whyoom/options.def",
                "whyoom/option_sizes.def")}

passed = failed = 0


def complain(path, text):
    global failed
    failed += 1
    print(f"{os.path.relpath(path, TOP)}: {text}")


def sources(folder):
    for base, _, names in os.walk(os.path.join(TOP, folder)):
        for name in sorted(names):
            if name.endswith((".c", ".h", ".S", ".def")):
                yield os.path.join(base, name)


def shim_file(path, name):
    """The included file's path below shim/; None: it is not there."""
    for candidate in (os.path.join(os.path.dirname(path), name), os.path.join(TOP, "shim", name)):
        if os.path.exists(candidate):
            return os.path.relpath(candidate, os.path.join(TOP, "shim"))
    return None


def shim_stage(file):
    """The stage of a file below shim/; None: its folder has no place in the order."""
    folder = file.split(os.sep)[0] if os.sep in file else "."
    if folder == "." and file.startswith("lifecycle."):
        folder = "lifecycle"
    return folder if folder in SHIM else None


def check_shim(path, name):
    own = os.path.relpath(path, os.path.join(TOP, "shim"))
    file = shim_file(path, name)
    if file is None:
        if not os.path.exists(os.path.join(TOP, "include", name)):
            complain(path, f'includes "{name}", which is neither the shim\'s nor of include/')
    elif own.startswith("simgpu"):
        if not file.startswith("simgpu") and file not in SIMGPU:
            complain(path, f'includes "{name}": of the shim, the simulated GPU shares only '
                     + ", ".join(SIMGPU))
    elif shim_stage(own) is None:
        complain(path, "is in a folder that has no place in the order of the shim")
    elif file == "lifecycle.h":
        if shim_stage(own) not in ("hooks", "lifecycle"):
            complain(path, 'includes "lifecycle.h", which is for hooks/ only')
    elif shim_stage(file) is None or SHIM.index(shim_stage(file)) > SHIM.index(shim_stage(own)):
        complain(path, f'includes "{name}", of a later folder of the shim')


def check_analyzer(path, name):
    folder = os.path.relpath(path, os.path.join(TOP, "analyzer")).split(os.sep)[0]
    first = name.split("/")[0]
    if first == "whyoom":
        if name not in WIRE.get(folder, ()):
            complain(path, f'includes "{name}": wire structures stop at trace/')
    elif "/" not in name or first not in ANALYZER:
        if not os.path.exists(os.path.join(os.path.dirname(path), name)):
            complain(path, f'includes "{name}": write folder/file.h')
    elif folder not in ANALYZER:
        complain(path, "is in a folder that has no place in the order")
    elif ANALYZER.index(first) > ANALYZER.index(folder):
        complain(path, f'includes "{name}", of a later stage')


for top, check in (("shim", check_shim), ("analyzer", check_analyzer)):
    for path in sources(top):
        before = failed
        for name in INCLUDE.findall(open(path).read()):
            check(path, name)
        passed += failed == before

print(f"{passed} passed, {failed} failed")
sys.exit(failed > 0)
