#!/usr/bin/env python3
"""examples/pytorch-server/run --mended, to its end: the server fails, and the report answers what a
user asks of it; the mended one refuses what it has no room for, and is healthy."""
import json
import os
import re
import subprocess
import tempfile

import message
import wheel
from wheel import check, equal, main

EXAMPLE = os.path.join(wheel.HERE, "..", "..", "examples", "pytorch-server")


def whole(python, folder):
    """The example's output: what it says on stdout, and on stderr."""
    environment = {k: v for k, v in os.environ.items()
                   if not k.startswith(wheel.NOT_OURS + wheel.NOT_SIMULATED)}
    environment.update(WHYOOM_EXE=wheel.WHYOOM, WHYOOM_EXAMPLE_PYTHON=python, WHYOOM_SIMGPU="1",
                       WHYOOM_EXAMPLE_DIR=folder)
    done = subprocess.run([os.path.join(EXAMPLE, "run"), "--mended"], env=environment,
                          capture_output=True, text=True,
                          stdin=subprocess.DEVNULL, timeout=300)
    equal(done.returncode, 0, f"exit status, after {done.stdout[-2000:]}{done.stderr[-2000:]}")
    return done.stdout, done.stderr


def reproduced(folder):
    """examples/reproduce/run on that trace: it fails again, and so does what is left of it, in both
    forms."""
    environment = {k: v for k, v in os.environ.items()
                   if not k.startswith(wheel.NOT_OURS + wheel.NOT_SIMULATED)}
    environment.update(WHYOOM_EXE=wheel.WHYOOM, WHYOOM_SIMGPU="1", WHYOOM_EXAMPLE_DIR=folder)
    done = subprocess.run([os.path.join(EXAMPLE, "..", "reproduce", "run")], env=environment,
                          capture_output=True,
                          text=True, stdin=subprocess.DEVNULL, timeout=300)
    equal(done.returncode, 0, f"exit status, after {done.stdout[-2000:]}{done.stderr[-2000:]}")
    equal(done.stdout.count("Reproduced: it fails where it failed"), 2,
          f"the whole and the small: {done.stdout}")
    check("refused, as recorded" in done.stdout, f"the program: {done.stdout}")
    whole, small = report(os.path.join(folder, "broken")), report(
        os.path.join(folder, "small.whyoom"))
    equal(small["verdict"]["cause"], whole["verdict"]["cause"], "the cause of the small one")
    equal(small["failure"]["requested_bytes"], whole["failure"]["requested_bytes"], "its request")
    check(whole["processes"][0]["events"] > 100 * small["processes"][0]["events"], "it is small")


def frame(stack, function, file):
    """Where in a stack a function is."""
    found = [i for i, f in enumerate(stack) if f["function"] == function
             and os.path.basename(f["file"] or "") == file]
    check(found, f"no {function} of {file} in the stack: {[f['function'] for f in stack]}")
    return found[0]


def report(trace):
    done = subprocess.run([wheel.WHYOOM, "report", "--format", "json", trace], capture_output=True,
                          text=True,
                          check=True)
    return json.loads(done.stdout)


def served(out):
    """What the client's requests were answered with, in their order."""
    return [word for word in re.findall(r"^ *\d+ tokens of prompt: (\w+)", out, re.M)]


def answers(report):
    """Which blocks, how large, which stack, reserved against allocated, the failing request, the
    largest hole."""
    failure, device = report["failure"], report["device"]
    equal((failure["kind"], failure["space"]), ("cuda-oom", "torch:0"), "what failed")
    check(failure["requested_bytes"] > device["largest_hole_bytes"] > 0,
          "the request and the largest hole")
    check(device["reserved_bytes"] > device["allocated_bytes"] > 0, "reserved and allocated")
    operator = frame(failure["stack"], "at::_ops::cat::call", "libtorch_cpu.so")
    caller = frame(failure["stack"], "Attention.forward", "model.py")
    request = frame(failure["stack"], "Handler.do_POST", "server.py")
    check(operator < caller < request, "native and Python frames in one stack, in their order")
    check(device["sites"], "who held it")
    check(sum(s["bytes"] for s in device["sites"]) <= device["allocated_bytes"],
          "no more than all of it")
    for site in device["sites"]:
        check(site["blocks"] > 0 and site["stack"], f"blocks and stack of {site['function']}")
    largest = device["sites"][0]
    equal((largest["function"], os.path.basename(largest["file"])),
          ("Attention.forward", "model.py"), "the largest")


def case_server(python):
    with tempfile.TemporaryDirectory(dir=wheel.TMP) as folder:
        out, err = whole(python, folder)
        broken, mended = (report(os.path.join(folder, which)) for which in ("broken", "mended"))
        reproduced(folder)
    words = served(out)
    check(len(words) % 2 == 0, f"the same requests to both: {words}")
    words, mended_words = words[:len(words) // 2], words[len(words) // 2:]
    equal(words, ["answered"] * (len(words) - 1) + ["507"], "the last request fails")
    check(len(words) > 3, f"{len(words)} requests")
    answers(broken)
    equal(broken["verdict"]["cause"], "prompt-growth", broken["verdict"]["summary"])
    said = re.search(r"^torch\.OutOfMemoryError: (.*)$", err, re.M)
    check(said, "PyTorch's message is in the log")
    message.same(broken, said[1])
    text = out[out.index("tokens of prompt: 507"):]
    for word in ("torch:0", "model.py:", "segments", "holes"):
        check(word in text, f"no {word!r} in the report: {text}")
    equal(mended_words, ["answered"] * (len(words) - 1) + ["413"],
          "the mended one refuses what it has no room for")
    summary = mended["verdict"]["summary"]
    equal(mended["verdict"]["cause"], "healthy", summary)
    check(re.search("[0-9.]+ [GM]iB of the 4.00 GiB of cuda:0 stayed free", summary), summary)


if __name__ == "__main__":
    main(globals())
