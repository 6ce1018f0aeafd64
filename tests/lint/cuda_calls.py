#!/usr/bin/env python3
"""cuda_calls.py SOURCE LIBRARY: docs/cuda-calls.md says what shim/cuda/cuda_api.def says, and the
simulated device exports every row of it. cuda_calls.py SOURCE --write makes the page so."""
import os
import re
import subprocess
import sys

SOURCE = sys.argv[1]
sys.path.insert(0, os.path.join(SOURCE, "tests", "lib"))
import cuda_table  # noqa: E402

PAGE = os.path.join(SOURCE, "docs", "cuda-calls.md")
KINDS = {"DEVICE": "device memory", "MANAGED": "managed memory",
         "PINNED": "page-locked host memory",
         "REGISTERED": "registered host memory", "VA": "an address range, which is no memory",
         "FOREIGN": "another's memory, at an address",
         "FOREIGN_HANDLE": "another's memory, by a handle",
         "MULTICAST": "a multicast object, by its handle", "ARRAY": "an array",
         "HANDLE": "a reference to memory, by its handle",
         "ADDRESS": "the block at this address"}
EFFECTS = {
    "ALLOC": "takes {kind}", "ALLOC_AT": "takes {kind}",
    "ALLOC_PITCHED": "takes device memory, pitch times height",
    "ALLOC_ARRAY": "takes an array, its size by its description",
    "ALLOC_HANDLE": "takes memory, by its handle",
    "ALLOC_ASYNC": "takes memory of a pool, in a stream's order; within a capture, of the graph",
    "ALLOC_NODE": "takes memory of a graph, by a node",
    "NODE": "as the node's own call, where it has memory",
    "RETAIN": "one reference more", "FREE": "gives back {kind}",
    "FREE_ASYNC": "gives a block back, in a stream's order",
    "FREE_NODE": "a node that gives memory back", "MAP": "a handle's memory becomes visible",
    "UNMAP": "mappings end", "CALL": "noted", "LIMIT": "noted",
    "MODULE": "noted, with the device's free memory before and after",
    "CONTEXT_CREATED": "noted, with the device's free memory before and after",
    "CONTEXT_DESTROYED": "gives back all that the context has",
    "PRIMARY_RELEASED": "gives back all of the device's, with the last reference",
    "PRIMARY_RESET": "gives back all of the device's",
    "POOL_CREATED": "noted", "POOL_IMPORTED": "noted",
    "POOL_DESTROYED": "gives back all that the pool has",
    "POOL_CALL": "noted, with what the pool holds before and after",
    "POOL_SET": "noted, where it is the release threshold",
    "PROBE": "noted, with the answer", "FAILS": "recorded when it runs out of memory",
    "LAUNCH": "the graphs' memory is looked at", "GRAPH_DESTROYED": "gives back what the graph has",
    "CAPTURE_BEGIN": "from here on the driver is not asked anything",
    "CAPTURE_END": "from here on it is",
    "LOOKUP": "its answers are wrapped", "LABEL": "names the driver's call that it makes",
    "NONE": "-",
}
HEAD = """# CUDA's calls

Made from `shim/cuda/cuda_api.def` by `tests/lint/cuda_calls.py . --write`: do not edit. It says
what is recorded of each of the {count} entry points of CUDA's driver and runtime that give, take, map,
export or reset memory; [shim.md](shim.md) says how. They are compared with what NVIDIA's runtimes
and headers export and declare, from 11.8 to {newest}; a name that sounds of memory and is not here is
in `tests/cuda/complete.py`, with the reason.

It is the program that takes and gives back. *Asked* is the name for cuGetProcAddress, and the
versions for which it answers with this function; for the runtime's own, since when it is there.
`(_ptsz)`: there is a twin for the per-thread default stream, recorded alike. "noted": a record that
the call was made, with its argument and result. `-`: not wrapped.
"""


def version(number):
    return f"{number // 1000}.{number % 1000 // 10}"


def versions(row):
    words = f"since {version(row.start)}"
    return (words if row.end == cuda_table.ANY else f"since {version(row.start)}, before "
            f"{version(row.end + 1)}")


def effect(row):
    name, _, arguments = row.effect.partition("(")
    kind = arguments.split(",")[0].rstrip(")")
    if name not in EFFECTS:
        sys.exit(f"{row.symbol}: tests/lint/cuda_calls.py has no words for the effect {name}")
    return EFFECTS[name].format(kind=KINDS.get(kind, kind))


def page():
    rows, newest = cuda_table.read(SOURCE)
    text = [HEAD.format(count=len(rows), newest=version(newest))]
    section = None
    for row in rows:
        if row.symbol.endswith("_ptsz") and row.ptsz:
            continue
        if row.section != section:
            section = row.section
            whose, title = section.split(": ", 1)
            text.append(f"\n## {whose.capitalize()}: {re.split(r'[.:] ', title)[0]}\n\n| call | "
                        f"asked | recorded |\n|---|---|---|\n")
        name = f"`{row.symbol}`" + (" (`_ptsz`)" if row.ptsz else "")
        asked = f"`{row.asked}` {versions(row)}" if row.library == "DRIVER" else versions(row)
        text.append(f"| {name} | {asked} | {effect(row)} |\n")
    return "".join(text)


def exported(library):
    out = subprocess.run(["nm", "-D", "--defined-only", library], capture_output=True, text=True,
                         check=True).stdout
    return {line.split()[-1].split("@")[0] for line in out.splitlines()}


def main():
    if "--write" in sys.argv:
        with open(PAGE, "w") as f:
            f.write(page())
        return 0
    with open(PAGE) as f:
        problems = [] if f.read() == page() else [
            "docs/cuda-calls.md is not what shim/cuda/cuda_api.def says: tests/lint/cuda_calls.py "
                ". --write"]
    names = {row.symbol for row in cuda_table.read(SOURCE)[0]}
    problems += [f"the simulated device does not export {name}"
                 for name in sorted(names - exported(sys.argv[2]))]
    print("\n".join(problems
                    + [f"{1 + len(names) - len(problems)} passed, {len(problems)} failed"]))
    return bool(problems)


sys.exit(main())
