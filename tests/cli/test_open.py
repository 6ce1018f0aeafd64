"""`whyoom open` writes the page to a private folder and asks the user's browser to show it; `whyoom
run --html` writes it after a failure."""
import os
import pathlib
import resource
import stat
import subprocess
import sys

import pytest

TOP = pathlib.Path(__file__).resolve().parent.parent.parent
TRACE = TOP / "tests" / "golden" / "v1" / "marks"
WHYOOM = os.environ["WHYOOM_EXE"]


@pytest.fixture
def desktop(tmp_path):
    """An xdg-open that notes its argument and its limits."""
    folder = tmp_path / "bin"
    folder.mkdir()
    program = folder / "xdg-open"
    program.write_text(f'#!/bin/sh\nulimit -d >{tmp_path}/limit\nprintf %s "$1" '
                       f">{tmp_path}/opened\necho chatter\nexit ${{ASKED:-0}}\n")
    program.chmod(0o755)
    return tmp_path, dict(os.environ, PATH=f"{folder}:{os.environ['PATH']}", DISPLAY=":0",
                          TMPDIR=str(tmp_path))


def whyoom(*words, env):
    return subprocess.run([WHYOOM, *words], capture_output=True, text=True, timeout=120, env=env)


def test_shows_the_page(desktop):
    folder, env = desktop
    done = whyoom("open", TRACE, env=env)
    assert done.returncode == 0 and not done.stderr, done.stderr
    path = pathlib.Path(done.stdout.rstrip("\n"))
    assert path.name == "report.html" and path.read_text().startswith("<!doctype html>")
    assert (folder / "opened").read_text() == str(path)
    assert (folder / "limit").read_text().strip() == "unlimited" or \
        resource.getrlimit(resource.RLIMIT_DATA)[1] != resource.RLIM_INFINITY
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700


@pytest.mark.parametrize("change", [{"DISPLAY": "", "WAYLAND_DISPLAY": ""}, {"ASKED": "3"}])
def test_without_a_browser(desktop, change):
    folder, env = desktop
    done = whyoom("open", TRACE, env=dict(env, **change))
    assert done.returncode == 0
    assert pathlib.Path(done.stdout.rstrip("\n")).exists()
    assert "no browser" in done.stderr


def test_leaves_nothing_after_an_error(desktop):
    folder, env = desktop
    assert whyoom("open", folder / "none", env=env).returncode == 1
    assert whyoom("open", env=env).returncode == 2
    assert whyoom("open", "--no", TRACE, env=env).returncode == 2
    (folder / "1.0.whyoom").write_text("none")
    assert whyoom("open", folder / "1.0.whyoom", env=env).returncode == 1
    assert not list(folder.glob("whyoom-*"))
    done = whyoom("open", TRACE, env=dict(env, TMPDIR=str(folder / "none")))
    assert done.returncode == 1 and "TMPDIR" in done.stderr


def run(folder, *words, limit):
    program = "x = []\nwhile len(x) < 500: x.append(bytearray(1 << 20))"
    return subprocess.run([WHYOOM, "run", "-o", folder / "trace", *words, "--", sys.executable,
                           "-c", program],
                          capture_output=True, text=True, timeout=120,
                          preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (limit, limit)))


@pytest.mark.parametrize("quiet", [(), ("--quiet",)])
def test_after_a_run_that_failed(tmp_path, quiet):
    page = tmp_path / "page.html"
    done = run(tmp_path, "--html", page, *quiet, limit=300 << 20)
    assert done.returncode == 1
    assert page.read_text().startswith("<!doctype html>")
    assert (f"Page: {page}" in done.stderr) == (not quiet)
    assert ("whyoom: " in done.stderr) == (not quiet)


def test_after_a_run_that_went_well(tmp_path):
    page = tmp_path / "page.html"
    assert run(tmp_path, f"--html={page}", limit=2 << 30).returncode == 0
    assert not page.exists()


def test_where_the_page_cannot_be_written(tmp_path):
    """The verdict and the exit status are as without it."""
    done = run(tmp_path, "--html", tmp_path / "none" / "page.html", limit=300 << 20)
    assert done.returncode == 1
    assert "page.html: No such file" in done.stderr and "sure" in done.stderr
    assert subprocess.run([WHYOOM, "run", "--html"], capture_output=True).returncode == 2
