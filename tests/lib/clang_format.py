"""clang_format.py - the one version of clang-format that lays out C, from PyPI."""
import fcntl
import os
import subprocess
import sys
import venv

VERSION = "14.0.6"
TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def program():
    """Return its path in build/clang-format-VERSION, where the first caller installs it. Safe when
    several processes call. Exits with a message if PyPI cannot be reached."""
    folder = os.path.join(TOP, "build", "clang-format-" + VERSION)
    path = os.path.join(folder, "bin", "clang-format")
    os.makedirs(os.path.dirname(folder), exist_ok=True)
    with open(folder + ".lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not os.path.exists(path):
            venv.create(folder, with_pip=True, clear=True)
            done = subprocess.run([os.path.join(folder, "bin", "python"), "-m", "pip", "install",
                                   "-q", "--disable-pip-version-check", "clang-format==" + VERSION],
                                  capture_output=True, text=True)
            if done.returncode:
                sys.exit("clang-format cannot be installed: " + done.stderr.strip()[-300:])
    return path
