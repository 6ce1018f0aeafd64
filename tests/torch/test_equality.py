#!/usr/bin/env python3
"""What is recorded of PyTorch's allocator equals torch.cuda.memory_stats(), to the byte: 4 threads,
side streams, blocks that other streams use, graphs, with and without expandable segments."""
import bisect

from wheel import Run, check, equal, main

import spaces

SMALL = 1 << 20  # up to it, a request is served by the pool of small blocks


class Level:
    """What the allocator counts of one thing: how often it came and went, bytes, the most at a
    time."""

    def __init__(self):
        self.allocated = self.freed = self.current = self.peak = 0

    def add(self, amount):
        self.allocated += amount
        self.current += amount
        self.peak = max(self.peak, self.current)

    def take(self, amount):
        self.freed += amount
        self.current -= amount

    def same(self, stats, name):
        equal({k: getattr(self, k) for k in ("allocated", "freed", "current", "peak")},
              {k: stats[f"{name}.{k}"] for k in ("allocated", "freed", "current", "peak")}, name)


class Memory:
    """What lies under the blocks, in pieces: segments of cudaMalloc, and pages that were mapped."""

    def __init__(self):
        self.sizes, self.starts = {}, []
        self.segments, self.pages, self.bytes = Level(), Level(), Level()

    def add(self, kind, address, size):
        check(address not in self.sizes, f"memory twice at {address:#x}")
        self.sizes[address] = size
        bisect.insort(self.starts, address)
        kind.add(1)
        self.bytes.add(size)

    def take(self, kind, address):
        size = self.sizes.pop(address)
        self.starts.remove(address)
        kind.take(1)
        self.bytes.take(size)

    def hold(self, address, size):
        """Is there memory for the whole of it?"""
        at, end = address, address + size
        while at < end:
            i = bisect.bisect(self.starts, at) - 1
            if i < 0 or self.starts[i] + self.sizes[self.starts[i]] <= at:
                return False
            at = self.starts[i] + self.sizes[self.starts[i]]
        return True


class Replay:
    """All that the trace says of one device, event by event."""

    def __init__(self, trace):
        self.blocks = {}
        self.pools = {pool: (Level(), Level()) for pool in ("all", "small_pool", "large_pool")}
        self.memory = Memory()
        for record in trace.records:
            step = getattr(self, record.kind.lower(), None)
            if step:
                step(record.data)

    def count(self, size, step):
        for pool in ("all", "small_pool" if size <= SMALL else "large_pool"):
            blocks, volume = self.pools[pool]
            getattr(blocks, step)(1)
            getattr(volume, step)(size)

    def space_alloc(self, data):
        address, size = data["address"], data["size"]
        if data["space"] == "torch:0":
            check(address not in self.blocks, f"a block twice at {address:#x}")
            check(self.memory.hold(address, size), f"the block of {size} at {address:#x} lies in "
                  f"no segment")
            self.blocks[address] = size
            self.count(size, "add")
        elif data["label"] == "cudaMalloc":
            self.memory.add(self.memory.segments, address, size)

    def space_free(self, data):
        if data["space"] == "torch:0":
            self.count(self.blocks.pop(data["address"]), "take")
        elif data["label"] == "cudaFree":
            self.memory.take(self.memory.segments, data["address"])

    def space_map(self, data):
        self.memory.add(self.memory.pages, data["address"], data["size"])

    def space_unmap(self, data):
        for address in [a for a in self.memory.starts if 0 <= a - data["address"] < data["size"]]:
            self.memory.take(self.memory.pages, address)


def compare(replay, stats):
    for pool, (blocks, volume) in replay.pools.items():
        blocks.same(stats, f"allocation.{pool}")
        volume.same(stats, f"allocated_bytes.{pool}")
    replay.memory.segments.same(stats, "segment.all")
    replay.memory.bytes.same(stats, "reserved_bytes.all")


def reserved(python, *arguments, expandable=False, memory="4GiB", **variables):
    run = Run(python, "programs/equality.py", *arguments, memory=memory, **variables).end()
    trace, stats = spaces.Trace(run.trace_files()[0]), run.figures
    replay = Replay(trace)
    compare(replay, stats)
    # Up to 2.5, graphs' pools are of the other kind also with expandable segments.
    equal(replay.memory.pages.allocated > 0, expandable, "memory that is mapped page by page")
    equal(trace.infos["torch.blocks"], "recorded", "what the trace says of itself")
    equal(trace.infos.get("torch.segments"), "expandable" if expandable else None,
          "of its segments")
    levels = [r.levels for r in trace.records if r.kind == "LEVEL" and r.data["space"] == "torch:0"]
    equal(levels[-1][99], stats["reserved_bytes.all.current"], "the level of what is reserved")
    as_the_analyzer_has_it(run, stats)
    return trace, stats


def as_the_analyzer_has_it(run, stats):
    end = run.whyoom("map", "--at", "end", "--space", "torch:0")
    for name, want in (("live_blocks", "allocation"), ("live_bytes", "allocated_bytes"),
                       ("bytes", "reserved_bytes"), ("reserved_bytes", "reserved_bytes")):
        equal(end[name], stats[f"{want}.all.current"], f"{name} of the map at the end")


def case_segments(python):
    reserved(python)


def case_expandable(python):
    reserved(python, expandable=True, PYTORCH_CUDA_ALLOC_CONF="expandable_segments:True")


def case_settings(python):
    """Other ways of rounding, splitting and giving back."""
    conf = "max_split_size_mb:40,roundup_power2_divisions:4,garbage_collection_threshold:0.6"
    trace, _ = reserved(python, PYTORCH_CUDA_ALLOC_CONF=conf)
    equal(trace.infos["env.PYTORCH_CUDA_ALLOC_CONF"], conf, "the setting that is recorded")


def case_refused(python):
    """Refusals: those after which giving back the cache was enough, and one that was not."""
    trace, stats = reserved(python, "short", memory="1GiB")
    refused = trace.of("FAILED", "torch:0")
    equal(len(refused), stats["num_ooms"], "failures of the allocator")
    groups = {d["retry"] for d in trace.of("FAILED", "cuda:0") if d["result"] == spaces.OOM}
    equal(len(groups), stats["num_alloc_retries"], "requests that the device refused at first")
    granted = {d["retry"] for d in trace.of("SPACE_ALLOC", "cuda:0")} & groups
    equal(len(groups) - len(granted), stats["num_ooms"], "those that it refused to the end")


if __name__ == "__main__":
    main(globals())
