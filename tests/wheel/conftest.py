"""What the tests of the Python package share: the wheel, built once, and an environment into which
nothing but the wheel is installed. What comes from PyPI is kept in ~/.cache/whyoom-tests.

Needs WHYOOM_SOURCE and WHYOOM_BUILD; the wheel is built in the latter."""

import glob
import os
import shutil
import subprocess
import sys

import pytest

HERE = os.path.dirname(os.path.abspath(__file__))
SOURCE = os.environ["WHYOOM_SOURCE"]
BUILD = os.environ["WHYOOM_BUILD"]
DISK = os.environ.get("WHYOOM_TEST_DIR", "/var/tmp")
sys.path.insert(0, os.path.join(SOURCE, "tests", "torch"))
import wheel as environments  # noqa: E402

# A module that allocates, for the tests of pytest's plugins.
KEPT = """
kept = []
def work():
    return sorted({str(i): i for i in range(100)})
def remember():
    kept.append(bytearray(2000))
def build(n):
    return [bytes(1000) for _ in range(n)]
"""


def pinned(name):
    with open(os.path.join(HERE, name + ".txt")) as f:
        packages = [line.strip() for line in f if line.strip() and not line.startswith("#")]
    return f"package-{name}-{environments.digest(packages)}", packages


def interpreter(name):
    """Of the environment with the packages of NAME.txt."""
    try:
        return environments.environment(pinned(name))
    except environments.Skip as reason:
        pytest.skip(str(reason), allow_module_level=True)


def site_packages(python):
    return subprocess.run([python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"],
                          capture_output=True, text=True, check=True).stdout.strip()


@pytest.fixture(scope="session")
def tools():
    return interpreter("tools")


def build_wheel(tools, where):
    """`pip wheel .`, without the network; the build directory is kept."""
    shutil.rmtree(where, ignore_errors=True)
    beside = os.path.join(BUILD, "package-tools")
    os.makedirs(beside, exist_ok=True)
    # the environment was moved after it was made, so its scripts do not find their Python
    with open(os.path.join(beside, "meson"), "w") as f:
        f.write(f'#!/bin/sh\nexec {tools} -m mesonbuild.mesonmain "$@"\n')
    os.chmod(os.path.join(beside, "meson"), 0o755)
    done = subprocess.run(
        [tools, "-m", "pip", "wheel", SOURCE, "--no-deps", "--no-build-isolation", "--no-index",
         "--config-settings", f"build-dir={BUILD}/wheel", "-w", where],
        capture_output=True, text=True,
        env=dict(os.environ, PATH=beside + ":" + os.environ["PATH"]))
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    path, = glob.glob(os.path.join(where, "*.whl"))
    return path


@pytest.fixture(scope="session")
def wheel(tools):
    return build_wheel(tools, os.path.join(BUILD, "wheels"))


class Installed:
    """A virtual environment with the wheel, and programs that run in it."""

    def __init__(self, folder):
        self.folder = folder
        self.python = os.path.join(folder, "bin", "python")
        self.whyoom = os.path.join(folder, "bin", "whyoom")

    def run(self, *command, cwd=DISK, timeout=120, **variables):
        environment = {k: v for k, v in os.environ.items()
                       if not k.startswith(("WHYOOM", "PYTHON", "LD_PRELOAD", "PYTEST"))}
        environment |= {"PYTHONDONTWRITEBYTECODE": "1", "WHYOOM_CACHE": BUILD + "/symbols"}
        return subprocess.run([str(c) for c in command], cwd=cwd, capture_output=True, text=True,
                              env=environment | variables, timeout=timeout,
                              stdin=subprocess.DEVNULL)

    def script(self, text, *arguments, trace=None, options=(), **more):
        """Run Python text, recorded if there is a directory for the trace."""
        front = [self.whyoom, "run", "-o", trace, *options, "--"] if trace else []
        return self.run(*front, self.python, "-c", text, *arguments, **more)

    def add(self, other):
        """Let it see the packages of another environment, too."""
        with open(os.path.join(site_packages(self.python), "other.pth"), "w") as f:
            f.write(site_packages(other) + "\n")


def install(wheel, name, python=sys.executable):
    folder = os.path.join(BUILD, "package-" + name)
    shutil.rmtree(folder, ignore_errors=True)
    subprocess.run([python, "-m", "venv", folder], check=True, capture_output=True)
    made = Installed(folder)
    done = made.run(made.python, "-m", "pip", "install", "-q", "--no-index", wheel)
    assert done.returncode == 0, done.stderr
    return made


@pytest.fixture(scope="session")
def installed(wheel):
    return install(wheel, "alone")


@pytest.fixture(scope="session")
def beside_pytest(wheel, tools):
    """The wheel in an environment that has pytest."""
    made = install(wheel, "pytest")
    made.add(tools)
    return made


@pytest.fixture
def work():
    folder = environments.tempfile.mkdtemp(prefix="whyoom-package-", dir=DISK)
    yield folder
    shutil.rmtree(folder, ignore_errors=True)
