#!/usr/bin/env python3
"""No source file is so long that it holds two modules, and no line is much wider than 100 columns
(tabs are 8). What says by which program it is run can be started by its name, as documents do."""
import os
import sys

TOP = sys.argv[1]
LONGEST, WIDEST = 800, 105  # 100, and a little where a break would be uglier

passed = failed = 0
for top in ("shim", "analyzer", "include", "tests", "examples"):
    for base, dirs, names in os.walk(os.path.join(TOP, top)):
        dirs[:] = [d for d in dirs if not d.startswith(".") and d != "__pycache__"]
        for name in sorted(names):
            path = os.path.join(base, name)
            if os.path.isfile(path):
                with open(path, "rb") as f:
                    script = f.read(2) == b"#!"
                passed += script and os.access(path, os.X_OK)
                if script and not os.access(path, os.X_OK):
                    failed += 1
                    print(f"{os.path.relpath(path, TOP)}: begins with #!, and may not be executed")
            if not name.endswith((".c", ".h", ".S", ".cc", ".cpp")):
                continue
            lines = open(path, errors="replace").read().split("\n")
            before = failed
            if len(lines) > LONGEST:
                failed += 1
                print(f"{os.path.relpath(path, TOP)}: {len(lines)} lines: what is the second "
                      f"module?")
            for number, line in enumerate(lines, 1):
                if len(line.expandtabs(8)) > WIDEST:
                    failed += 1
                    print(f"{os.path.relpath(path, TOP)}:{number}: too wide")
            passed += failed == before
print(f"{passed} passed, {failed} failed")
sys.exit(failed > 0)
