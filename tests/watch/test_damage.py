"""`whyoom watch` on traces that are packed, bounded, sampled, torn, deleted or replaced: it says
what it can, and goes on with the others."""
import glob
import os
import resource
import shutil
import signal
import subprocess
import sys
import time

import pytest
from lib import PROGRAM, WHYOOM, Server, of, values, watch


def trace_of(folder, pid):
    (found,) = glob.glob(f"{folder}/**/{pid}.*.whyoom", recursive=True)
    return found


def start(folder, *arguments, **variables):
    env = {**os.environ, "WHYOOM_DIR": str(folder), "WHYOOM_QUIET": "1",
           "LD_PRELOAD": os.environ["WHYOOM_SHIM"], **variables}
    return subprocess.Popen(
        [os.path.realpath(sys.executable), "-c", PROGRAM, *arguments], env=env,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (1 << 30, 1 << 30)))


@pytest.fixture
def started():
    all_of_them = []
    yield all_of_them
    for p in all_of_them:
        p.kill()
        p.wait()


def page_of(tmp_path, *arguments):
    watch("--once", "--textfile", tmp_path / "m.prom", *arguments)
    return values((tmp_path / "m.prom").read_text())


def pids(found):
    return {dict(l)["pid"] for (n, l) in found if n == "whyoom_process_info"}


def test_packed(tmp_path, started):
    """A packed trace is of a process that has ended: it is no obstacle in a directory, and alone it
    says what there was."""
    folder = tmp_path / "traces"
    ended = start(folder, "leak", "2")
    assert ended.wait(30) == 0
    trace = trace_of(folder, ended.pid)
    live = of(page_of(tmp_path, trace), "whyoom_memory_live_bytes", space="host")
    subprocess.run([WHYOOM, "pack", folder], check=True, capture_output=True)
    packed = [p for p in glob.glob(f"{folder}/*") if str(ended.pid) in p and p != trace]
    packed = packed[0] if packed else trace
    started.append(start(folder, "steady", "60"))
    time.sleep(1.5)
    got = watch("--once", folder)
    assert f"pid {started[0].pid} " in got.stdout and f"pid {ended.pid} " not in got.stdout
    assert of(page_of(tmp_path, packed), "whyoom_memory_live_bytes", space="host") == live


@pytest.mark.parametrize("variables", [
    {"WHYOOM_MAX_TRACE": "1MiB"}, {"WHYOOM_MAX_DISK": "4MiB"},
    {"WHYOOM_MODE": "sampled", "WHYOOM_SAMPLE_EVERY": "16KiB", "WHYOOM_MAX_TRACE": "1MiB"}],
    ids=["max-trace", "max-disk", "sampled"])
def test_bounded(tmp_path, started, variables):
    """Beyond its bound the trace has large blocks alone, or checkpoints; the watcher has the same
    as a report."""
    counts = "whyoom_events_total", "whyoom_events_dropped_total"
    sampled = "WHYOOM_MODE" in variables
    folder = tmp_path / "traces"
    started.append(start(folder, "leak", "60", **variables))
    time.sleep(1)
    with Server("--interval", "0.3", "--warm-up", "0", folder) as s:
        first = s.values()
        time.sleep(6)
        started[0].send_signal(signal.SIGSTOP)
        looks = of(s.values(), "whyoom_watch_looks_total")
        while of(s.values(), "whyoom_watch_looks_total") < looks + 3:
            time.sleep(0.1)
        last = s.values()
    # What no longer fits is counted; after a checkpoint there are fewer events.
    assert sampled or sum(of(last, name) for name in counts) > sum(of(first, name)
                                                                   for name in counts)
    fresh = page_of(tmp_path, folder)  # all is read at once
    for name in ("whyoom_memory_live_bytes", "whyoom_memory_headroom_bytes"):
        assert of(last, name, space="host") == pytest.approx(of(fresh, name, space="host"),
                                                             rel=0.02), name


