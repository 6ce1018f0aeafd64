"""A report on a process that still runs says so, and where its memory is going: by the forecast of
`whyoom watch`, in text, JSON and on the page."""
import json
import os
import re
import signal
import subprocess
import time

import pytest
from lib import WHYOOM, of, values, watch

jsonschema = pytest.importorskip("jsonschema")


def report(*arguments, check=True):
    got = subprocess.run([WHYOOM, "report", *map(str, arguments)], capture_output=True, text=True,
                         timeout=100)
    assert not check or got.returncode == 0, got.stderr
    return got


def as_json(*arguments):
    found = json.loads(report("--format", "json", *arguments).stdout)
    with open(os.environ["REPORT_SCHEMA"], encoding="utf-8") as f:
        jsonschema.validate(found, json.load(f))
    return found


def host(found):
    (space,) = [s for s in found["prospect"]["spaces"] if s["space"] == "host"]
    return space


def attributes(page):
    (tag,) = re.findall(r'<p class="prospect[^>]*>', page)
    return dict(re.findall(r'data-(\w+)="([^"]*)"', tag)), tag


def test_growth(programs, tmp_path):
    leaks = programs.start("leak", "60")
    time.sleep(8)
    leaks.send_signal(signal.SIGSTOP)  # all see the same
    time.sleep(1)
    watch("--once", "--warm-up", 0, "--textfile", tmp_path / "m.prom", programs.folder)
    told = values((tmp_path / "m.prom").read_text())
    found = as_json("--warm-up", 0, programs.folder)
    (process,) = found["processes"]
    assert process["end"] == {"how": "unknown", "code": None, "running": True}
    space = host(found)
    assert space["state"] == "grows"
    assert 0 < space["soonest_seconds"] < space["expected_seconds"] < space["latest_seconds"]
    # The forecast of watch, which took the same look but for the last moments.
    assert space["expected_seconds"] == pytest.approx(
        of(told, "whyoom_time_to_failure_seconds", space="host", bound="expected"), rel=0.1)
    assert space["left_bytes"] == pytest.approx(
        of(told, "whyoom_memory_headroom_bytes", space="host"), rel=0.02)
    # In words, by its pid, too.
    for what in (programs.folder, leaks.pid):
        text = report("--warm-up", 0, what).stdout
        assert "still running" in text
        assert re.search(r"host: full in \S+ \S+.*\(.* to .*\) at \S+ MiB/s, \S+ \wiB are\s+left",
                         text), text
    # On the page, for its script.
    page = report("--warm-up", 0, "--format", "html", leaks.pid).stdout
    data, tag = attributes(page)
    assert data["space"] == "host"
    assert int(data["live"]) == space["live_bytes"] and int(data["left"]) == space["left_bytes"]
    assert float(data["soonest"]) < float(data["expected"]) < float(data["latest"])
    assert "Still running. host: full in " in page
    assert ("alarm" in tag) == space["alarm"]


def test_silence_without_a_trend(programs):
    programs.start("steady", "60")
    time.sleep(6)
    found = as_json("--warm-up", 0, programs.folder)
    space = host(found)
    assert space["state"] == "steady" and not space["alarm"]
    assert space["expected_seconds"] is None and space["bytes_per_second"] == 0
    text = report("--warm-up", 0, programs.folder).stdout
    assert "still running" in text and "full in" not in text
    assert 'class="prospect' not in report("--warm-up", 0, "--format", "html",
                                           programs.folder).stdout


def test_the_young_and_the_dead(programs):
    leaks = programs.start("leak", "60")
    time.sleep(5)
    found = as_json(programs.folder)  # the usual warm-up is a minute
    assert host(found)["state"] == "unknown" and host(found)["bytes_per_second"] is None
    assert "full in" not in report(programs.folder).stdout
    leaks.kill()
    leaks.wait()
    found = as_json("--warm-up", 0, programs.folder)
    assert found["prospect"] is None and not found["processes"][0]["end"]["running"]
    assert "full in" not in report("--warm-up", 0, programs.folder).stdout


def test_wrong_usage(tmp_path):
    got = report(os.getpid(), check=False)
    assert got.returncode == 1 and "is not recorded" in got.stderr
    got = report("999999999", check=False)
    assert got.returncode == 1 and "there is none" in got.stderr
    for value in ("x", "-1", "inf", ""):
        got = report("--warm-up", value, tmp_path, check=False)
        assert got.returncode == 2 and "number of seconds" in got.stderr
