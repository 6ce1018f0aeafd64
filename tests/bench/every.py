#!/usr/bin/env python3
"""tests/bench/run [BUILD] [--rounds N] [--json FILE] [--strict]: every part in turn, and at the end
each figure beside its target, as a table and as one line of JSON.

    recording    CPU time of mode full, beside heaptrack and memray; bytes an event; two threads
    sampled      CPU time of mode sampled, beside the samplers of jemalloc and tcmalloc
    memory       what the recorder keeps resident in its host
    readers      `whyoom check` and `whyoom report`, beside the peers' own readers
    cuda         what is added to CUDA's calls and to PyTorch's reports

Half an hour on two cores, and they should have nothing else to do."""
import json
import os
import subprocess
import sys
import tempfile

import bench

PARTS = ["recording", "sampled", "memory", "readers", "cuda"]


def main():
    p = bench.arguments(__doc__, None)
    options = p.parse_args()
    built = bench.Built(options.build)
    parts, figures = {}, []
    with tempfile.TemporaryDirectory(prefix="whyoom-bench-") as folder:
        for part in PARTS:
            print(f"== {part}", flush=True)
            out = os.path.join(folder, part)
            command = [sys.executable, os.path.join(bench.HERE, part + ".py"), built.build,
                       "--json", out]
            if options.rounds:
                command += ["--rounds", str(options.rounds)]
            status = subprocess.run(command).returncode
            if status or not os.path.exists(out):
                raise SystemExit(f"bench: the part {part} ended with {status}")
            with open(out) as f:
                parts[part] = json.load(f)
            figures += parts[part]["figures"]
            print(flush=True)
    print(bench.figures_table(figures, "all of them"))
    missed = [f["what"] for f in figures if f["met"] is False]
    print(f"\n{sum(f['met'] is True for f in figures)} targets met, {len(missed)} missed\n")
    print(json.dumps({f["what"]: {k: round(f[k], 3) if isinstance(f[k], float) else f[k]
                                  for k in ("value", "unit", "target", "met")}
                      for f in figures}))
    if options.json:
        bench.write_json(options.json, {"versions": bench.versions(), "parts": parts})
    return 1 if options.strict and missed else 0


if __name__ == "__main__":
    sys.exit(main())
