#!/usr/bin/env python3
"""Programs that run out of the device's memory: what is recorded is what PyTorch's message says,
what PyTorch counts, and what the program asked for."""
import os

import message
from message import MIB
from wheel import Run, check, equal, main

MEMORY = "3GiB"
ROUND = 512  # the least that the allocator rounds a block to


def until_failure(python, which, memory=MEMORY, **variables):
    return refused(Run(python, "programs/failures.py", which, memory=memory, **variables).end())


def refused(run):
    """The one out-of-memory of a run: everything that is said of it is the same everywhere."""
    said, report = run.figures, run.whyoom("report")
    failure, device = report["failure"], report["device"]
    equal(failure["kind"], "cuda-oom", "what happened")
    equal(failure["space"], "torch:0", "who refused")
    equal(failure["requested_bytes"], -(-said["asked"] // ROUND) * ROUND,
          "the block that was asked for")
    for name, got in (("segment", failure["segment_bytes"]), ("free", device["free_bytes"]),
                      ("total", device["total_bytes"]), ("allocated", device["allocated_bytes"]),
                      ("reserved", device["reserved_bytes"]), ("blocks", device["live_blocks"]),
                      ("allocated", device["live_bytes"]), ("reserved", device["segment_bytes"])):
        equal(got, said[name], f"{name}, of PyTorch's own figures")
    equal(device["hole_bytes"], said["reserved"] - said["allocated"], "the holes of all segments")
    equal(said["ooms"], 1, "PyTorch's own count of failures")
    check("More: whyoom report" in run.err, f"whyoom run says nothing of it: {run.err[-500:]}")
    run.report = report
    return run


def innermost(run):
    """The innermost Python function of the program in the failing stack."""
    return next(f["function"] for f in run.report["failure"]["stack"]
                if f["file"].endswith("failures.py"))


def case_model(python):
    run = until_failure(python, "model")
    message.same(run.report, run.last)
    equal(innermost(run), "model", "where")


def case_kv_cache(python):
    run = until_failure(python, "kv_cache")
    message.same(run.report, run.last)
    equal(innermost(run), "kv_cache", "where")
    # 12 layers of 64 KiB a step, and what is kept of other sizes
    check(1000 < run.figures["steps"] < 4000, f"{run.figures['steps']} steps")
    equal(run.report["device"]["retried"], run.figures["retries"] - 1,
          "refusals after which giving back the cache was enough")


def case_leak(python):
    run = until_failure(python, "leak")
    message.same(run.report, run.last)
    curve = run.figures["curve"]
    equal({b - a for a, b in zip(curve, curve[1:])}, {4 * MIB}, "what each request leaves behind")
    site = run.report["device"]["sites"][0]
    equal(site["function"], "leak", "who holds the most")
    equal(site["bytes"], 4 * MIB * (len(curve) - 1), "what it holds")


def case_fragmentation(python):
    run = until_failure(python, "fragmentation")
    message.same(run.report, run.last)
    device = run.report["device"]
    equal(innermost(run), "take", "where")
    check(device["hole_bytes"] > 1024 * MIB, f"{device['hole_bytes']} lie idle")
    equal(device["largest_hole_bytes"], 40 * MIB, "the largest hole")
    equal(device["holes"], 30, "as many as there were blocks given back")
    run = Run(python, "programs/failures.py", "fragmentation", memory=MEMORY,
              PYTORCH_CUDA_ALLOC_CONF="expandable_segments:True").end()
    equal(run.last, "fits", "with expandable segments")
    equal(run.whyoom("report")["failure"]["kind"], "none", "what happened")


def case_expandable(python):
    """The driver refuses one page of a segment that exists already."""
    run = until_failure(python, "leak", PYTORCH_CUDA_ALLOC_CONF="expandable_segments:True")
    message.same(run.report, run.last)


def case_graphs(python):
    """What lies idle in a graph's pool is of no use to others; the message counts it as
    allocated."""
    run = until_failure(python, "graphs")
    message.same(run.report, run.last, idle_in_pools=100 * MIB)
    equal(message.in_private_pools(run.last), message.printed(100 * MIB), "idle in private pools")


def case_sharing(python):
    """Two processes on one device: what one holds the other cannot have, and its message says
    who."""
    machine = f"test-{os.getpid()}"
    first = Run(python, "programs/failures.py", "half", memory=MEMORY, machine=machine)
    equal(first.process.stdout.readline(), "holds\n", "the first one")
    second = until_failure(python, "model", machine=machine)
    message.same(second.report, second.last)
    refused(first.end())
    message.same(first.report, first.last)
    (pid, held), = message.others(second.last).items()
    equal(pid, first.report["failure"]["pid"], "who else holds memory")
    device = second.report["device"]
    check(device["free_bytes"] < 64 * MIB, f"{device['free_bytes']} were free")
    equal(message.others(first.last), {}, "the second one is gone")


if __name__ == "__main__":
    main(globals())
