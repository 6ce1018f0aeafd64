#!/usr/bin/env python3
"""libwhyoom.so exports exactly exports.txt, imports exactly imports.txt, needs no symbol newer than
GLIBC_2.28 and no library but libc's own."""
import os
import re
import subprocess
import sys

library = sys.argv[1]
here = os.path.dirname(os.path.abspath(__file__))
NEWEST = (2, 28)
passed = failed = 0


def names(file):
    lines = (line.split("#")[0].strip() for line in open(os.path.join(here, file)))
    return {line for line in lines if line}


def run(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def complain(text):
    global failed
    failed += 1
    print(text)


def symbols(which):
    return {line.split()[-1].split("@")[0]
            for line in run("nm", "-D", which, library).splitlines() if line.strip()}


exported, wanted = symbols("--defined-only"), names("exports.txt")
for name in sorted(exported - wanted):
    complain(f"exported, but not in exports.txt: {name}")
for name in sorted(wanted - exported):
    complain(f"in exports.txt, but not exported: {name}")
passed += len(wanted & exported)

# Weak ones that the linker and sanitizers put in are nobody's.
imported = symbols("--undefined-only") - {"__gmon_start__", "_ITM_deregisterTMCloneTable",
                                          "_ITM_registerTMCloneTable"}
allowed = names("imports.txt")
for name in sorted(imported - allowed):
    complain(f"imported, but not in imports.txt: {name}")
passed += len(imported & allowed)

for line in run("objdump", "-T", library).splitlines():
    for version in re.findall(r"GLIBC_([\d.]+)", line):
        if tuple(map(int, version.split("."))) > NEWEST:
            complain(f"needs GLIBC_{version}: {line.split()[-1]}")
        else:
            passed += 1

for line in run("objdump", "-p", library).splitlines():
    m = re.match(r"\s+NEEDED\s+(\S+)", line)
    if m and not re.match(r"(libc\.so\.6|ld-linux[\w-]*\.so\.\d)$", m[1]):
        complain(f"needs the library {m[1]}")
    elif m:
        passed += 1
print(f"{passed} passed, {failed} failed")
sys.exit(failed > 0)
