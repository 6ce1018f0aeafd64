#!/usr/bin/env python3
"""Do the knowledge files call functions by the names that the installed packages give them?

    test_names.py ENVIRONMENT...

Each `python =` pattern whose package is in one of these environments must fit a file and a function
of it, except those that are for other versions (OLDER).
"""
import ast
import fnmatch
import os
import subprocess
import sys

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
import environment  # noqa: E402
import wheel  # noqa: E402

DATA = os.path.join(HERE, "..", "..", "analyzer", "knowledge", "data")
OLDER = {
    "langgraph/pregel/__init__.py: Pregel.*invoke": "before LangGraph 0.5",
    "langgraph/pregel/__init__.py: Pregel.*stream": "before LangGraph 0.5",
}


def patterns():
    """(knowledge file, file or folder, glob of functions) of each line."""
    for name in sorted(os.listdir(DATA)):
        if not name.endswith(".know"):
            continue
        with open(os.path.join(DATA, name)) as f:
            for line in f:
                key, _, value = line.partition("=")
                if key.strip() == "python":
                    file, _, function = (part.strip() for part in value.partition(":"))
                    yield name, file, function or "*"


def functions(node, prefix=""):
    """The qualified names of all functions in a module's tree."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef)):
            yield prefix + child.name
            yield from functions(child, prefix + child.name + ".<locals>.")
        elif isinstance(child, ast.ClassDef):
            yield from functions(child, prefix + child.name + ".")
        else:
            yield from functions(child, prefix)


def files(path):
    if path.endswith(".py"):
        return [path] if os.path.exists(path) else []
    return [os.path.join(top, n) for top, _, names in os.walk(path) for n in names
            if n.endswith(".py")]


def fits(path, glob):
    for file in files(path):
        if glob == "*":
            return True
        with open(file, encoding="utf-8") as f:
            if any(fnmatch.fnmatchcase(name, glob) for name in functions(ast.parse(f.read()))):
                return True
    return False


def site_packages(name):
    return subprocess.run([environment.interpreter(name), "-c",
                           "import sysconfig; print(sysconfig.get_path('purelib'))"],
                          capture_output=True, text=True, check=True).stdout.strip()


def main():
    counts = {"passed": 0, "failed": 0, "skipped": 0}
    for name in sys.argv[1:]:
        try:
            packages = site_packages(name)
        except wheel.Skip as reason:
            print(f"SKIP names of {name}: {reason}")
            counts["skipped"] += 1
            continue
        for source, file, function in patterns():
            if not os.path.isdir(os.path.join(packages, file.split("/")[0])):
                continue
            whole = file if function == "*" else f"{file}: {function}"
            good = fits(os.path.join(packages, file), function)
            if good == (whole in OLDER):
                print(f"FAIL {source}: {whole}: " + (f"is there, though only {OLDER[whole]}" if good
                                                     else
                                                      f"not in the packages of {name}"))
                counts["failed"] += 1
            else:
                counts["passed"] += 1
    print("%(passed)d passed, %(failed)d failed, %(skipped)d skipped" % counts)
    return 1 if counts["failed"] else 0


sys.exit(main())
