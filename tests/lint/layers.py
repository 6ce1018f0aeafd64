#!/usr/bin/env python3
"""Data moves right, includes point left: the shim includes itself, include/ and the system; a
folder of the analyzer includes itself and those before it; neither includes the other."""
import os
import re
import sys

TOP = sys.argv[1]
ORDER = ["util", "trace", "model", "knowledge", "detect", "verdict", "replay", "reduce", "explain",
         "report", "import", "export",
         "cmd"]
INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"', re.M)
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


for path in sources("shim"):
    before = failed
    for name in INCLUDE.findall(open(path).read()):
        if not (os.path.exists(os.path.join(os.path.dirname(path), name)) or
                os.path.exists(os.path.join(TOP, "shim", name)) or
                os.path.exists(os.path.join(TOP, "include", name))):
            complain(path, f'includes "{name}", which is neither the shim\'s nor of include/')
    passed += failed == before

for path in sources("analyzer"):
    folder = os.path.relpath(path, os.path.join(TOP, "analyzer")).split(os.sep)[0]
    before = failed
    for name in INCLUDE.findall(open(path).read()):
        first = name.split("/")[0]
        if first == "whyoom":
            if name not in WIRE.get(folder, ()):
                complain(path, f'includes "{name}": wire structures stop at trace/')
        elif "/" not in name or first not in ORDER:
            if not os.path.exists(os.path.join(os.path.dirname(path), name)):
                complain(path, f'includes "{name}": write folder/file.h')
        elif folder not in ORDER:
            complain(path, "is in a folder that has no place in the order")
        elif ORDER.index(first) > ORDER.index(folder):
            complain(path, f'includes "{name}", of a later stage')
    passed += failed == before

print(f"{passed} passed, {failed} failed")
sys.exit(failed > 0)
