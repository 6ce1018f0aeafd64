"""The package for Debian and the tarball in fresh roots of five systems: from nothing to the first
verdict, by the two commands of the README. Prints the seconds. What cannot be made here is skipped,
with its reason."""

import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time

import pytest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import roots  # noqa: E402

SOURCE = pathlib.Path(os.environ["WHYOOM_SOURCE"])
BUILD = pathlib.Path(os.environ["WHYOOM_BUILD"])
VERSION = re.search(r"version: '([\d.]+)'", (SOURCE / "meson.build").read_text())[1]
MOST = 60  # seconds from nothing to the first verdict
PROGRAM = "x = []\nwhile True: x.append(bytearray(1 << 20))"
# Inside the root. /proc is its own; the limit makes the program fail.
TRY = """
set -e
mount -t proc proc /proc
{install}
whyoom doctor --dir /srv -- python3 || [ $? = 3 ]
cd /srv
ulimit -v 300000
whyoom run -o traces -- python3 -c '{program}' || true
whyoom report traces
"""


def made(*command):
    r = subprocess.run(command, capture_output=True, text=True)
    assert r.returncode == 0, r.stdout + r.stderr
    return pathlib.Path(r.stdout.strip().split("\n")[-1])


@pytest.fixture(scope="session")
def tarball():
    return made(SOURCE / "packaging/tarball.sh", SOURCE, BUILD, VERSION)


@pytest.fixture(scope="session")
def deb(tarball):
    if not shutil.which("dh"):
        pytest.skip("needs debhelper")
    return made(SOURCE / "packaging/deb.sh", tarball, BUILD, VERSION)


def test_lintian(deb):
    if not shutil.which("lintian"):
        pytest.skip("needs lintian")
    r = subprocess.run(["lintian", "--allow-root", "--fail-on", "error,warning", deb],
                       capture_output=True, text=True)
    assert (r.returncode, r.stdout) == (0, ""), r.stdout + r.stderr


def test_the_same_bytes_twice(deb, tarball):
    with tempfile.TemporaryDirectory() as other:
        again = made(SOURCE / "packaging/deb.sh", tarball, other, VERSION)
        assert again.read_bytes() == deb.read_bytes()


def first_verdict(system, install, file):
    """Unpack, install, fail, report: the report, and the seconds of all but unpacking."""
    try:
        archive = roots.archive(system, BUILD)
    except RuntimeError as e:
        pytest.skip(f"{system}: {e}")
    with tempfile.TemporaryDirectory(dir=os.environ.get("WHYOOM_TEST_DIR", "/var/tmp")) as root:
        subprocess.run(["tar", "-xf", archive, "-C", root, "--exclude=./dev/*"], check=True)
        pathlib.Path(root, "dev/null").unlink(missing_ok=True)
        subprocess.run(["mknod", "-m", "666", os.path.join(root, "dev/null"), "c", "1", "3"],
                       check=True)
        shutil.copy(file, os.path.join(root, "srv"))
        script = TRY.format(install=install.format(file=f"/srv/{file.name}"), program=PROGRAM)
        start = time.monotonic()
        r = subprocess.run(["unshare", "-m", "-p", "-f", "chroot", root, "/bin/sh", "-c", script],
                           capture_output=True, text=True, timeout=600,
                           env={"PATH": "/usr/local/bin:/usr/bin:/usr/sbin:/bin:/sbin",
                                "HOME": "/root", "LC_ALL": "C.UTF-8"})
        seconds = time.monotonic() - start
    assert r.returncode == 0, r.stdout + r.stderr
    return r.stdout, seconds


@pytest.mark.parametrize("system", roots.SYSTEMS)
@pytest.mark.parametrize("kind", ["deb", "tarball", "two files"])
def test_first_verdict(system, kind, tarball, deb, capsys):
    install = {
        "deb": "dpkg -i {file}",
        "tarball": "tar -xf {file} -C /opt && ln -s /opt/whyoom-*/bin/whyoom /usr/local/bin/",
        # as packaging/example.Containerfile copies them
        "two files": "tar -xf {file} -C /opt && cp /opt/whyoom-*/bin/whyoom /usr/local/bin/ && "
                     "cp /opt/whyoom-*/lib/libwhyoom.so /usr/local/lib/ && rm -r /opt/whyoom-*",
    }[kind]
    said, seconds = first_verdict(system, install, deb if kind == "deb" else plain(tarball))
    assert "whyoom will work here, with python3" in said
    assert "RLIMIT_AS" in said and "% sure" in said, said
    with capsys.disabled():
        print(f"shown: {system}, {kind}: {seconds:.1f} s from nothing to the first verdict")
    assert seconds < MOST


def plain(tarball):
    """A minimal system has no xz; whoever unpacks the tarball there has unpacked it before."""
    path = tarball.with_suffix("")
    if not path.exists() or path.stat().st_mtime < tarball.stat().st_mtime:
        with open(path, "wb") as f:
            subprocess.run(["xz", "-dc", tarball], stdout=f, check=True)
    return path