def tear(path, how):
    size = os.path.getsize(path)
    with open(path, "r+b") as f:
        if how == "empty":
            f.truncate(0)
        elif how == "short":
            f.truncate(size // 2)
        elif how == "garbage":
            f.seek(4096)
            f.write(os.urandom(size - 4096))
        else:
            f.write(os.urandom(4096))


@pytest.mark.parametrize("how", ["empty", "short", "garbage", "head"])
def test_torn_from_the_start(tmp_path, started, how):
    """A copy that a full disk cut, or that was overwritten, beside a good trace."""
    folder = tmp_path / "traces"
    started.append(start(folder, "steady", "60"))
    time.sleep(1.5)
    torn = folder / "77777.0.whyoom"
    shutil.copy(trace_of(folder, started[0].pid), torn)
    tear(torn, how)
    got = watch("--once", folder)
    assert f"pid {started[0].pid} " in got.stdout
    alone = watch("--once", torn, check=False)
    assert alone.returncode in (0, 1) and (alone.stdout if alone.returncode == 0 else alone.stderr)


@pytest.mark.parametrize("how", ["deleted", "replaced", "garbage", "short", "empty"])
def test_changed_while_watched(tmp_path, started, how):
    """What happens to one file changes nothing for the others; the target does not notice. What is
    torn is a copy that the same process seems to write, since a recorder's own file may not be cut
    under it."""
    folder = tmp_path / "traces"
    started += [start(folder, "steady", "60"), start(folder, "leak", "60")]
    time.sleep(1.5)
    good, other = started
    path = trace_of(folder, other.pid)
    with Server("--interval", "0.2", "--warm-up", "0", folder) as s:
        assert pids(s.values()) == {str(good.pid), str(other.pid)}
        if how == "deleted":
            os.unlink(path)
        elif how == "replaced":
            shutil.copy(trace_of(folder, good.pid), str(path) + ".new")
            os.rename(str(path) + ".new", path)
        else:
            other.send_signal(signal.SIGSTOP)
            tear(path, how)
        looks = of(s.values(), "whyoom_watch_looks_total")
        end = time.monotonic() + 30
        while of(s.values(), "whyoom_watch_looks_total") < looks + 8:
            assert s.process.poll() is None and time.monotonic() < end
            time.sleep(0.1)
        last = s.values()
        assert str(good.pid) in pids(last)
        events = of(last, "whyoom_events_total", pid=str(good.pid))
        time.sleep(1)
        assert of(s.values(), "whyoom_events_total", pid=str(good.pid)) > events
    assert good.poll() is None
    if how in ("deleted", "replaced"):
        assert other.poll() is None


def test_the_directory_goes(tmp_path, started):
    folder = tmp_path / "traces"
    started.append(start(folder, "steady", "60"))
    time.sleep(1.5)
    with subprocess.Popen([WHYOOM, "watch", "--interval", "0.2", folder], stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True) as watcher:
        watcher.stdout.readline()
        shutil.rmtree(folder)
        _, said = watcher.communicate(timeout=20)
    assert watcher.returncode in (0, 1), said
    assert watcher.returncode == 0 or "No such file" in said
    assert started[0].poll() is None


def test_several_watchers(tmp_path, started):
    """They see the same, and leave nothing behind."""
    folder = tmp_path / "traces"
    started.append(start(folder, "leak", "60"))
    time.sleep(1.5)
    with Server("--interval", "0.2", folder) as a, Server("--interval", "0.2", folder) as b:
        time.sleep(1)
        started[0].send_signal(signal.SIGSTOP)
        time.sleep(1.5)
        name = "whyoom_memory_live_bytes"
        assert of(a.values(), name, space="host") == of(b.values(), name, space="host") > 0
    # disk.account is the recorder's.
    assert {n for n in os.listdir(folder) if not n.endswith(".whyoom")} <= {"disk.account"}
