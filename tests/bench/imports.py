#!/usr/bin/env python3
"""imports.py [BUILD] [--rounds N] [--only NAME]: what recording adds to the import of a library,
in modes full and sampled: CPU time, bytes of trace, events and distinct stacks.

Imports make more stacks than anything else that programs do: constructors of libraries and modules
that are compiled, each met once. Libraries are looked for in the interpreter and in the
environments of the other tests (~/.cache/whyoom-tests); those that are nowhere are left out, as
this part installs nothing. PyTorch needs a GPU's libraries: it runs on the simulated device, with
and without the recorder.

Runs without the recorder and in both modes take turns in each round; a first round does not count.
Figures are medians over the rounds, added time is that of each round."""
import glob
import json
import os
import shutil
import statistics
import subprocess

import bench

CACHE = os.path.expanduser("~/.cache/whyoom-tests")
LIBRARIES = ["torch", "numpy", "pandas", "sklearn", "jax", "xgboost", "onnxruntime", "fastapi",
             "transformers", "pyarrow", "chromadb"]
TARGETS = {"torch": (25, 5, 20), "sklearn": (30, None, None), "pandas": (30, None, None),
           "jax": (30, None, None), "xgboost": (30, None, None), "onnxruntime": (30, None, None)}


def interpreter_of(name):
    """An interpreter that finds the library; None: there is none."""
    for root in [None, *sorted(glob.glob(os.path.join(CACHE, "*")))]:
        python = os.path.join(root, "bin", "python") if root else bench.PYTHON
        places = glob.glob(os.path.join(root, "lib", "python3*", "site-packages", name)) \
            if root else []
        if root and not places or not os.access(python, os.X_OK):
            continue
        found = subprocess.run(
            [python, "-c", f"import importlib.util as u; exit(not u.find_spec('{name}'))"],
            env=bench.clean_env(), stderr=subprocess.DEVNULL)
        if not found.returncode:
            return python
    return None


def environment(built, mode):
    device = os.path.join(built.build, "shim", "simgpu", "libwhyoom-simgpu.so")
    env = dict(bench.clean_env(), WHYOOM_SIMGPU="4GiB")
    if mode == "none":
        return dict(env, LD_PRELOAD=device)
    return dict(env, LD_PRELOAD=f"{built.shim}:{device}", WHYOOM_QUIET="1", WHYOOM_MODE=mode)


def counts(built, trace):
    """Bytes, events and distinct stacks of a directory of traces."""
    size = sum(os.stat(f).st_size for f in glob.glob(os.path.join(trace, "*.whyoom*")))
    said = subprocess.run([built.whyoom, "check", "--format", "json", trace], capture_output=True,
                          text=True, env=bench.clean_env())
    files = json.loads(said.stdout)["processes"]
    return size, sum(f["events"] for f in files), sum(f["stacks"] for f in files)


def measure(built, name, python, rounds):
    cpu = {"none": [], "full": [], "sampled": []}
    told = {}
    for r in range(rounds + 1):
        for mode in cpu:
            where = os.path.join(bench.WORK, "run")
            shutil.rmtree(where, ignore_errors=True)
            os.makedirs(where)
            trace = os.path.join(where, "trace")
            env = dict(environment(built, mode), WHYOOM_DIR=trace)
            seconds = bench.spent([python, "-c", f"import {name}"], env, where)[0]
            if r:
                cpu[mode].append(seconds)
            elif mode != "none":
                told[mode] = counts(built, trace)
        bench.say(f"  {name}: round {r} of {rounds}" + ("" if r else " (warms up)"))
    return cpu, told


def added(cpu, mode):
    return [100 * (b / a - 1) for a, b in zip(cpu["none"], cpu[mode])]


def main():
    p = bench.arguments(__doc__, 5)
    p.add_argument("--only", action="append", choices=LIBRARIES)
    args = p.parse_args()
    built = bench.Built(args.build)
    bench.become_reaper()
    os.makedirs(bench.WORK, exist_ok=True)
    figures = []
    print(f"{bench.processor()}\n{'import':14} {'mode':8} {'CPU s':>6} {'added':>7} {'MiB':>7} "
          f"{'events':>9} {'stacks':>9}")
    for name in args.only or LIBRARIES:
        python = interpreter_of(name)
        if not python:
            bench.say(f"  {name}: nowhere")
            continue
        cpu, told = measure(built, name, python, args.rounds)
        print(f"{name:14} {'none':8} {statistics.median(cpu['none']):6.2f}", flush=True)
        targets = TARGETS.get(name, (None, None, None))
        for mode, target in (("full", targets[0]), ("sampled", targets[1])):
            size, events, stacks = told[mode]
            values = added(cpu, mode)
            print(f"{name:14} {mode:8} {statistics.median(cpu[mode]):6.2f} "
                  f"{statistics.median(values):6.1f}% "
                  f"{size / (1 << 20):7.1f} {events:9} {stacks:9}",
                  flush=True)
            figures.append(bench.figure(f"import {name}, {mode}: added CPU",
                                        statistics.median(values), target, "%",
                                        between=[min(values), max(values)], precision=1))
        figures.append(bench.figure(f"import {name}, full: trace", told["full"][0] / (1 << 20),
                                    targets[2], "MiB", precision=1))
    print(bench.figures_table(figures))
    if args.json:
        with open(args.json, "w") as f:
            json.dump({"versions": bench.versions(), "figures": figures}, f, indent=1)
    raise SystemExit(args.strict and any(f["met"] is False for f in figures))


if __name__ == "__main__":
    main()
