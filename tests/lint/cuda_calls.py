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
    "ALLOC": "allocates {kind}", "ALLOC_AT": "allocates {kind}",
    "ALLOC_PITCHED": "allocates device memory, pitch times height",
    "ALLOC_ARRAY": "allocates an array; the size follows from its description",
    "ALLOC_HANDLE": "allocates memory, by its handle",
    "ALLOC_ASYNC": "allocates memory of a pool, in stream order; within a capture, of the graph",
    "ALLOC_NODE": "allocates memory of a graph, by a node",
    "NODE": "like the node's own call, if it allocates or frees",
    "RETAIN": "adds a reference", "FREE": "frees {kind}",
    "FREE_ASYNC": "frees a block, in stream order",
    "FREE_NODE": "adds a node that frees memory", "MAP": "maps a handle's memory",
    "UNMAP": "unmaps", "CALL": "noted", "LIMIT": "noted",
    "MODULE": "noted, with the device's free memory before and after",
    "CONTEXT_CREATED": "noted, with the device's free memory before and after",
    "CONTEXT_DESTROYED": "frees all memory of the context",
    "PRIMARY_RELEASED": "frees all memory of the device, with the last reference",
    "PRIMARY_RESET": "frees all memory of the device",
    "POOL_CREATED": "noted", "POOL_IMPORTED": "noted",
    "POOL_DESTROYED": "frees all memory of the pool",
    "POOL_CALL": "noted, with the pool's memory before and after",
    "POOL_SET": "noted, for the release threshold",
    "PROBE": "noted, with the answer", "FAILS": "recorded if it runs out of memory",
    "LAUNCH": "samples the memory of graphs", "GRAPH_DESTROYED": "frees the graph's memory",
    "CAPTURE_BEGIN": "stops queries of the driver",
    "CAPTURE_END": "allows queries of the driver again",
    "LOOKUP": "returns wrappers", "LABEL": "names the driver call that it makes",
    "NONE": "-",
}
HEAD = """# CUDA's calls

Made from `shim/cuda/cuda_api.def` by `tests/lint/cuda_calls.py . --write`: do not edit. It
lists what is recorded of the {count} entry points of CUDA's driver and runtime that allocate,
free, map, export or reset memory; [shim.md](shim.md) says how. Tests compare them with NVIDIA's
runtimes and headers from 11.8 to {newest}; `tests/cuda/complete.py` lists names that suggest
memory and are not here, with the reason.

*Asked* is the name for cuGetProcAddress, and the versions for which it answers with this
function; for the runtime's functions, the first version that has it. `(_ptsz)`: there is a twin
for the per-thread default stream, recorded alike. "noted": the call is recorded, with its
argument and result. `-`: not wrapped.
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
