"""many.py LINES N - print N lines as of a fleet that runs for a year, made of the real lines of a
file that `whyoom fleet collect --jsonl` wrote: other hosts, pods, versions, days and bytes, by a
fixed seed. One run in fifty is collected alive, before it ends; one in two hundred cannot be
read."""

import datetime
import json
import random
import sys

START = datetime.datetime(2026, 1, 1)
PODS, NODES, VERSIONS, MODELS = 5000, 200, 40, 12
DAYS = 365


def varied(draw, row, n):
    """A run of another pod at another time: all bytes grow or shrink by one factor, those of its
    sites by one each, and a little with the version."""
    version = draw.randrange(VERSIONS)
    pod = draw.randrange(PODS)
    started = START + datetime.timedelta(
        seconds=86400 * DAYS * version // VERSIONS + draw.randrange(86400 * 30))
    factor = draw.uniform(0.5, 4)
    text = started.strftime("%Y-%m-%dT%H:%M:%SZ")
    made = dict(row, id=f"node-{pod % NODES}/{n}/{text}", run=f"/traces/pod-{pod}/{n}", pid=n,
                started=text, day=text[:10], pod=f"pod-{pod}", node=f"node-{pod % NODES}",
                host=f"node-{pod % NODES}", image=f"chat:1.{version}", version=f"1.{version}",
                model=f"model-{pod % MODELS}", namespace="serving",
                seconds=round(draw.expovariate(1 / 40000), 3))
    for name in "requested_bytes", "limit_bytes", "free_bytes", "blame_bytes":
        if row.get(name) is not None:
            made[name] = int(row[name] * factor)
    made["sites"] = [dict(s, live_bytes=int(s["live_bytes"] * factor * draw.uniform(0.8, 1.2)
                                            * (1 + version / 100)))
                     for s in row["sites"]]
    made["ledger"] = [dict(r, bytes=int(r["bytes"] * factor)) for r in row["ledger"]]
    if row["failure"] not in (None, "none"):
        made["failure_seconds"] = round(made["seconds"] * 0.999, 3)
    return made


def alive(draw, row):
    """The same run, as it was foretold at half its time."""
    left = row["seconds"] / 2
    return dict(row, seconds=round(left, 3), ended="unknown", failure="none", failure_seconds=None,
                forecast_seconds=round(left * draw.uniform(0.7, 1.3), 1),
                forecast_low_seconds=round(left * 0.8, 1),
                forecast_high_seconds=round(left * 1.25, 1))


def lines(real, count):
    """Yield `count` lines."""
    draw = random.Random(11)
    n = 0
    while n < count:
        row = varied(draw, real[n % len(real)], n)
        if n % 200 == 199:
            row = {"schema": 1, "id": row["run"], "run": row["run"], "judge": row["judge"],
                   "labels": {}, "error": "the trace ends early", "ledger": [], "sites": []}
        elif n % 50 == 49 and n + 1 < count:
            yield json.dumps(alive(draw, row))
            n += 1
        yield json.dumps(row)
        n += 1


def main():
    with open(sys.argv[1]) as f:
        real = [row for row in map(json.loads, f) if row["error"] is None]
    for line in lines(real, int(sys.argv[2])):
        print(line)


if __name__ == "__main__":
    main()
