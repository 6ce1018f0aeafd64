#!/usr/bin/env python3
"""Runs suites and adds up their runners' results.

A suite is a folder of tests/, run by `meson test --suite NAME` in a build directory, or a script.
Each test is a program whose output tells its number of cases: cmocka's or unittest's summary,
pytest's closing line, or a plain "N passed, N failed[, N skipped]". A silent test counts as one
case, by its exit status (77: skipped). Skips are named with their reasons: lines
"SKIP name: reason", or pytest's own. Lines "shown: ..." are repeated.

Tests of a suite run side by side. One that fails runs once more, alone: if it passes then, it
counts as passed, and a line "unsteady: ..." names it with what it said at first. Such a line is a
fault to be mended, in the test or in what it tests; it does not stop everything else."""
import json
import os
import re
import signal
import subprocess
import sys
import time

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

# build directory: meson's options
BUILDS = {
    "default": [],
    "sanitize": ["-Db_sanitize=address,undefined", "-Db_lundef=false"],
    "clang": [],
    "fuzz": ["-Dfuzz=true", "-Db_sanitize=address,undefined", "-Db_lundef=false"],
}
CLANG = {"CC": "clang", "CXX": "clang++"}
ENVIRONMENT = {"clang": CLANG, "fuzz": CLANG}
# name, build directory, meson suites or a script with its arguments, in the default set,
# description
SUITES = [
    ("lint", "default", ["lint"], True, "layers, exports, imports, layout, names"),
    ("recipes", "default", ["tests/recipes/run"], True,
     "each recipe of CONTRIBUTING.md, followed on a copy of the tree"),
    ("unit", "default", ["unit"], True, "unit tests of both halves"),
    ("sanitize", "sanitize", ["unit"], True, "the analyzer's under ASan and UBSan"),
    ("clang", "clang", ["unit"], True, "the same, built with clang"),
    ("fuzz-quick", "fuzz", ["tests/fuzz/run same"], True,
     "hostile traces, logs, ELF and knowledge files: the same inputs each time, about a minute"),
    ("python", "default", ["python"], True, "Python frames against traceback"),
    ("preload", "default", ["preload"], True, "real processes under the preload"),
    ("cuda", "default", ["cuda"], True, "CUDA's calls on a stand-in driver, by every route"),
    ("simgpu", "default", ["simgpu"], True, "the simulated GPU"),
    ("torch", "default", ["torch"], True, "PyTorch's wheel on it: 600 MB from PyPI, kept in "
     "~/.cache"),
    ("golden", "default", ["golden"], True, "golden traces and the second reader"),
    ("cli", "default", ["cli"], True, "the command line"),
    ("export", "default", ["export"], True, "exports in their own readers, sums as in the report"),
    ("page", "default", ["page"], True, "a report's page, in Chromium"),
    ("watch", "default", ["watch"], True,
     "reading on in traces that are being written; what watch says of running programs"),
    ("damage", "default", ["damage"], True,
     "damaged traces say so, or tell the same as whole ones"),
    ("packages", "default", ["packages"], True, "what is installed: the tarball; manifests for "
     "systemd and Kubernetes"),
    ("examples", "default", ["examples"], True, "what newcomers copy from, broken and mended"),
    ("aarch64", "default", ["aarch64"], True, "cross-built, run under qemu-user"),
    ("harm", "default", ["harm"], True, "real programs with and without the preload"),
    ("wheel", "default", ["wheel"], True, "the wheel: what it holds and needs, marks, reports, "
     "pytest's plugin"),
    ("diff", "default", ["diff"], True,
     "pairs of runs: planted regressions are named first, equal runs show no change"),
    ("attach-verdicts", "default", ["attach-verdicts"], True,
     "verdicts on three programs that are attached to on their way to a leak's end"),
    ("attach", "default", ["attach"], True,
     "running programs are attached to, and are none the worse for it"),
    ("scenarios", "default", ["scenarios"], True,
     "programs whose cause is known, a case or two of each; packages from PyPI are kept in "
     "~/.cache"),
    ("compose", "default", ["tests/scenarios/compose/run --no-judges --seed fixed --count 60 "
                            "--gates"], True,
     "programs composed by a fixed seed: the least shares that verdicts must be right in"),
    ("consistent", "default", ["tests/scenarios/compose/run --no-judges --pairs --seed fixed "
                               "--count 8 --gates"], True,
     "the same with one factor changed at a time: the least share of equal answers"),
    ("cgroup2-few", "default", ["tests/cgroup2/run --few"], True,
     "three situations on a kernel with cgroup v2, in QEMU"),
    ("report", "default", ["bench"], True, "what one more event costs the recorder and the report, "
     "in instructions"),
    ("fuzz", "fuzz", ["tests/fuzz/run 600"], False, "others, for ten minutes"),
    ("harm-all", "default", ["harm-all"], False,
     "the rest of them, where they are installed; tests/harm/all installs, runs and writes the "
     "table"),
    ("python-all", "default", ["python-all"], False, "every Python version that can be had"),
    ("packages-all", "default", ["packages-all"], False,
     "packages in fresh roots of five systems; a release made twice"),
    ("damage-all", "default", ["damage-all"], False, "2,000 damages, by another seed each time"),
    ("mutations", "default", ["tests/cuda/mutate.py"], False,
     "the cares of the CUDA hooks, taken out one by one"),
    ("cgroup2", "default", ["tests/cgroup2/run"], False, "all of its situations"),
    ("pod-few", "default", ["tests/pod/run --few"], False,
     "two pods of the manifests on that kernel, whose servers are killed"),
    ("pod", "default", ["tests/pod/run"], False, "twenty of them, of all causes"),
    ("scenarios-all", "default", ["scenarios-all"], False,
     "each program at each of its limits, and shuffled"),
    ("torch-all", "default", ["torch-all"], False, "PyTorch 2.4 to the newest, 4 GB on disk"),
    ("gpu", "default", ["tests/gpu/run"], False, "a machine with a real GPU: docs/gpu.md"),
    ("wheel-all", "default", ["wheel-all"], False,
     "the wheel with FastAPI, pandas, other Pythons; beside pytest-memray"),
    ("export-all", "default", ["export-all"], False,
     "exports in Go's pprof, Prometheus' tools, Perfetto's page, pyarrow and DuckDB"),
    ("attach-verdicts-all", "default", ["attach-verdicts-all"], False,
     "the same on forty programs, of which 95 of 100 must be right"),
    ("fleet-spark", "default", ["fleet-spark"], False,
     "a fleet's runs judged and asked on Spark, 0.7 GB on disk: speed, and processes that die"),
    ("watch-all", "default", ["watch-all"], False,
     "a real Prometheus scrapes the watcher, Go's pprof reads it"),
    ("attach-all", "default", ["attach-all"], False,
     "500 attaches to C, C++, Python, Node and Redis under load"),
    ("vllm", "default", ["vllm"], False, "vLLM on the simulated GPU, 3 GB on disk"),
    ("bench", "default", ["tests/bench/run"], False, "speed against heaptrack and memray"),
]
# Suites whose tests run side by side when they are chosen together: nothing in them depends on how
# busy the machine is, and much of them waits. The others each have the machine alone.
BESIDE = {"python", "preload", "cuda", "simgpu", "torch", "golden", "cli", "export", "page",
          "watch", "damage", "packages", "examples", "aarch64", "harm"}


