#!/usr/bin/env python3
"""PyTorch through checkpoints: in mode sampled, with a budget that is used up several times over,
what is said of a server is what is said with room for all of it, and what PyTorch itself counts."""
import json

import message
from wheel import Run, check, equal, main

MEMORY = "1GiB"
ROOM = ("--mode", "sampled", "--exact-from", "128KiB")
BUDGET = (*ROOM, "--max-trace", "4MiB")


def recorded(python, which, budget=BUDGET, **variables):
    run = Run(python, "programs/server.py", which, memory=MEMORY, options=budget,
              **variables).end(**ENDS.get(which, {}))
    run.report = run.whyoom("report")
    past = run.report["coverage"].get("checkpoint")
    if budget is BUDGET:
        check(past and len(past["periods"]) >= 3, f"{which}: no checkpoints: {past}")
        equal(past["left_out"], 0, f"{which}: events without room in a checkpoint")
        equal((past["lost"], past["damaged"]), (False, False), f"{which}: the checkpoint")
        equal(run.report["coverage"]["lost_events"], 0, f"{which}: events lost")
    else:
        check(not past, f"{which}: a checkpoint where there was room")
    return run


ENDS = {"host": {"status": 1}}


def figures_agree(run):
    """Each of PyTorch's blocks and segments was carried through the checkpoints, and nothing
    besides."""
    said, device = run.figures, run.report["device"]
    for name, got in (("free", device["free_bytes"]), ("allocated", device["live_bytes"]),
                      ("blocks", device["live_blocks"]),
                      ("reserved", device["segment_bytes"])):
        equal(got, said[name], f"{name}, of PyTorch's own figures")
    message.same(run.report, run.last)


def both(python, which, sure=0.15, **variables):
    """With the budget, and in it with room for everything: the same verdict, of the same place."""
    small = recorded(python, which, **variables)
    whole = recorded(python, which, ROOM, **variables)
    got, want = (r.report["verdict"] for r in (small, whole))
    equal(got["cause"], want["cause"], f"{which}: the cause")
    equal(*((v["blame"] or {}).get("function") for v in (got, want)), f"{which}: who")
    check(abs(got["confidence"] - want["confidence"]) <= sure,
          f"{which}: {got['confidence']}, {want['confidence']} sure")
    return small


def case_leak(python):
    run = both(python, "leak")
    equal(run.report["verdict"]["cause"], "leak", "the cause")
    figures_agree(run)
    site = run.report["device"]["sites"][0]
    equal(site["function"], "remember", "who holds the most")
    equal(site["blocks"], -(-run.figures["requests"] // 4), "how many, since the first request on")


def case_grows(python):
    """A buffer that is made anew, each larger, has one survivor at a time: its growth is in what
    checkpoints tell as sums."""
    run = both(python, "grows")
    figures_agree(run)
    equal(run.report["verdict"]["cause"], "prompt-growth", "the cause")


def case_holes(python):
    # What else it could be is weighed by what came and went, and of that less is known.
    run = both(python, "holes", sure=0.5)
    equal(run.report["verdict"]["cause"], "fragmentation", "the cause")
    figures_agree(run)
    # made between requests of which nothing is known any more: not before all work
    check("weights" not in json.dumps(run.report["ledger"]), f"the ledger: {run.report['ledger']}")


def case_cache(python):
    equal(both(python, "cache").report["verdict"]["cause"], "healthy", "the cause")


def case_host(python):
    """Who asks and who keeps are both to blame. A second or two, of which a checkpoint leaves a
    part, do not always suffice: then nothing is said, rather than something else."""
    small = recorded(python, "host", LIMIT=str(1 << 30)).report["verdict"]
    whole = recorded(python, "host", ROOM, LIMIT=str(1 << 30)).report["verdict"]
    equal(whole["cause"], "leak", "the cause")
    check(small["cause"] in ("leak", "unknown"), f"the cause after checkpoints: {small['cause']}")
    for verdict in (small, whole):
        if verdict["cause"] == "leak":
            check(verdict["blame"]["function"] in ("take", "remember"), f"who: {verdict['blame']}")


if __name__ == "__main__":
    main(globals())
