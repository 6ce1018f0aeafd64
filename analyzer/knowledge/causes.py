#!/usr/bin/env python3
"""causes.py IN OUT: copies IN with the rows of causes.def put where IN says @CAUSES@: as JSON
strings, or as items of a list where the line of a man page is only that."""
import os
import re
import sys

DEF = os.path.join(os.path.dirname(os.path.abspath(__file__)), "causes.def")


def rows():
    """(name, claim) of each cause, in order."""
    with open(DEF) as f:
        text = f.read()
    found = re.findall(r'^CAUSE\(\w+, "([^"]+)",[^"]*(?:"[^"]*"|NULL),\s*"([^"]+)"\)', text, re.M)
    assert len(found) == len(re.findall(r"^CAUSE\(", text,
                                        re.M)), "a row of causes.def is not as the others"
    return found


def names():
    return tuple(name for name, _ in rows())


def filled(path):
    """The text of that file, with the causes."""
    with open(path) as f:
        text = f.read()
    text = re.sub(r"^@CAUSES@\n", lambda _: "".join(f".It Cm {n}\n{c}\n" for n, c in rows()), text,
                  flags=re.M)
    return text.replace("@CAUSES@", ", ".join(f'"{n}"' for n in names()))


if __name__ == "__main__":
    with open(sys.argv[2], "w") as f:
        f.write(filled(sys.argv[1]))
