"""message.py - PyTorch's out-of-memory message, and sizes as it prints them."""
import re

from wheel import check, equal

KIB, MIB, GIB = 1 << 10, 1 << 20, 1 << 30
SIZE = r"([\d.]+ (?:bytes|KiB|MiB|GiB))"
FIGURES = {
    "segment": rf"Tried to allocate {SIZE}\.",
    "total": rf"has a total capacity of {SIZE} of which",
    "free": rf"of which {SIZE} is free\.",
    "in use": rf"Including non-PyTorch memory, this process has {SIZE} memory in use\.",
    "allocated": rf"Of the allocated memory {SIZE} is allocated by PyTorch",
    "unallocated": rf"and {SIZE} is reserved by PyTorch but unallocated\.",
}


def printed(size):
    """As PyTorch's format_size()."""
    if size <= KIB:
        return f"{size} bytes"
    for unit, name, most in ((KIB, "KiB", MIB), (MIB, "MiB", GIB), (GIB, "GiB", None)):
        if most is None or size <= most:
            return f"{size / unit:.2f} {name}"


def figures(message):
    """The sizes in a message, as text; every one must be there."""
    check("CUDA out of memory" in message, f"no message of an out-of-memory: {message[:300]!r}")
    found = {name: re.search(pattern, message) for name, pattern in FIGURES.items()}
    for name, match in found.items():
        check(match, f"{name!r} is missing in {message!r}")
    return {name: match[1] for name, match in found.items()}


def in_private_pools(message):
    """What of 'allocated' is in the pools of graphs, live or not."""
    match = re.search(rf"with {SIZE} allocated in private pools", message)
    return match and match[1]


def others(message):
    """Other processes on the device: pid to size."""
    return {int(pid): size for pid, size in
            re.findall(rf"Process (\d+) has {SIZE} memory in use\.", message)}


def same(report, message, idle_in_pools=0):
    """The report's figures are those of the message, at the precision that it prints.
    idle_in_pools: bytes of private pools that no block has; the message counts them as
    allocated."""
    said, device, failure = figures(message), report["device"], report["failure"]
    equal(printed(failure["segment_bytes"]), said["segment"], "asked of the device")
    equal(printed(device["total_bytes"]), said["total"], "the device's memory")
    equal(printed(device["free_bytes"]), said["free"], "free on the device")
    taken = device["total_bytes"] - device["free_bytes"]
    if not others(message):
        equal(printed(taken), said["in use"], "in use by the process")
    allocated = device["allocated_bytes"] + idle_in_pools
    equal(printed(allocated), said["allocated"], "allocated by PyTorch")
    equal(printed(device["reserved_bytes"] - allocated), said["unallocated"],
          "reserved, not allocated")