def say(*words):
    print(*words, flush=True)


def build(name):
    script = '. tests/lib/setup.sh; mkdir -p "$top/build"; build "$@"'
    environment = dict(os.environ, **ENVIRONMENT.get(name, {}))
    started = time.time()
    done = subprocess.run(["bash", "-euo", "pipefail", "-c", script, "build", name] + BUILDS[name],
                          cwd=TOP, env=environment)
    if done.returncode:
        return False
    say(f"  built build/{name} in {time.time() - started:.0f} s")
    return True


PLAIN = re.compile(r"^(?:\w+: )?(\d+) passed, (\d+) failed(?:, (\d+) skipped)?$", re.M)
CMOCKA_RUN = re.compile(r"^\[==========\] (?:\S+: )?(\d+) test\(s\) run\.$", re.M)
CMOCKA_FAILED = re.compile(r"^\[  FAILED  \] (?:\S+: )?(\d+) test\(s\), listed below", re.M)
CMOCKA_SKIPPED = re.compile(r"^\[  SKIPPED \] (?:\S+: )?(\d+) test\(s\), listed below", re.M)
PYTEST = re.compile(r"^=*\s*((?:\d+ \w+(?:, )?)+) in [\d.]+s(?: \([\d:]+\))?\s*=*$", re.M)
UNITTEST = re.compile(r"^Ran (\d+) tests? in [\d.]+s\n+(?:OK|FAILED)(?: \((.*)\))?$", re.M)
AT_ONCE = 3  # where more tests of a suite fail, it is not by chance
AGAIN_S = 600  # a longer one is not run again
SHOWN = re.compile(r"^shown: (.*)$", re.M)
SKIP_LINES = re.compile(r"^(?:SKIP(?:PED)?\b:? (?!\[)(.*)|SKIPPED \[\d+\] (.*))$", re.M)


