"""What the tests of the fleet on DuckDB and Spark share: the Python package as it is in the
sources, without its extension module, which the wheel's tests build and try; and rows that are
drawn."""

import os
import pathlib
import random
import subprocess

TOP = pathlib.Path(__file__).resolve().parent.parent.parent
WHYOOM = os.environ["WHYOOM_EXE"]
QUESTIONS = ["causes", "over-time", "first-seen", "growth", "headroom", "forecasts", "same-crash"]
# all ENGINE SOURCE...: the answers to all questions, one session for them; else whyoom-fleet.
PROGRAM = """
import json, sys, types
package = types.ModuleType("whyoom")
package.__path__ = [sys.argv[1]]
sys.modules["whyoom"] = package
import importlib
fleet = importlib.import_module("whyoom.fleet")
if sys.argv[2] == "all":
    print(json.dumps(fleet.ask_all(sys.argv[3].split(), *sys.argv[5:], on=sys.argv[4]),
                     default=float))
else:
    sys.exit(fleet.main(sys.argv[2:]))
"""


def command(python, *words):
    return [python, "-c", PROGRAM, str(TOP / "python" / "whyoom"), *map(str, words)]


def environment(**more):
    path = os.pathsep.join([os.path.dirname(WHYOOM), os.environ["PATH"]])
    return dict(os.environ, PATH=path) | more


def fleet(python, *words, rc=0, timeout=300, **more):
    """Run whyoom-fleet."""
    done = subprocess.run(command(python, *words), capture_output=True, text=True, timeout=timeout,
                          env=environment(**more))
    assert done.returncode == rc, done.stdout[-2000:] + done.stderr[-4000:]
    return done


def lines(count):
    """Runs of some versions, pods and sites; some collected twice, some not to be judged."""
    draw = random.Random(7)
    made = []
    for n in range(count):
        version = draw.randrange(4)
        held = draw.sample(["Cache.put", "forward", "parse", "std::vector::push_back"], 3)
        failed = draw.random() < 0.7
        row = {"schema": 1, "id": f"n{n % 5}/{n}/x", "run": f"/t/{n}", "pod": f"p{n % 9}",
               "version": None if n % 17 == 0 else f"1.{version}", "node": f"n{n % 5}",
               "model": None if n % 11 == 0 else f"m{n % 2}", "space": "host",
               "started": f"2026-0{version + 1}-{n % 28 + 1:02}T00:00:00Z",
               "day": f"2026-0{version + 1}-{n % 28 + 1:02}",
               "seconds": round(draw.uniform(1, 90000), 3), "ended": "signal",
               "cause": draw.choice(["leak", "fragmentation", "concurrency"]) if failed
               else "healthy", "failure": "oom-kill" if failed else "none",
               "failure_seconds": 500.25 if failed else None, "blame_function": held[0],
               "stack": " < ".join(held), "limit_bytes": 1 << 30,
               "free_bytes": draw.randrange(1 << 30), "labels": {"team": "a"}, "ledger": [],
               "sites": [{"function": f, "live_bytes": draw.randrange(1, 1 << 40),
                          "live_blocks": 3} for f in held]}
        if n % 13 == 0:  # while it lived
            made.append(dict(row, ended="unknown", failure="none", seconds=400.5, sites=[],
                             forecast_seconds=90.0, forecast_low_seconds=80.0,
                             forecast_high_seconds=120.0))
        if n % 19 == 0:
            made.append({"schema": 1, "id": row["run"], "run": row["run"], "error": "torn"})
        made.append(row if n % 29 else {"schema": 1, "id": row["run"], "run": row["run"],
                                        "error": "torn", "ledger": [], "sites": []})
    return made
