"""backend.py - meson-python's build backend, and what `pip wheel .` needs beside it: the wheel's
programs and libraries are stripped, what they import of the C library is checked, and then the
wheel is tagged for all systems that have it. The same sources give the same bytes."""

import base64
import csv
import hashlib
import io
import os
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile

import mesonpy
from mesonpy import (build_sdist, get_requires_for_build_sdist,  # noqa: F401
                     get_requires_for_build_wheel)

# Of the oldest C library that whyoom runs on, and of the oldest Python whose stable ABI is used.
NEWEST_GLIBC = (2, 28)
PLATFORM = "manylinux_2_28"
PYTHON = "cp310"
# libwhyoom.so keeps its debug information: shim/meson.build says why.
KEEP_DEBUG = "libwhyoom.so"
MACHINES = {62: "x86_64", 183: "aarch64"}  # e_machine
TIME = (2026, 1, 1, 0, 0, 0)


def is_elf(content):
    return content[:4] == b"\x7fELF"


def tool(name, machine):
    """binutils of the machine that the file is for."""
    cross = f"{machine}-linux-gnu-{name}"
    return cross if shutil.which(cross) else name


def strip(path, machine):
    options = ["--strip-unneeded"]
    if os.path.basename(path) == KEEP_DEBUG:
        options.append("--keep-section=.debug_*")
    subprocess.run([tool("strip", machine), *options, path], check=True)


def check_imports(path, machine):
    """Raises if the file would not load on a system with the oldest C library."""
    said = subprocess.run([tool("objdump", machine), "-p", path], capture_output=True, text=True,
                          check=True).stdout
    for version in re.findall(r"GLIBC_([\d.]+)", said):
        if tuple(map(int, version.split("."))) > NEWEST_GLIBC:
            raise RuntimeError(f"{os.path.basename(path)} needs GLIBC_{version}")


def finish(content, name, folder):
    """The file's content as the wheel shall have it, and its machine (None: for any)."""
    if not is_elf(content):
        return content, None
    machine = MACHINES[int.from_bytes(content[18:20], "little")]
    path = os.path.join(folder, os.path.basename(name))
    with open(path, "wb") as f:
        f.write(content)
    strip(path, machine)
    check_imports(path, machine)
    with open(path, "rb") as f:
        return f.read(), machine


def record_line(name, content):
    digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
    return [name, f"sha256={digest}", len(content)]


def repack(source, target, files, tag):
    """Write the wheel anew: `files` by name, its WHEEL and RECORD by what is in it."""
    with zipfile.ZipFile(source) as old, \
            zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as new:
        record, lines = None, []
        for info in sorted(old.infolist(), key=lambda i: (".dist-info/" in i.filename,
                                                          i.filename)):
            content = files.get(info.filename, b"")
            if info.filename.endswith(".dist-info/RECORD"):
                record = info
                continue
            if info.filename.endswith(".dist-info/WHEEL"):
                content = re.sub(rb"(?m)^Tag: .*$", f"Tag: {tag}".encode(), content)
            write(new, info, content)
            lines.append(record_line(info.filename, content))
        text = io.StringIO()
        csv.writer(text, lineterminator="\n").writerows([*lines, [record.filename, "", ""]])
        write(new, record, text.getvalue().encode())


def write(archive, like, content):
    info = zipfile.ZipInfo(like.filename, TIME)
    # meson-python keeps the mode of the build, which the umask changes
    executable = like.external_attr >> 16 & 0o100 and is_elf(content)
    info.external_attr = (0o100755 if executable else 0o100644) << 16
    info.compress_type = zipfile.ZIP_DEFLATED
    archive.writestr(info, content)


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    with tempfile.TemporaryDirectory(prefix="whyoom-wheel-") as folder:
        name = mesonpy.build_wheel(folder, config_settings, metadata_directory)
        files, machines = {}, set()
        with zipfile.ZipFile(os.path.join(folder, name)) as wheel:
            for entry in wheel.namelist():
                files[entry], machine = finish(wheel.read(entry), entry, folder)
                machines.add(machine)
        machines.discard(None)
        if len(machines) != 1:
            raise RuntimeError(f"the wheel has programs of the machines {machines}")
        tag = f"{PYTHON}-abi3-{PLATFORM}_{machines.pop()}"
        final = "-".join(name.split("-")[:2]) + f"-{tag}.whl"
        repack(os.path.join(folder, name), os.path.join(wheel_directory, final), files, tag)
    print(f"{final}: {os.path.getsize(os.path.join(wheel_directory, final)) / 2**20:.2f} MiB",
          file=sys.stderr)
    return final
