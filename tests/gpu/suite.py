#!/usr/bin/env python3
"""suite.py [PART...]: what can only be shown on a machine with a GPU. See docs/gpu.md.

A part is a function part_*(), whose figures go into results.json and results.txt, in
WHYOOM_TEST_TMP. It is left out, with the reason, when the machine lacks something."""
import collections
import json
import os
import shlex
import statistics
import sys
import tempfile
import time
import traceback

import machine
import message
import spaces
import test_equality
import wheel
from machine import SIMULATED, Skip
from wheel import Failed, check, equal
from worker import Worker

EXACT = ("device", "virtual")  # kinds whose requests are multiples of what a device gives
ROUNDS = 15


def script(name):
    return os.path.join(machine.HERE, "progs", name)


def on_each_runtime(source, work):
    """The figures of work(program) for each runtime that the machine's driver takes."""
    figures = {}
    with tempfile.TemporaryDirectory(dir=wheel.TMP) as folder:
        for version, program in machine.builds(source, folder).items():
            figures["runtime " + version] = work(program) if machine.takes(
                program) else "newer than the driver"
    if not any(isinstance(f, dict) for f in figures.values()):
        raise Skip(f"no runtime of NVIDIA's runs here: {figures or 'none is installed'}")
    return figures


# --- programs in C, with NVIDIA's own runtime ---

def kinds(run):
    return [line for line in machine.lines(run) if "space" in line]


def without_levels(out):
    """What memory.c prints, without what depends on the device's mood."""
    return [{k: v for k, v in json.loads(line).items() if k not in ("took", "gave")}
            for line in out.splitlines()]


def sums_equal(run):
    """What was asked for, count and bytes, of each space and entry point, is what is recorded."""
    trace = spaces.Trace(run.trace_files()[0])
    asked, recorded = collections.Counter(), collections.Counter()
    for kind in kinds(run):
        key = kind["space"], kind["api"]
        asked[key] += kind["bytes"]
        recorded[key] = sum(d["size"] for d in trace.of("SPACE_ALLOC", kind["space"])
                            if d["api"].startswith(kind["api"]))
    equal(recorded, asked, "bytes by space and entry point")
    refused = [line["bytes"] for line in machine.lines(run) if line["kind"] == "refused"]
    equal([d["size"] for d in trace.of("FAILED", "cuda:0")], refused, "what was refused")
    for space in ("cuda:0", "pinned", "managed"):
        equal(run.whyoom("map", "--at", "end", "--space", space)["live_bytes"], 0,
              f"live in {space} at the end")


def one_program(program):
    run = machine.same_output(program, ignore=without_levels)
    sums_equal(run)
    for kind in kinds(run):
        if kind["kind"] in EXACT:
            equal(kind["took"], kind["bytes"], f"what cudaMemGetInfo says of {kind['kind']}")
            equal(kind["gave"], kind["bytes"], f"what it says of their release")
    return {line["kind"]: {k: line[k] for k in ("bytes", "took", "gave") if k in line}
            for line in machine.lines(run)}


def part_memory():
    return on_each_runtime("memory.c", one_program)


def part_questions():
    names = ("entries", "sizes", "capture", "modules", "pinned", "pool", "fabric")
    return on_each_runtime("questions.c", lambda program: {
        name: machine.lines(machine.run(program, name, record=False))[0] for name in names})


# --- CUPTI's account beside ours ---

def compared(program, *arguments, folder):
    """Device memory by both accounts: how much only one of them has."""
    out = os.path.join(folder, "oracle.out")
    run = machine.run(program, *arguments, CUDA_INJECTION64_PATH=machine.oracle(folder),
                      ORACLE_OUT=out)
    theirs, ours = collections.Counter(), collections.Counter()
    with open(out) as lines:
        for operation, kind, address, size in (map(int, line.split()) for line in lines):
            if (operation, kind) == (1, 3):  # taken, device
                theirs[address, size] += 1
    for d in spaces.Trace(run.trace_files()[0]).of("SPACE_ALLOC"):
        if d["space"] in ("cuda:0", "pool:0") and not d["flags"] & (spaces.HANDLE | spaces.ARRAY):
            ours[d["address"], d["size"]] += 1
    check(theirs, "CUPTI saw nothing")
    return {name: [sum(c.values()), sum(size * n for (_, size), n in c.items())]
            for name, c in (("both", theirs & ours), ("CUPTI only", theirs - ours),
                            ("whyoom only", ours - theirs))}