def count(output, status):
    """(passed, failed, skipped) from the runner's summary, else by its exit status."""
    passed = failed = skipped = 0
    found = False
    for m in PLAIN.finditer(output):
        found = True
        passed += int(m[1])
        failed += int(m[2])
        skipped += int(m[3] or 0)
    runs = [int(m[1]) for m in CMOCKA_RUN.finditer(output)]
    if runs:
        found = True
        bad = sum(int(m[1]) for m in CMOCKA_FAILED.finditer(output))
        left = sum(int(m[1]) for m in CMOCKA_SKIPPED.finditer(output))
        passed += sum(runs) - bad - left
        failed += bad
        skipped += left
    for m in PYTEST.finditer(output):
        found = True
        for number, word in re.findall(r"(\d+) (\w+)", m[1]):
            if word in ("passed", "xfailed"):
                passed += int(number)
            elif word in ("failed", "error", "errors", "xpassed"):
                failed += int(number)
            elif word == "skipped":
                skipped += int(number)
    for m in UNITTEST.finditer(output):
        found = True
        words = dict(re.findall(r"(failures|errors|skipped)=(\d+)", m[2] or ""))
        bad = int(words.get("failures", 0)) + int(words.get("errors", 0))
        left = int(words.get("skipped", 0))
        passed += int(m[1]) - bad - left
        failed += bad
        skipped += left
    if not found:
        if status == 77:
            return 0, 0, 1
        return (1, 0, 0) if status == 0 else (0, 1, 0)
    if status not in (0, 77) and not failed:
        failed = 1  # it died after its summary, or its summary is wrong
    return passed, failed, skipped


def meson_suite(directory, suites, logname):
    """Run meson's tests; return (name, output, status, seconds) for each, and what is unsteady."""
    results = meson_tests(directory, [w for s in suites for w in ("--suite", s)], logname,
                          (os.cpu_count() or 2) + (len(suites) > 1))
    bad = [i for i, (_, output, status, _) in enumerate(results) if count(output, status)[1]]
    unsteady = []
    for i in bad:
        name, output, _, seconds = results[i]
        say_failed(name, output)
        if suites == ["lint"] or len(bad) > AT_ONCE or seconds > AGAIN_S or " / " not in name:
            continue
        say("  once more, alone:")
        project, test = name.split(" / ", 1)
        again = meson_tests(directory, [project.split(":")[0] + ":" + test], logname + "-again", 1)
        if len(again) == 1 and not count(*again[0][1:3])[1]:
            unsteady.append(f"{name} failed, then passed alone: {last_line(output)}")
            results[i] = again[0]
    return results, unsteady


def last_line(output):
    return (output.strip().splitlines() or ["nothing was printed"])[-1].strip()[:200]


def say_failed(name, output):
    say(f"---- {name} failed:")
    say("\n".join((output.strip().splitlines() or ["nothing was printed"])[-60:]))
    say("----")


def meson_tests(directory, which, logname, processes):
    """Run the tests that `which` selects in meson's words."""
    command = ["meson", "test", "-C", directory, "--no-rebuild", "--logbase", logname,
               "--num-processes", str(processes), *which]
    if "unit" in which:  # meson's 30 s are short beside other work
        command += ["--timeout-multiplier", "4"]
    log = os.path.join(directory, "meson-logs", logname + ".json")
    if os.path.exists(log):
        os.unlink(log)
    process = subprocess.Popen(command, cwd=TOP, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                               text=True, errors="replace")
    for line in process.stdout:
        if re.match(r"^\s*\d+/\d+ ", line):
            say("  " + line.strip())
    process.wait()
    if not os.path.exists(log):
        return []
    results = []
    with open(log, errors="replace") as f:
        for line in f:
            try:
                t = json.loads(line)
            except ValueError:  # meson itself died, as on a full disk
                results.append(("meson's log is torn", line[-400:], 1, 0))
                continue
            status = t.get("returncode", 1)
            if t.get("result") == "TIMEOUT":
                status = 124
            output = (t.get("stdout") or "") + "\n" + (t.get("stderr") or "")
            results.append((t["name"], output, status, t.get("duration", 0)))
    return results


