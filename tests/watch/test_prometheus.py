"""A real Prometheus scrapes the watcher while programs come and go: an alert fires and resolves,
and each expression of the dashboard is answered. Go's pprof reads the endpoint. SCRAPE_SECONDS=600
makes the one with targets that start and die last ten minutes."""
import json
import os
import random
import re
import shutil
import socket
import subprocess
import time
import urllib.parse
import urllib.request

import pytest
from lib import Server

PACKAGING = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../packaging")


class Prometheus:
    def __init__(self, programs, folder, port):
        with socket.socket() as s:
            s.bind(("127.0.0.1", 0))
            self.address = "127.0.0.1:%d" % s.getsockname()[1]
        rules = open(os.path.join(PACKAGING, "prometheus/whyoom.rules.yml")).read()
        (folder / "rules.yml").write_text(rules.replace("for: 5m", "for: 2s"))
        (folder / "prometheus.yml").write_text(
            "global: {scrape_interval: 1s, evaluation_interval: 1s}\n"
            "rule_files: [rules.yml]\n"
            "scrape_configs: [{job_name: whyoom, static_configs: "
            f"[{{targets: ['127.0.0.1:{port}']}}]}}]\n")
        self.log = open(folder / "log", "w+")
        self.process = subprocess.Popen(
            [os.path.join(programs, "prometheus"), "--config.file=prometheus.yml",
             "--storage.tsdb.path=data", f"--web.listen-address={self.address}"],
            cwd=folder, stdout=self.log, stderr=self.log)

    def end(self):
        self.process.terminate()
        self.process.wait(30)
        self.log.close()

    def ask(self, path, **query):
        url = f"http://{self.address}/api/v1/{path}?" + urllib.parse.urlencode(query)
        with urllib.request.urlopen(url, timeout=20) as got:
            answer = json.load(got)
        assert answer["status"] == "success", answer
        return answer["data"]

    def until(self, what, seconds):
        """Wait until what() is true of this server."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            try:
                if found := what():
                    return found
            except OSError:
                pass  # it starts
            time.sleep(0.3)
        self.log.flush()
        raise AssertionError((what, open(self.log.name).read()[-2000:]))

    def firing(self, pid):
        return [a["labels"]["alertname"] for a in self.ask("alerts")["alerts"]
                if a["state"] == "firing" and a["labels"]["pid"] == str(pid)]


@pytest.fixture
def scraped(programs, promtool, tmp_path):
    programs.folder.mkdir()
    with Server("--interval", "0.5", "--warm-up", "2", programs.folder) as s:
        (tmp_path / "prometheus").mkdir()
        p = Prometheus(promtool, tmp_path / "prometheus", s.port)
        p.watcher = s
        yield p
        p.end()


def test_an_alert_fires_and_resolves(programs, scraped):
    steady = programs.start("steady", "200")
    target = scraped.until(lambda: [t for t in scraped.ask("targets")["activeTargets"]
                                    if t["health"] != "unknown"], 60)[0]
    assert target["health"] == "up" and not target["lastError"], target
    leaks = programs.start("leak", "200", limit=120 << 20)
    names = scraped.until(lambda: scraped.firing(leaks.pid), 90)
    assert names == ["WhyoomMemoryRunsOut"]
    (alert,) = [a for a in scraped.ask("alerts")["alerts"] if a["state"] == "firing"]
    assert "remember (<string>:" in alert["annotations"]["description"], alert
    leaks.kill()
    scraped.until(lambda: not scraped.firing(leaks.pid), 30)
    assert not scraped.firing(steady.pid) and steady.poll() is None
    # No scrape failed meanwhile.
    got = scraped.ask("query", query="min_over_time(up[2m])")["result"]
    assert [r["value"][1] for r in got] == ["1"]


def test_targets_start_and_die(programs, scraped):
    """For 40 seconds, or as many as SCRAPE_SECONDS says: leaks that run out of memory or are
    killed, steady ones that end by themselves. Each is scraped, each alert resolves, no scrape
    fails."""
    seconds = float(os.environ.get("SCRAPE_SECONDS", "40"))
    chance = random.Random(25)
    running, pids, leaks = [], set(), set()
    fired = set()
    scraped.until(lambda: [t for t in scraped.ask("targets")["activeTargets"]
                           if t["health"] == "up"], 60)
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        while len(running) < 4:
            leak = chance.random() < 0.5
            started = programs.start("leak" if leak else "steady", str(chance.uniform(5, 30)),
                                     limit=100 << 20 if leak else 1 << 30)
            running.append((started, time.monotonic() + chance.uniform(6, 60)))
            pids.add(started.pid)
            if leak:
                leaks.add(started.pid)
        time.sleep(0.5)
        fired |= firing(scraped)
        for process, until in running:
            if time.monotonic() > until:
                process.kill()
        running = [(p, u) for p, u in running if p.poll() is None]
    for process, _ in running:
        process.kill()
    scraped.until(lambda: not firing(scraped), 60)
    assert fired and fired <= leaks, (fired, leaks)
    span = f"[{int(seconds) + 90}s]"
    (up,) = scraped.ask("query", query=f"min_over_time(up{span})")["result"]
    assert up["value"][1] == "1"
    got = scraped.ask("query", query=f"max_over_time(whyoom_process_info{span})")["result"]
    seen = {int(r["metric"]["pid"]) for r in got}
    # What lived for less than a scrape or two may be missed.
    assert seen <= pids and len(pids - seen) <= len(pids) // 10, (pids - seen, len(pids))
    (memory,) = scraped.ask("query", query=f"max_over_time(whyoom_watch_resident_bytes{span})")[
        "result"]
    (cpu,) = scraped.ask("query", query=f"increase(whyoom_watch_cpu_seconds_total{span})")[
        "result"]
    print(f"{len(pids)} targets in {seconds:.0f} s, {len(fired)} of {len(leaks)} leaks alarmed; "
          f"the watcher: {float(memory['value'][1]) / 2**20:.1f} MiB resident at most, "
          f"{float(cpu['value'][1]):.1f} s of a core")
    scraped.log.flush()
    with open(scraped.log.name) as f:
        log = f.read()
    assert not [line for line in log.splitlines()
                if re.search("duplicate|out.of.order|level=error", line)]


def firing(scraped):
    """The pids of forecasts that fire. A refusal stays told for five minutes by its rule."""
    return {int(a["labels"]["pid"]) for a in scraped.ask("alerts")["alerts"]
            if a["state"] == "firing" and a["labels"]["alertname"] == "WhyoomMemoryRunsOut"}


def expressions():
    with open(os.path.join(PACKAGING, "grafana/whyoom.json")) as f:
        board = json.load(f)
    for panel in board["panels"]:
        for target in panel["targets"]:
            yield panel["title"], target["expr"]


def test_the_dashboard_is_answered(programs, scraped):
    programs.start("leak", "200")
    scraped.until(lambda: scraped.ask("query", query="whyoom_site_growth_bytes_per_second > 0")
                  ["result"], 60)
    time.sleep(3)  # a rate needs two samples
    empty = set()
    for title, text in expressions():
        for name, value in (("$__range", "1m"), ("$__rate_interval", "10s"), ("$instance", ".*"),
                            ("$pid", ".*")):
            text = text.replace(name, value)
        assert "$" not in text
        if not scraped.ask("query", query=text)["result"]:
            empty.add(title)
    # What only devices, marks, cgroups of version 2 and verdicts have.
    assert empty <= {"Fragmentation of devices", "Holes between PyTorch's blocks", "Live",
                     "Requests in flight", "Waiting for memory", "Reclaimed",
                     "Held back at memory.high", "What memory is for", "Likely causes"}, empty


def test_go_reads_the_endpoint(programs, tmp_path):
    if not shutil.which("go"):
        pytest.skip("go is not installed")
    programs.start("leak", "60")
    time.sleep(3)
    home = {**os.environ, "HOME": str(tmp_path), "PPROF_TMPDIR": str(tmp_path)}
    with Server(programs.folder) as s:
        for path, index in (("heap", "inuse_space"), ("allocs", "alloc_space")):
            got = subprocess.run(["go", "tool", "pprof", "-top", "-nodecount=2000",
                                  f"http://127.0.0.1:{s.port}/debug/pprof/{path}"], env=home,
                                 capture_output=True, text=True, timeout=120)
            assert got.returncode == 0, got.stderr
            assert f"Type: {index}" in got.stdout and "remember" in got.stdout
            assert re.search(r"of [\d.]+\w?B total", got.stdout)