def part_cupti():
    """Of a program all of whose calls are known, nothing may be missing. What PyTorch, cuBLAS and
    cuDNN take by private ways is an answer, not an error."""
    with tempfile.TemporaryDirectory(dir=wheel.TMP) as folder:
        machine.oracle(folder)
        figures = on_each_runtime("memory.c", lambda program: compared(program, folder=folder))
        for name, figure in figures.items():
            if isinstance(figure, dict):
                equal(figure["CUPTI only"], [0, 0], f"blocks that only CUPTI saw, with {name}")
        figures["PyTorch"] = compared(machine.python_with(), script("compute.py"), folder=folder)
    return figures


# --- PyTorch ---

def part_torch_equality():
    """Events against torch.cuda.memory_stats(): 4 threads, side streams, graphs, both kinds of
    segments."""
    python = machine.python_with()
    figures = {}
    for name, variables in (("segments", {}),
                            ("expandable",
                             {"PYTORCH_CUDA_ALLOC_CONF": "expandable_segments:True"})):
        _, stats = test_equality.reserved(python, expandable=bool(variables), memory=machine.MEMORY,
                                          **variables)
        figures[name] = {k: stats[f"{k}.all.allocated"]
                         for k in ("allocation", "allocated_bytes", "segment")}
    return figures


def part_torch_levels():
    """Between moments at which nothing new was computed, the device's free memory falls by what
    PyTorch reserves and is recorded; the rest is what no event explains."""
    run = machine.run(machine.python_with(), script("levels.py"))
    moments, total = run.figures["moments"], run.figures["total"]
    free, reserved = moments[0]
    for now_free, now_reserved in moments[1:]:
        equal(free - now_free, now_reserved - reserved,
              "what the device has less, and PyTorch has more")
    live = run.whyoom("map", "--at", "end", "--space", "cuda:0")["live_bytes"]
    equal(live, moments[-1][1], "recorded as live at the end")
    return {"total": total, "free": moments[-1][0], "recorded": live,
            "explained by no event": total - moments[-1][0] - live}


def part_torch_results():
    """What is computed is the same to the last digit, recorded or not."""
    variables = {"SIMULATED": "1"} if SIMULATED else {}
    run = machine.same_output(machine.python_with(), script("compute.py"), **variables)
    return run.figures


def part_torch_refused():
    """The report's figures are those of PyTorch's message."""
    run = machine.run(machine.python_with(), script("refused.py"))
    report = run.whyoom("report")
    message.same(report, run.last)
    equal(report["failure"]["kind"], "cuda-oom", "the kind of the failure")
    return {"message": run.last[:200], "requested": report["failure"]["requested_bytes"]}


def part_transformers():
    """The same tokens, recorded or not, and every event of theirs."""
    python = machine.python_with("transformers")
    run = machine.same_output(python, script("generate.py"), ignore=lambda out: out.splitlines()[0])
    test_equality.compare(test_equality.Replay(spaces.Trace(run.trace_files()[0])), run.figures)
    return {"blocks": run.figures["allocation.all.allocated"]}


# --- what it costs ---

def decoding(workload):
    """Tokens a second without and with the recorder, by rounds of 50 that take turns."""
    python = machine.python_with()
    environment = {k: v for k, v in os.environ.items() if not k.startswith(wheel.NOT_OURS)}
    with tempfile.TemporaryDirectory(dir=wheel.TMP) as folder:
        front = [wheel.WHYOOM, "run", "-o", os.path.join(folder, "traces")]
        plain = []
        if SIMULATED:
            plain = ["env", "LD_PRELOAD=" + wheel.SIMGPU, "WHYOOM_SIMGPU=" + machine.MEMORY]
            front += ["--simgpu", machine.MEMORY]
        workers = [Worker(python, workload, environment, before=before)
                   for before in (plain, [*front, "--"])]
        pairs = [[w.round() for w in workers] for _ in range(ROUNDS)]
        for w in workers:
            w.end()
    rates = [[r["tokens"] * 1e9 / r["wall"] for r in side] for side in zip(*pairs)]
    ratios = [b / a for a, b in zip(*rates)]
    cpu = [statistics.median(p[i]["cpu"] for p in pairs) / 1e6 for i in (0, 1)]
    return {"tokens/s without": round(statistics.median(rates[0]), 1),
            "with": round(statistics.median(rates[1]), 1),
            "ratio": [round(f(ratios), 3) for f in (statistics.median, min, max)],
            "thread's CPU ms without, with": [round(c, 1) for c in cpu]}


