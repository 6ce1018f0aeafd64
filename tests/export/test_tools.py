"""The exports in the tools that they are for, where these are large: Go's pprof and Prometheus."""

import json
import os
import re
import shutil
import subprocess

import pytest
from lib import export, golden, read_pprof, sites

TRACES = [trace for trace in golden() if os.path.basename(trace) in ("order", "spaces", "sampled")]


def need(tool):
    if not shutil.which(tool):
        pytest.skip(f"{tool} is not installed")


def run(*words, **more):
    done = subprocess.run(words, capture_output=True, text=True, timeout=120, **more)
    assert done.returncode == 0, (words, done.stderr)
    return done.stdout


@pytest.fixture
def home(tmp_path):
    """pprof keeps settings and copies of profiles in its home."""
    return {**os.environ, "HOME": str(tmp_path), "PPROF_TMPDIR": str(tmp_path), "TZ": "UTC"}


@pytest.mark.parametrize("trace", TRACES, ids=os.path.basename)
def test_pprof(trace, tmp_path, home):
    need("go")
    path = tmp_path / "heap.pb.gz"
    space = "host" if sites(trace, "host", "end") and "spaces" not in trace else "cuda:0"
    path.write_bytes(export(trace, "pprof", "--space", space, "--at", "end"))
    expected = sites(trace, space, "end")
    for index, measure in (("alloc_space", "total"), ("inuse_space", "live"),
                           ("peak_space", "peak"), ("alloc_objects", "count")):
        said = run("go", "tool", "pprof", "-top", "-unit=B", "-nodecount=1000", "-nodefraction=0",
                   "-edgefraction=0", f"-sample_index={index}", path, env=home)
        total = re.search(r"of (\d+)B? total", said)
        assert int(total[1]) == expected[measure], (index, said)
    raw = run("go", "tool", "pprof", "-raw", path, env=home)
    _, samples = read_pprof(path.read_bytes())
    assert raw.count("space:[") == len(samples) and "whyoom" in raw
    assert space in run("go", "tool", "pprof", "-tags", path, env=home)
    # Compared with itself nothing is left.
    same = run("go", "tool", "pprof", "-top", f"-diff_base={path}", path, env=home)
    assert "Showing nodes accounting for 0" in same


@pytest.mark.parametrize("trace", TRACES, ids=os.path.basename)
def test_prometheus(trace, tmp_path):
    need("promtool")
    # Its linter wants help for `X_total` and `X`; what it cannot parse it says and fails for.
    done = subprocess.run(["promtool", "check", "metrics"], capture_output=True, text=True,
                          input=export(trace, "openmetrics").decode())
    assert "error while linting" not in done.stderr + done.stdout, done
    history = tmp_path / "history"
    history.write_bytes(export(trace, "openmetrics", "--history"))
    run("promtool", "tsdb", "create-blocks-from", "openmetrics", history, tmp_path / "data")
    blocks = [d for d in os.listdir(tmp_path / "data") if (tmp_path / "data" / d).is_dir()]
    metas = [json.loads((tmp_path / "data" / b / "meta.json").read_text()) for b in blocks]
    lines = [x for x in history.read_text().splitlines() if not x.startswith("#")]
    assert sum(m["stats"]["numSamples"] for m in metas) == len(lines)
