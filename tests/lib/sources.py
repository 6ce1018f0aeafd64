"""sources.py - the files of a checkout, or of an unpacked source."""
import os
import subprocess


def files(top):
    """The paths below `top`, sorted: files that git knows or would add; else all but build
    folders."""
    done = subprocess.run(["git", "ls-files", "-co", "--exclude-standard"], cwd=top, text=True,
                          capture_output=True)
    names = done.stdout.split("\n")[:-1]
    if not os.path.exists(os.path.join(top, ".git")) or done.returncode:
        names = [os.path.relpath(os.path.join(base, name), top)
                 for base, _, found in os.walk(top) for name in found]
        names = [n for n in names if not n.startswith(("build", ".git/")) and "__pycache__"
                 not in n]
    return sorted(n for n in set(names) if os.path.isfile(os.path.join(top, n)))
