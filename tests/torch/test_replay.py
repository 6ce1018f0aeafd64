#!/usr/bin/env python3
"""`whyoom replay --through torch`: what a program asked of PyTorch's allocator is asked of it
again, on a simulated device, and of the model; both refuse the same request and reserve as much,
with the recorded settings and with others."""
from test_allocator_model import PLAIN
from wheel import Run, check, equal, main

OTHERS = ["expandable_segments:True", "max_split_size_mb:64", "roundup_power2_divisions:4"]


def both(run, python, *options):
    """The model's row and PyTorch's own."""
    answer = run.whyoom("replay", "--through", "torch", "--python", python, *options)["torch"]
    equal(answer["own"]["device"], "simulated", "where PyTorch was asked")
    return answer["model"], {**answer["own"], "name": "model", "device": None}, answer


def same(run, python, *options):
    model, own, answer = both(run, python, *options)
    equal(model, own, f"what the model says and what PyTorch does, {options}")
    check(answer["agree"], "they agree")
    return model


def failing(which, python):
    return Run(python, "programs/failures.py", which, memory="3GiB", options=PLAIN).end()


def case_recorded(python):
    """As it was: it fails where it failed."""
    for which in ("model", "leak", "fragmentation", "graphs"):
        run = failing(which, python)
        model = same(run, python)
        equal(model["failed_at"]["event"], run.whyoom("replay")["original"]["event"],
              f"where it fails, {which}")


def case_settings(python):
    """With other settings, and on another device."""
    run = failing("fragmentation", python)
    for settings in OTHERS:
        model = same(run, python, "--alloc-conf", settings)
        if settings.startswith("expandable"):
            equal(model["failed_at"], None, "with expandable segments nothing is refused")
    same(run, python, "--memory", "2GiB")
    same(run, python, "--memory", "6GiB")


def case_sequences(python):
    """Random requests, with and without a limit."""
    for seed, settings in ((7, ""), (8, "per_process_memory_fraction:0.5"),
                           (9, "expandable_segments:True")):
        run = Run(python, "programs/allocations.py", str(seed), "8", memory="2GiB", options=PLAIN,
                  PYTORCH_CUDA_ALLOC_CONF=settings).end()
        same(run, python)


def case_streams(python):
    """Streams are told apart by their blocks: a little may be off."""
    run = Run(python, "programs/allocations.py", "11", "12", "3", memory="4GiB",
              options=PLAIN).end()
    model, own, answer = both(run, python)
    check(answer["streams"] >= 3, f"{answer['streams']} of 3 streams were seen")
    check(answer["agree"], f"within 1 %: {model}, {own}")


def case_concurrency(python):
    """Twelve at once are too many for the smaller device: how many are not is what then really fits
    there."""
    def served(at_once, memory):
        return Run(python, "programs/users.py", "12", str(at_once), memory=memory).end()

    numbers = (1, 3, 4, 8, 12)  # between them chance decides
    record, rows = served(12, "3GiB"), {}
    equal(record.last, "fits", "all at once, on the larger one")
    for n in numbers:
        answer = record.whyoom("what-if", "--memory", "1GiB", "--concurrency", str(n))
        memory, alone, rows[n] = answer["what_if"]
        equal((memory["fits"], alone["fits"]), (False, True), "each change by itself")
    equal({n: rows[n]["fits"] for n in numbers},
          {n: served(n, "1GiB").last == "fits" for n in numbers}, "and really")
    check(rows[1]["headroom_bytes"] > rows[3]["headroom_bytes"] > rows[4]["headroom_bytes"],
          "fewer leave more")
    equal(rows[12]["refused"], memory["refused"], "twelve of twelve is as it was")


if __name__ == "__main__":
    main(globals())