def part_decoding():
    figures = {"small": decoding("decode")}
    if not SIMULATED and machine.memory() > 24 << 30:
        figures["large"] = decoding("large")
    return figures


# --- servers ---

def part_llama_cpp():
    """A CUDA build of llama.cpp: WHYOOM_GPU_LLAMA is a command, as `llama-cli -m FILE -ngl 99 -n 64
    --temp 0 -p x`."""
    command = shlex.split(os.environ.get("WHYOOM_GPU_LLAMA", ""))
    if not command:
        raise Skip("WHYOOM_GPU_LLAMA names no command")
    run = machine.same_output(*command)
    map = run.whyoom("map", "--at", "peak", "--space", "cuda:0")
    check(map["live_bytes"] > 0, "nothing of it was recorded")
    return {"live at the peak": map["live_bytes"]}


def part_vllm():
    """vLLM's engine, as in the suite of its own, where it is installed, as it takes 10 GB."""
    import test_vllm
    if not SIMULATED and not machine.has("vllm"):
        raise Skip("vLLM is not installed in " + sys.executable)
    python = wheel.environment(test_vllm.packages(None)) if SIMULATED else sys.executable
    run = test_vllm.engine(python, machine.MEMORY)
    equal(run.figures, {"prompts": [5, 500, 5000], "answers": [16, 16, 16]}, "what was served")
    pid = str(test_vllm.engine_pid(run))
    blocks, device = (run.whyoom("map", "--pid", pid, "--at", "peak", "--space",
                                 space)["live_bytes"]
                      for space in ("torch:0", "cuda:0"))
    check(0 < blocks <= device, f"{blocks} bytes of blocks in {device}")
    return {"processes": len(run.trace_files()), "blocks at the peak": blocks,
            "device at the peak": device}


# --- the loop ---

def attempt(name, part, results):
    started = time.time()
    try:
        results[name] = {"result": "passed", "figures": part()}
    except Skip as reason:
        results[name] = {"result": "skipped", "why": str(reason)}
        print(f"SKIP {name}: {reason}")
    except Exception as error:
        results[name] = {"result": "failed", "why": str(error)}
        if not isinstance(error, Failed):
            traceback.print_exc()
    results[name]["seconds"] = round(time.time() - started, 1)
    if results[name]["result"] != "failed":
        wheel.clear()
    print(f"{name}: {results[name]['result']} in {results[name]['seconds']} s "
          f"{results[name].get('why', '')[:2000]}", flush=True)


def text(results):
    yield "  ".join(f"{k}: {v}" for k, v in results["machine"].items())
    for name, part in results["parts"].items():
        yield f"\n{name}: {part['result']}" + (f", {part['why']}" if "why" in part else "")
        for key, figure in (part.get("figures") or {}).items():
            yield f"  {key:24} {json.dumps(figure)}"


def main():
    parts = {name[5:]: f for name, f in globals().items() if name.startswith("part_")}
    unknown = set(sys.argv[1:]) - set(parts)
    if unknown:
        sys.exit(f"suite.py: there is no part {', '.join(unknown)}; there are: {' '.join(parts)}")
    results = {"machine": machine.describe(), "parts": {}}
    for name in sys.argv[1:] or parts:
        attempt(name, parts[name], results["parts"])
    where = os.path.join(wheel.TMP or ".", "results")
    with open(where + ".json", "w") as f:
        json.dump(results, f, indent=1)
    with open(where + ".txt", "w") as f:
        f.write("\n".join(text(results)) + "\n")
    print(f"shown: the figures are in {where}.json and .txt")
    count = collections.Counter(part["result"] for part in results["parts"].values())
    print(f"{count['passed']} passed, {count['failed']} failed, {count['skipped']} skipped")
    return 1 if count["failed"] else 0 if count["passed"] else 77


if __name__ == "__main__":
    sys.exit(main())
