#!/usr/bin/env python3
"""One word for one thing: no identifier of the shim or the analyzer and no document uses a retired
word (retired.txt), documents name only source files that exist, and no two source files of one half
have the same base name unless twins.txt says how they differ."""
import os
import re
import sys

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "lib"))
import sources  # noqa: E402

TOP = sys.argv[1]
HALVES = ("shim", "analyzer")
NOT_CODE = re.compile(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"', re.S)
# In documents: a file with its folder or without. Not ours are those after "cpython/" and in URLs.
FILE = re.compile(r"(?<![\w/.:-])((?:[a-z_]+/)*[a-z_0-9]+\.(?:c|h|S|def))\b(?!\()")
FOREIGN = re.compile(
    r"cpython/|\b(main|broken|mended|prog|code|frameobject|prim|nvml|nvToolsExt)\.[ch]"
                     r"|pycore_\w+\.h|internal/")
passed, problems = 0, []


def read(name):
    with open(os.path.join(TOP, name), errors="replace") as f:
        return f.read()


def table(name):
    with open(os.path.join(HERE, name)) as f:
        lines = [line.split("#")[0].strip() for line in f]
    return [re.split(r"\s{2,}", line, maxsplit=2) for line in lines if line]


def check(name, found):
    global passed
    passed += not found
    problems.extend(f"{name}:{n}: {text}" for n, text in found)


def retired(name, rules):
    """Identifiers of a source that are retired words."""
    text = NOT_CODE.sub(lambda m: "\n" * m[0].count("\n"), read(name))
    for n, line in enumerate(text.split("\n"), 1):
        if "#include" in line:
            continue
        for word in re.findall(r"[A-Za-z_]\w*", line):
            for rule, instead in rules:
                if rule.fullmatch(word):
                    yield n, f"{word} is retired; say {instead}"


def document(name, rules, known):
    for n, line in enumerate(read(name).split("\n"), 1):
        for rule, instead in rules:
            for word in rule.finditer(line):
                yield n, f'"{word[0]}" is retired; say {instead}'
        if line.startswith("    "):  # what a program prints
            continue
        for file in FILE.findall(line):
            if not FOREIGN.search(file) and not any(k == file or k.endswith("/" + file)
                                                    for k in known):
                yield n, f"there is no {file}"


def twins(half, names, allowed):
    """Files of one base name. A subcommand's and its report's files, and the one named as its
    folder, say the difference by the folder."""
    folders = {}
    for name in names:
        folder, base = os.path.split(name)
        folders.setdefault(base, []).append(folder)
    for base, found in sorted(folders.items()):
        stem = base.split(".")[0]
        left = [f for f in found if not f.startswith(("analyzer/cmd", "analyzer/report"))
                and os.path.basename(f) != stem]
        if len(found) > 1 and len(left) > 1 and stem not in allowed:
            yield 0, f"{half} has {base} in {', '.join(found)}: rename, or say why in twins.txt"


def main():
    names = sources.files(TOP)
    rules = {half: [(re.compile(word), instead) for h, word, instead in table("retired.txt")
                    if h == half]
             for half in HALVES + ("docs",)}
    allowed = {(half, stem) for half, stem, _ in table("twins.txt")}
    for half in HALVES:
        own = [n for n in names if n.startswith(half + "/") and n.endswith((".c", ".h", ".S"))]
        for name in own:
            check(name, list(retired(name, rules[half])))
        check(half, list(twins(half, own, {stem for h, stem in allowed if h == half})))
    known = set(names)
    for name in names:
        if name.endswith(".md") and (name.startswith("docs/") or name == "README.md"):
            check(name, list(document(name, rules["docs"], known)))
    print("\n".join(problems + [f"{passed} passed, {len(problems)} failed"]))
    return bool(problems)


sys.exit(main())
