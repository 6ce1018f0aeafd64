#!/usr/bin/env python3
"""test_examples.py NAME: the example's run script, with both programs, to its end. What the report
says of the broken one is what its README shows, and the mended one runs through.

The environment is that of the scenarios with the same framework, so that nothing is installed
twice.
"""
import json
import os
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.join(HERE, "..", "..")
sys.dont_write_bytecode = True
sys.path[:0] = [os.path.join(HERE, "..", "torch"), os.path.join(HERE, "..", "scenarios")]
import environment  # noqa: E402
import wheel  # noqa: E402
from wheel import check, equal  # noqa: E402

# The environment, the cause, and the functions that may be blamed.
EXAMPLES = {
    "langchain": ("langchain", "prompt-growth", ("StandIn.prefill",)),
    "langgraph": ("langchain", "state-retention", ("InMemorySaver.put",)),
    "autogen": ("autogen", "prompt-growth", ("StandIn.prefill",)),
    "crewai": ("crewai", "prompt-growth", ("StandIn.prefill",)),
    "llama-cpp": ("llama-cpp", "batch-prealloc", ("llama_kv_cache::llama_kv_cache",)),
}


def report(trace):
    done = subprocess.run([wheel.WHYOOM, "report", "--format", "json", trace], capture_output=True,
                          text=True,
                          timeout=120)
    equal(done.returncode, 0, done.stderr)
    return json.loads(done.stdout)


def shown(name):
    """The cause in the README of the example, and how sure it says it is."""
    with open(os.path.join(ROOT, "examples", name, "README.md")) as f:
        return f.read()


def run(name, folder):
    python = environment.interpreter(EXAMPLES[name][0])
    kept = {k: v for k, v in os.environ.items() if not k.startswith(wheel.NOT_OURS)}
    done = subprocess.run([os.path.join(ROOT, "examples", name, "run"), "--mended"],
                          capture_output=True, text=True,
                          stdin=subprocess.DEVNULL, timeout=300,
                          env={**kept, "WHYOOM_EXE": wheel.WHYOOM, "WHYOOM_EXAMPLE_PYTHON": python,
                               "WHYOOM_EXAMPLE_DIR": folder})
    equal(done.returncode, 0, f"exit status, after {done.stdout[-2000:]}{done.stderr[-2000:]}")
    return done.stdout, done.stderr


def example(name):
    _, cause, blamed = EXAMPLES[name]
    with tempfile.TemporaryDirectory(dir=wheel.TMP) as folder:
        out, err = run(name, folder)
        broken, mended = (report(os.path.join(folder, which)) for which in ("broken", "mended"))
    equal(broken["verdict"]["cause"], cause, f"the verdict: {broken['verdict']['summary']}")
    check(broken["verdict"]["confidence"] >= 0.8, f"it is {broken['verdict']['confidence']} sure")
    check(broken["verdict"]["blame"]["function"] in blamed,
          f"blame: {broken['verdict']['blame']['function']}")
    equal(mended["verdict"]["cause"], "healthy", f"the mended one: {mended['verdict']['summary']}")
    equal(mended["processes"][0]["end"], {"how": "exit", "code": 0, "running": False},
          "the mended one's end")
    check(cause in out and f"whyoom: {cause}" in err, "the verdict is printed")
    check(cause in shown(name) and "healthy" in shown(name), "the README shows both reports")


def main():
    name = sys.argv[1]
    try:
        example(name)
    except wheel.Skip as reason:
        print(f"SKIP {name}: {reason}")
        return 77
    except wheel.Failed as reason:
        print(f"FAIL {name}: {reason}")
        return 1
    print(f"ok {name}\n1 passed, 0 failed")
    return 0


sys.exit(main())