def script_suite(command):
    started = time.time()
    process = subprocess.Popen([os.path.join(TOP, command.split()[0]), *command.split()[1:]],
                               cwd=TOP, stdout=subprocess.PIPE,
                               stderr=subprocess.STDOUT, text=True, errors="replace")
    output = []
    for line in process.stdout:
        say("  " + line.rstrip())
        output.append(line)
    return [(command, "".join(output), process.wait(), time.time() - started)]


def steps(chosen):
    """Return the suites in lists: those of a list run side by side."""
    lists = []
    for s in chosen:
        before = lists[-1][-1] if lists else None
        if before and s[0] in BESIDE and before[0] in BESIDE and s[1] == before[1]:
            lists[-1].append(s)
        else:
            lists.append([s])
    return lists


def is_of(test, suites):
    """Is it a test of one of meson's suites, "whyoom:harm+cli / name"?"""
    return not set(test.split(" / ")[0].split(":")[-1].split("+")).isdisjoint(suites)


def main():
    # Reports keep answers of symbol files here, away from the user's.
    os.environ.setdefault("WHYOOM_CACHE", os.path.join(TOP, "build", "symbols"))
    # nohup and background jobs of a script ignore some signals, which tests send
    for number in (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGTERM):
        if signal.getsignal(number) == signal.SIG_IGN:
            signal.signal(number, signal.SIG_DFL)
    names = sys.argv[1:]
    known = [s[0] for s in SUITES]
    if "--list" in names or "--help" in names or "-h" in names:
        for name, _, _, default, what in SUITES:
            say(f"{name:20} {'' if default else '(not in the default set) '}{what}")
        return 0
    for name in names:
        if name not in known + ["all"]:
            say(f"tests/run: there is no suite '{name}'; there are: all {' '.join(known)}")
            return 2
    chosen = [s for s in SUITES if (s[0] in names or "all" in names) or (not names and s[3])]
    totals = [0, 0, 0]
    skips, failures, unsteady = [], [], []
    built = {}
    for step in steps(chosen):
        where = step[0][1]
        for name, _, _, _, describes in step:
            say(f"== {name}: {describes}")
        if where not in built:
            built[where] = build(where)
        if not built[where]:
            failures += [f"{s[0]}: build/{where} does not build" for s in step]
            totals[1] += len(step)
            continue
        started = time.time()
        if step[0][2][0].startswith("tests/"):
            results = script_suite(step[0][2][0])
        else:
            results, wavers = meson_suite(os.path.join(TOP, "build", where),
                                          [w for s in step for w in s[2]],
                                          "suite-" + "-".join(s[0] for s in step)[:60])
            unsteady += wavers
        for name, _, what, _, _ in step:
            own = results if len(step) == 1 else [r for r in results if is_of(r[0], what)]
            sums = [0, 0, 0]
            for test, output, status, _ in own:
                counts = count(output, status)
                sums = [a + b for a, b in zip(sums, counts)]
                if counts[1]:
                    failures.append(f"{name}/{test} (exit {status}): {last_line(output)}")
                for m in SHOWN.finditer(output):
                    say(f"   {test.split(' / ')[-1]}: {m[1]}")
                for m in SKIP_LINES.finditer(output):
                    skips.append(f"{name}/{test}: {(m[1] or m[2]).strip()}")
                if counts[2] and not SKIP_LINES.search(output):
                    skips.append(f"{name}/{test}: no reason given")
            if not own:
                sums[1] += 1
                failures.append(f"{name}: no test ran")
            totals = [a + b for a, b in zip(totals, sums)]
            seconds = time.time() - started if len(step) == 1 else sum(r[3] for r in own)
            say(f"   {name}: {sums[0]} ok, {sums[1]} not ok, {sums[2]} left out, {seconds:.0f} s"
                + (", beside others" if len(step) > 1 else ""))
    for s in skips:
        say("skipped: " + s)
    for u in unsteady:
        say("unsteady: " + u)
    for f in failures:
        say("failed: " + f)
    say(f"{totals[0]} passed, {totals[1]} failed" + (f", {totals[2]} skipped" if totals[2] else ""))
    return 1 if totals[1] else 0


if __name__ == "__main__":
    sys.exit(main())
