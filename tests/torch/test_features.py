#!/usr/bin/env python3
"""PyTorch does on the simulated device what it does on a device, with the recorder in front and
without."""
import os

from wheel import Run, check, equal, main


def case_alone(python):
    run = Run(python, "programs/features.py", record=False).end()
    equal(run.last, "ok", "the last line")
    equal(run.err.count("not real"), 1, "how often it is said that results are not real")


def case_recorded(python):
    """whyoom run --simgpu is all it takes, and nothing stays behind."""
    run = Run(python, "programs/features.py").end()
    equal(run.last, "ok", "the last line")
    processes = run.whyoom("check")["processes"]
    check(all(p["whole"] and not p["dropped"] for p in processes), f"not whole: {processes}")
    left = f".run-{run.process.pid}"
    equal([n for n in os.listdir("/dev/shm") if n.endswith(left)], [], "what is left in /dev/shm")


if __name__ == "__main__":
    main(globals())
