#!/usr/bin/env python3
"""Settings under which PyTorch does not report its blocks: the driver's are recorded in their
place, with the sizes that were asked for, and the trace says so."""
from wheel import Run, check, equal, main

import spaces

BACKEND = "backend:cudaMallocAsync"
ROUND = 512
ALLOCATE = {"cuda:0": ("cudaMalloc", "cudaFree"), "pool:0": ("cudaMallocAsync", "cudaFreeAsync")}


def instead(python, space, said, **variables):
    """The blocks that are recorded in `space` are those that the program asked for and gave
    back."""
    run = Run(python, "programs/backends.py", **variables).end()
    trace, figures = spaces.Trace(run.trace_files()[0]), run.figures
    taken = [d for d in trace.of("SPACE_ALLOC", space) if d["label"] == ALLOCATE[space][0]]
    equal([d["size"] for d in taken], figures["asked"], "what was asked for, in order")
    equal(trace.of("SPACE_ALLOC", "torch:0"), [], "blocks of an allocator that reports none")
    check(all(any(f[0] == "python" for f in trace.frames(d["stack"])) for d in taken),
          "a block without Python frames")
    live, given_back = {}, []
    for record in trace.records:
        if record.kind == "SPACE_ALLOC" and record.data in taken:
            live[record.data["address"]] = record.data["size"]
        elif record.kind == "SPACE_FREE" and record.data["label"] == ALLOCATE[space][1]:
            given_back.append(live.pop(record.data["address"]))
    equal(given_back, figures["given back"], "what came back")
    check(trace.infos["torch.blocks"].startswith("none: ") and said in trace.infos["torch.blocks"],
          f"the trace says {trace.infos['torch.blocks']!r}")
    for name, value in variables.items():
        equal(trace.infos["env." + name], value, "the setting that is recorded")
    end = run.whyoom("map", "--at", "end", "--space", space)
    equal((end["live_blocks"], end["live_bytes"]), (len(live), sum(live.values())),
          "the map at the end")
    return run, trace, live, taken


def case_async(python):
    run, trace, live, taken = instead(python, "pool:0", "cudaMallocAsync",
                                      PYTORCH_CUDA_ALLOC_CONF=BACKEND)
    stats = run.figures["stats"]
    equal(run.figures["backend"], "cudaMallocAsync", "PyTorch's backend")
    # PyTorch asks the device, which rounds.
    equal(sum(-(-size // ROUND) * ROUND for size in live.values()),
          stats["allocated_bytes.all.current"],
          "what PyTorch counts as allocated")
    equal(len({d["stream"] for d in taken}), 2, "streams")


def case_async_refused(python):
    """There the message is another one, and the failure is the pool's."""
    run = Run(python, "programs/failures.py", "leak", memory="3GiB",
              PYTORCH_CUDA_ALLOC_CONF=BACKEND).end()
    check("would exceed allowed memory" in run.out, run.out[-500:])
    report = run.whyoom("report")
    failure, device = report["failure"], report["device"]
    equal((failure["kind"], failure["space"], failure["requested_bytes"]),
          ("cuda-oom", "pool:0", 4 << 20),
          "the failure")
    equal(device["explained_bytes"] + device["unattributed_bytes"] + device["free_bytes"],
          device["total_bytes"], "the device's memory")
    check(device["unattributed_bytes"] <= 256 << 20,
          "more than a context is explained by no event: "
          f"{device['unattributed_bytes']}")


def case_uncached(python):
    """Each block is a call of cudaMalloc's."""
    instead(python, "cuda:0", "PYTORCH_NO_CUDA_MEMORY_CACHING", PYTORCH_NO_CUDA_MEMORY_CACHING="1")


def case_uncached_refused(python):
    run = Run(python, "programs/failures.py", "leak", memory="3GiB",
              PYTORCH_NO_CUDA_MEMORY_CACHING="1")
    check("CUDA error: out of memory" in run.end(status=1).err, run.err[-500:])
    failure = run.whyoom("report")["failure"]
    equal((failure["kind"], failure["space"], failure["requested_bytes"], failure["segment_bytes"]),
          ("cuda-oom", "cuda:0", 4 << 20, None), "the failure")


if __name__ == "__main__":
    main(globals())
