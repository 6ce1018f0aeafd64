"""`whyoom watch --on-alert` and `--verdict-every`: each change of a state is told once, a report
lies beside the trace of a process at risk, and nothing of it delays the watcher."""
import json
import os
import re
import signal
import subprocess
import time

import pytest
from lib import WHYOOM, Server, of, until, watch

TELL = ('printf "%s %s %s %s\\n" "$WHYOOM_ALERT_PID" "$WHYOOM_ALERT_BEFORE" '
        '"$WHYOOM_ALERT_STATE" "$WHYOOM_ALERT_TEXT" >> "$TOLD"')


@pytest.fixture
def watching(tmp_path):
    """Start a watcher whose command can write to $TOLD; a function to read what it wrote."""
    started = []

    def start(*arguments, **more):
        env = {**os.environ, "TOLD": str(tmp_path / "told"), "TMPDIR": str(tmp_path)}
        started.append(subprocess.Popen(
            [WHYOOM, "watch", "--interval", "0.3", "--warm-up", "2", *map(str, arguments)],
            env=env, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, **more))
        return started[-1]

    def told():
        path = tmp_path / "told"
        return path.read_text().splitlines() if path.exists() else []

    start.told = told
    yield start
    for p in started:
        p.kill()
        p.wait()
        p.stderr.close()


def wait_until(what):
    got = until(what, every=0.2)
    assert got, what
    return got


def states(lines, pid):
    return [line.split()[1:3] for line in lines if line.startswith(f"{pid} ")]


def test_each_change_is_told_once(programs, watching):
    programs.folder.mkdir()
    leaks = programs.start("leak", "200", limit=90 << 20)
    steady = programs.start("steady", "200")
    watcher = watching("--on-alert", TELL, programs.folder)
    wait_until(lambda: any("at-risk" in line for line in watching.told()))
    leaks.wait(60)  # it runs out of memory
    wait_until(lambda: any(line.startswith(f"{leaks.pid} ") and " ended" in line
                           for line in watching.told()))
    steady.kill()
    wait_until(lambda: any(line.startswith(f"{steady.pid} ") for line in watching.told()))
    watcher.send_signal(signal.SIGTERM)
    assert watcher.wait(10) == 0
    lines = watching.told()
    changes = states(lines, leaks.pid)
    # A chain from "ok" to the end, each step to another state.
    assert changes[0][0] == "ok" and changes[-1][1] == "ended", changes
    assert all(a[1] == b[0] for a, b in zip(changes, changes[1:])), changes
    assert all(before != after for before, after in changes) and len(changes) < 9, changes
    risk = next(line for line in lines if " at-risk " in line)
    assert "full in" in risk and "remember (<string>:" in risk, risk
    assert states(lines, steady.pid)[-1][1] == "ended"


def test_the_facts(programs, watching, tmp_path):
    programs.folder.mkdir()
    leaks = programs.start("leak", "200", limit=120 << 20)
    watching("--on-alert", 'env > "$TOLD.tmp"; [ "$WHYOOM_ALERT_STATE" = at-risk ] && '
             'mv "$TOLD.tmp" "$TOLD"', programs.folder)
    wait_until(watching.told)
    facts = dict(line.split("=", 1) for line in watching.told()
                 if line.startswith("WHYOOM_ALERT_"))
    facts = {k[len("WHYOOM_ALERT_"):]: v for k, v in facts.items()}
    assert facts["PID"] == str(leaks.pid) and facts["TRACE"].endswith(".whyoom")
    assert facts["SPACE"] == "host" and facts["LIMIT"] == "address space"
    assert int(facts["LIMIT_BYTES"]) == 120 << 20
    assert 0 < int(facts["HEADROOM_BYTES"]) < 120 << 20
    assert 0 < int(facts["SOONEST"]) <= int(facts["SECONDS"]) <= int(facts["LATEST"])
    assert int(facts["BYTES_PER_SECOND"]) > 100_000
    assert facts["FUNCTION"] == "remember" and facts["LINE"].isdigit()
    assert facts["COMMAND"].startswith("python3")


def test_a_command_that_hangs_delays_nothing(programs, watching, tmp_path):
    """It and its children are killed with the watcher; looks go on meanwhile."""
    programs.folder.mkdir()
    programs.start("leak", "200", limit=120 << 20)
    watcher = watching("--textfile", tmp_path / "page.prom", "--on-alert",
                       'echo $$ >> "$TOLD"; sleep 1000 & sleep 1000', programs.folder)
    (pid,) = wait_until(watching.told)
    time.sleep(0.5)
    changed = {os.stat(tmp_path / "page.prom").st_mtime_ns}
    for _ in range(20):
        time.sleep(0.2)
        changed.add(os.stat(tmp_path / "page.prom").st_mtime_ns)
    assert len(changed) > 4 and len(watching.told()) == 1
    assert os.getpgid(int(pid)) == int(pid)
    watcher.send_signal(signal.SIGTERM)
    assert watcher.wait(10) == 0
    with pytest.raises(ProcessLookupError):
        for _ in range(50):
            os.killpg(int(pid), 0)
            time.sleep(0.1)


def test_a_command_that_fails_is_said(programs, watching):
    programs.folder.mkdir()
    programs.start("steady", "3")
    watcher = watching("--on-alert", "exit 7", programs.folder)
    assert "--on-alert ended with status 7" in watcher.stderr.readline()
    assert watcher.poll() is None


def test_a_report_lies_beside_the_trace(programs):
    programs.folder.mkdir()
    leaks = programs.start("leak", "200", limit=150 << 20)
    steady = programs.start("steady", "200")
    with Server("--interval", "0.3", "--warm-up", "2", "--verdict-every", "1",
                programs.folder) as s:
        def verdict():
            found = [(dict(labels), v) for (name, labels), v in s.values().items()
                     if name == "whyoom_verdict_info"]
            return found and found[0]

        labels, one = wait_until(verdict)
        assert one == 1 and labels["cause"] == "leak" and labels["function"] == "remember"
        assert labels["pid"] == str(leaks.pid) and labels["line"].isdigit()
        sure = of(s.values(), "whyoom_verdict_confidence_ratio", pid=str(leaks.pid))
        assert 0.5 < sure <= 1
        text = s.ask("/")[2].decode()
        assert re.search(r"likely leak \(\d+ % sure\) in remember \(<string>:", text), text
        (report,) = wait_until(lambda: list(programs.folder.glob("*.report.html")))
        assert report.read_text().rstrip().endswith("</html>")
        report = report.with_suffix(".json")
        assert str(leaks.pid) in report.name
        told = json.loads(report.read_text())
        assert str(leaks.pid) in json.dumps(told)
        assert not [n for n in os.listdir(programs.folder) if n.startswith(".")]
        # They cost 2 % of a core at most, so there is no second one now.
        first = report.stat().st_mtime_ns
        time.sleep(3)
        assert report.stat().st_mtime_ns == first
    assert steady.poll() is None and leaks.poll() is None


def test_wrong_usage(tmp_path):
    for arguments, words in ((["--once", "--on-alert", "true", tmp_path], "no --once"),
                             (["--once", "--verdict-every", "60", tmp_path], "no --once"),
                             (["--verdict-every", "0", tmp_path], "1 second at least"),
                             (["--verdict-every", "x", tmp_path], "number of seconds")):
        got = watch(*arguments, check=False)
        assert got.returncode == 2 and words in got.stderr, got.stderr
