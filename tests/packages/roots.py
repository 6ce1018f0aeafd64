"""Fresh roots of other systems, for test_roots.py: made by mmdebstrap from the mirror that apt uses
here, and kept as an archive in the build directory."""

import os
import shutil
import subprocess

# name: suite, mirror, Python's package
SYSTEMS = {
    "Debian 11": ("bullseye", "http://deb.debian.org/debian"),
    "Debian 12": ("bookworm", "http://deb.debian.org/debian"),
    "Debian 13": ("trixie", "http://deb.debian.org/debian"),
    "Ubuntu 22.04": ("jammy", "http://archive.ubuntu.com/ubuntu"),
    "Ubuntu 24.04": ("noble", "http://archive.ubuntu.com/ubuntu"),
}


def archive(name, folder):
    """A tar file of that system with python3; raises RuntimeError with the reason."""
    suite, mirror = SYSTEMS[name]
    path = os.path.join(folder, suite + ".tar")
    if os.path.exists(path):
        return path
    if os.getuid() != 0 or not shutil.which("mmdebstrap"):
        raise RuntimeError("needs root and mmdebstrap")
    part = path + ".part"
    # Only a system's own keys vouch for it; in a test root that nobody keeps, none will do.
    done = subprocess.run(
        ["mmdebstrap", "--quiet", "--format=tar", "--variant=minbase", "--mode=root",
         "--include=python3-minimal", "--aptopt=Acquire::Languages none",
         "--aptopt=Acquire::Retries 1", "--aptopt=Acquire::http::Timeout 20",
         "--dpkgopt=path-exclude=/usr/share/doc/*", "--dpkgopt=path-exclude=/usr/share/man/*",
         suite, part, f"deb [trusted=yes] {mirror} {suite} main"],
        capture_output=True, text=True)
    if done.returncode:
        lines = [s for s in done.stderr.strip().split("\n") if s.startswith("E:")] or ["failed"]
        raise RuntimeError(f"mmdebstrap: {lines[0]}")
    os.rename(part, path)
    return path
