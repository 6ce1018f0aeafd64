#!/usr/bin/env python3
"""The analyzer's model of PyTorch's caching allocator against the allocator itself: for random
requests, with the settings that decide where blocks go, and for every program here, it takes the
segments that PyTorch took, in their order, and holds as much after each event.

WHYOOM_TEST_SEQUENCES: how many random sequences in all.
"""
import os
import subprocess

from wheel import Run, check, clear, equal, main

SEQUENCES = int(os.environ.get("WHYOOM_TEST_SEQUENCES", "150"))
IN_ONE_PROCESS = 250
SETTINGS = [
    "",
    "expandable_segments:True",
    "max_split_size_mb:30",
    "roundup_power2_divisions:4",
    "garbage_collection_threshold:0.5,per_process_memory_fraction:0.6",
    "max_split_size_mb:200",
    "roundup_power2_divisions:[1:2,64:8,256:4,>:1]",
    "per_process_memory_fraction:0.5",
    "expandable_segments:True,per_process_memory_fraction:0.7,garbage_collection_threshold:0.4",
    "max_split_size_mb:40,garbage_collection_threshold:0.3,per_process_memory_fraction:0.7",
]
MEMORY = ["2GiB", "1GiB", "4GiB"]
PLAIN = ["--no-stacks", "--python", "off"]  # where a block came from does not matter here


def settings_of(python):
    """Those that this version knows: others end it."""
    version = subprocess.run(
        [python, "-c", "from importlib.metadata import version; print(version('torch'))"],
        capture_output=True, text=True, check=True).stdout
    old = tuple(map(int, version.split(".")[:2])) < (2, 9)
    return [s for s in SETTINGS if not (old and "per_process_memory_fraction" in s)]


def modelled(run):
    return run.whyoom("what-if")["model"]


def identical(run, what):
    model = modelled(run)
    equal(model["first_difference"], None, f"the first difference, {what}")
    equal(model["match"], "identical", what)
    equal(model["doubt"], None, what)
    return model


def allocations(python, seed, sequences, settings, memory, streams=1):
    return Run(python, "programs/allocations.py", str(seed), str(sequences), str(streams),
               memory=memory,
               options=PLAIN, PYTORCH_CUDA_ALLOC_CONF=settings).end()


def case_sequences(python):
    """Every setting, as often as it takes; in one process many sequences, as starting takes
    long."""
    processes = max(6, -(-SEQUENCES // IN_ONE_PROCESS))
    each = -(-SEQUENCES // processes)
    known = settings_of(python)
    requests = segments = 0
    for seed in range(processes):
        settings, memory = known[seed % len(known)], MEMORY[seed // len(known) % len(MEMORY)]
        run = allocations(python, seed, each, settings, memory)
        model = identical(run, f"seed {seed}, '{settings}' on {memory}")
        equal(model["requests"], run.figures["requests"], "what was asked for")
        check(model["compared"] >= model["requests"],
              "what is reserved is known after each request")
        requests += model["requests"]
        segments += model["segments"]
        if processes > 6:  # a trace is large
            clear()
    print(f"{processes * each} sequences, {requests} requests, {segments} segments: identical")


def case_streams(python):
    """Several streams: which one a block is of is not recorded, and found out."""
    for seed, streams in ((101, 2), (102, 4)):
        model = modelled(allocations(python, seed, 60, "", "2GiB", streams))
        print(f"{streams} streams: {model['match']}, {model['deviation']:.4f}")
        check(model["match"] in ("identical", "within"),
              f"{streams} streams: {model['first_difference']}")
        check(model["streams"] >= streams, f"{model['streams']} of {streams} streams were seen")


def case_programs(python):
    """Programs of other shapes; CUDA graphs' private pools among them."""
    for which in ("model", "kv_cache", "leak", "fragmentation", "graphs"):
        run = Run(python, "programs/failures.py", which, memory="3GiB", options=PLAIN).end()
        identical(run, which)
    identical(Run(python, "programs/features.py", memory="4GiB", options=PLAIN).end(), "features")


def case_what_if(python):
    """What the model says of another setting or another size is what then happens."""
    def failing(which, memory="3GiB", settings=""):
        return Run(python, "programs/failures.py", which, memory=memory,
                   PYTORCH_CUDA_ALLOC_CONF=settings).end()

    answer = failing("fragmentation").whyoom("what-if", "--expandable-segments", "--cap-growth",
                                             "0")
    expandable, capped, both = answer["what_if"]
    equal(answer["recorded"]["fits"], False, "as it was")
    equal(expandable["fits"], True, "with expandable segments")
    equal(failing("fragmentation", settings="expandable_segments:True").last, "fits", "and really")
    equal((capped["fits"], both["fits"]), (True, True), "with one block for each site")
    equal(both["change"], "all of these together", "the last row")

    half = failing("leak").whyoom("what-if", "--memory", "2GiB")["what_if"][0]
    really = failing("leak", "2GiB").whyoom("what-if")["recorded"]
    equal(half["fits"], False, "on a smaller device")
    for name in ("request", "bytes", "segment_bytes", "reserved_bytes", "allocated_bytes"):
        equal(half["refused"][name], really["refused"][name],
              f"{name}, where it fails on half the device")


def case_lengths(python):
    """How long prompts may be is what happens when they really are no longer."""
    def serving(longest, options=PLAIN):
        return Run(python, "programs/lengths.py", str(longest), memory="2GiB",
                   options=options).end()

    run = serving(10000, ())
    equal(run.last, "refused", "with the longest")
    answer = run.whyoom("what-if", "--max-len", "3000", "--max-len", "5000", "--longest", "6000")
    equal([row["fits"] for row in answer["what_if"]], [True, False, True], "3000 and 5000 tokens")
    fits = answer["lengths"]["fits_tokens"]
    print(f"fits up to {fits} tokens, by {answer['lengths']['reference']}")
    check(3000 < fits < 5000, f"{fits} tokens")
    for longest, said in ((3000, "fits"), (5000, "refused"), (fits * 97 // 100, "fits"),
                          (fits * 103 // 100, "refused")):
        equal(serving(longest).last, said, f"really, with {longest} tokens")


if __name__ == "__main__":
    main(globals())
