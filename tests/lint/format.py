#!/usr/bin/env python3
"""format.py SOURCE [FILE...]: all C and C++ is laid out as .clang-format says, by one version of
clang-format. format.py SOURCE --write lays it out."""
import concurrent.futures
import os
import subprocess
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import clang_format  # noqa: E402
import sources  # noqa: E402

AT_ONCE = 40


def main():
    top, arguments = sys.argv[1], sys.argv[2:]
    write = "--write" in arguments
    names = [a for a in arguments if a != "--write"] or [
        name for name in sources.files(top) if name.endswith((".c", ".h", ".cc", ".cpp"))]
    command = [clang_format.program(), *(["-i"] if write else ["--dry-run", "-Werror"])]

    def look(some):
        done = subprocess.run(command + some, cwd=top, capture_output=True, text=True)
        return done.returncode, done.stderr

    some = [names[i:i + AT_ONCE] for i in range(0, len(names), AT_ONCE)]
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        results = list(pool.map(look, some))
    wrong = {line.split(":")[0]: line for _, said in results for line in said.split("\n")
             if ": error: " in line}
    failed = max(len(wrong), sum(status != 0 for status, _ in results))
    for line in wrong.values():
        print(line.replace(" [-Wclang-format-violations]", ": tests/lint/format.py . --write"))
    for status, said in results:
        if status and ": error: " not in said:
            print(said)
    print(f"{len(names) - failed} passed, {failed} failed")
    return bool(failed)


sys.exit(main())
