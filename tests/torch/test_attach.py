#!/usr/bin/env python3
"""A server on PyTorch that is attached to while it runs: its blocks on the device and its host's
blocks are recorded from then on, and the verdict on the leak that follows is right."""
import json
import subprocess
import tempfile

import wheel
from message import MIB
from wheel import WHYOOM, Run, check, equal, main

NOTE = 40000  # bytes of a note of programs/attached.py


def attached(python, *options):
    """A run of the program that was attached to when it had worked for a while."""
    run = Run(python, "programs/attached.py", memory="1GiB", record=False)
    try:
        equal(run.process.stdout.readline(), "ready\n", "its first line")
        run.directory = tempfile.mkdtemp(prefix="torch-", dir=wheel.TMP)
        wheel.scratch.append(run.directory)
        done = subprocess.run([WHYOOM, "attach", *options, "-o", run.traces, str(run.process.pid)],
                              capture_output=True, text=True, timeout=120)
        equal(done.returncode, 0, "whyoom attach: " + done.stderr)
    except BaseException:
        run.process.kill()
        raise
    run.process.stdin.write("\n")
    run.process.stdin.flush()
    return run.end()


def notes(run):
    """Bytes in blocks of the size of a note that live at the peak, as the program ends well."""
    done = subprocess.run([WHYOOM, "export", "--format", "jsonl", "--at", "peak", "--events",
                           "none", run.traces], capture_output=True, text=True, timeout=300)
    sums = [e for e in map(json.loads, done.stdout.splitlines())
            if e["type"] == "sum" and e["live_blocks"]]
    return sum(e["live_bytes"] for e in sums
               if NOTE <= e["live_bytes"] / e["live_blocks"] < NOTE + 1000)


def case_leak(python):
    run = attached(python)
    said, report = run.figures, run.whyoom("report")
    verdict, failure, device = report["verdict"], report["failure"], report["device"]
    equal(verdict["cause"], "leak", "why")
    functions = [f["function"] for f in verdict["blame"]["stack"]]
    check("serve" in functions and "work" not in functions, f"who: {functions}")
    equal(failure["kind"], "cuda-oom", "what happened")
    equal(failure["space"], "torch:0", "who refused")
    equal(failure["requested_bytes"], said["asked"], "the block that was asked for")
    site = device["sites"][0]
    check(site["bytes"] in (2 * MIB * said["kept"], 2 * MIB * said["kept"] + 8 * MIB),
          f"its bytes: {site['bytes']}, of {said['kept']} blocks of 2 MiB and what a request takes")
    equal(said["before"], 200 * MIB, "what it had before")
    check(device["live_bytes"] <= said["allocated"] - said["before"],
          f"blocks from before are not among {device['live_bytes']}")
    check(0.95 < notes(run) / (said["kept"] * NOTE) < 1.05,
          f"in the host's memory: {notes(run)} of {said['kept']} notes")


if __name__ == "__main__":
    main(globals())
