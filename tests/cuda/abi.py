#!/usr/bin/env python3
"""abi.py SOURCE: compiles abi.cc against every set of real CUDA headers that can be had (real.py).
None: skipped.

A row that is deliberately wrong must be refused, too: a comparison that cannot fail is none."""
import os
import shutil
import subprocess
import sys
import tempfile

import real

SOURCE = sys.argv[1]
SKIP = 77
CHANGES = [  # file, right, wrong
    ("cuda/cuda_api.def", "(gpu_ptr *out, size_t size), (out, size), ALLOC(DEVICE",
     "(gpu_ptr *out, unsigned size), (out, size), ALLOC(DEVICE"),
    ("cuda/cuda_abi.h", "uint64_t size;\n\tunsigned flags, reserved[16];",
     "unsigned flags, reserved[16];\n\tuint64_t size;"),
    ("simgpu/driver/driver.def", "(gpu_ptr to, const void *from, size_t n))",
     "(gpu_ptr to, const void *from, unsigned n))"),
]


def compile_with(cxx, source, includes, shim, out):
    return subprocess.run([cxx, '-std=c++17', '-w', '-I' + shim]
                          + ['-isystem' + i for i in includes] +
                          [source, '-o', out], capture_output=True, text=True)


def refuses(cxx, source, includes, shim, change, tmp):
    """The comparison with one line of ours changed."""
    name, right, wrong = change
    changed = os.path.join(tmp, "changed")
    shutil.rmtree(changed, ignore_errors=True)
    for f in ("cuda/cuda_api.def", "cuda/cuda_abi.h", "simgpu/driver/driver.def"):
        text = open(os.path.join(shim, f)).read()
        if f == name:
            assert right in text, (name, "the row to change is gone")
            text = text.replace(right, wrong, 1)
        os.makedirs(os.path.dirname(os.path.join(changed, f)), exist_ok=True)
        open(os.path.join(changed, f), "w").write(text)
    return compile_with(cxx, source, includes, changed, os.path.join(tmp, "abi")).returncode != 0


def main():
    shim, source = os.path.join(SOURCE, "shim"), os.path.join(SOURCE, "tests", "cuda", "abi.cc")
    cxx = os.environ.get("CXX") or shutil.which("g++") or shutil.which("clang++")
    found = real.Found()
    real.say_missing(found)
    sets = found.includes()
    if not cxx or not sets:
        print("SKIP abi:", "no headers of CUDA's" if cxx else "no C++ compiler")
        return SKIP
    passed = failed = 0
    with tempfile.TemporaryDirectory() as tmp:
        out = os.path.join(tmp, "abi")
        for include in sets:
            built = compile_with(cxx, source, [include], shim, out)
            ran = built if built.returncode else subprocess.run([out], capture_output=True,
                                                                text=True)
            print(ran.stdout + ran.stderr[-3000:], end="")
            passed += not ran.returncode
            failed += bool(ran.returncode)
        for change in CHANGES:
            noticed = refuses(cxx, source, [sets[0]], shim, change, tmp)
            passed += noticed
            failed += not noticed
            if not noticed:
                print("a wrong", change[0], "was not noticed")
    print(f"{passed} passed, {failed} failed")
    return failed > 0


sys.exit(main())
