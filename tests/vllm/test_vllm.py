#!/usr/bin/env python3
"""vLLM's own wheel on the simulated device, recorded: it serves where there is memory, and where
there is not it says what is missing. 3 GB of packages, and a minute or two: a suite of its own.

Triton, by which vLLM samples, wants a C compiler and Python's headers.
"""
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "torch"))
import message  # noqa: E402
import wheel  # noqa: E402
from wheel import Run, Skip, check, equal  # noqa: E402

VERSION = "0.20.0"
MIB, GIB = message.MIB, message.GIB
LAYERS, LENGTH, TOKEN = 12, 16384, 24 << 10  # of the model; bytes of KV cache a token
home = None  # a folder with the model, and for the caches


def packages(_):
    """The environment: its name, and what is in it, vLLM first."""
    if not shutil.which("cc") and not shutil.which("gcc"):
        raise Skip("there is no C compiler")
    if not os.path.exists(os.path.join(sysconfig.get_paths()["include"], "Python.h")):
        raise Skip("there is no Python.h")
    with open(os.path.join(HERE, "requirements.txt")) as file:
        wanted = [line.strip() for line in file if not line.startswith("#")]
    return "vllm-" + VERSION, ["vllm==" + VERSION, *wanted]


def engine(python, memory, status=0):
    """A run on so much memory."""
    global home
    if not home:
        home = tempfile.TemporaryDirectory(prefix="vllm-", dir=wheel.TMP)
        Run(python, os.path.join(HERE, "programs", "tiny_model.py"), home.name + "/model",
            record=False).end()
    return Run(python, os.path.join(HERE, "programs", "generate.py"), home.name + "/model",
               memory=memory,
               HOME=home.name, VLLM_CACHE_ROOT=home.name + "/vllm", TRITON_CACHE_DIR=home.name
               + "/triton",
               VLLM_NO_USAGE_STATS="1", HF_HUB_OFFLINE="1").end(status)


def engine_pid(run):
    """The process that has the device; who started it has not."""
    said = {int(pid) for pid in re.findall(r"\(EngineCore pid=(\d+)\)", run.out + run.err)}
    equal(len(said), 1, "engines")
    return said.pop()


def case_serves(python):
    """8 GiB are enough. What is left of them goes into the KV cache: one block a layer."""
    run = engine(python, "8GiB")
    equal(run.figures, {"prompts": [5, 500, 5000], "answers": [16, 16, 16]}, "what was served")
    equal(run.whyoom("report")["failure"]["kind"], "none", "what happened")
    processes = run.whyoom("check")["processes"]
    check(all(p["whole"] and not p["dropped"] for p in processes), f"not whole: {processes}")
    tokens = re.search(r"GPU KV cache size: ([\d,]+) tokens", run.out + run.err)
    check(tokens, "vLLM does not say how large its cache is")
    seen = run.whyoom("map", "--pid", str(engine_pid(run)), "--space", "torch:0", "--at", "peak")
    sizes = sorted(b["bytes"] for s in seen["segments"] for b in s["blocks"])
    check(len(set(sizes[-LAYERS:])) == 1 and sizes[-LAYERS - 1] < sizes[-1] // 2,
          f"not {LAYERS} equal: {sizes}")
    # Segments are rounded to 2 MiB, and a rest of less than 1 MiB is left with the block.
    layer = int(tokens[1].replace(",", "")) * TOKEN // LAYERS
    check(0 <= sizes[-1] - layer < MIB, f"{sizes[-1]} for a layer, which needs {layer}")


def case_cache_too_small(python):
    """The weights fit into 1 GiB, the KV cache for one request does not: vLLM refuses before the
    device does."""
    run = engine(python, "1GiB", status=1)
    text = run.out + run.err
    match = re.search(r"\((\S+) GiB KV cache is needed, which is larger than the available KV "
                      r"cache memory "
                      r"\((\S+) GiB\)", text)
    check(match, text[-3000:])
    equal(match[1], f"{LENGTH * TOKEN / GIB:.2f}", "the cache for one request, in GiB")
    check(0 < float(match[2]) < LENGTH * TOKEN / GIB, f"{match[2]} GiB are available")
    equal(run.whyoom("report")["failure"]["kind"], "none", "what happened on the device")


def case_out_of_memory(python):
    """In 500 MiB not even the trial run fits."""
    run = engine(python, "500MiB", status=1)
    said = re.search(r"torch\.OutOfMemoryError: (CUDA out of memory.*)", run.out + run.err)
    check(said, (run.out + run.err)[-3000:])
    report = run.whyoom("report")
    failure = report["failure"]
    equal(failure["kind"], "cuda-oom", "what happened")
    equal(failure["pid"], engine_pid(run), "in which process")
    equal(message.printed(failure["requested_bytes"]), message.figures(said[1])["segment"],
          "the block")
    message.same(report, said[1])
    stack = [frame["function"] for frame in failure["stack"]]
    for function in "LlamaMLP.forward", "GPUModelRunner.profile_run":
        check(function in stack, f"{function} is not in {stack}")


if __name__ == "__main__":
    wheel.main(globals(), packages)
