"""_measure.py - what a marked stretch of a recorded program held at most, what it left behind, and
which lines did it. Reads the events that `whyoom export --format jsonl` writes, of all threads of
one process, between the begin and the end of one request."""

import array
import dataclasses
import json
import os
import re
import subprocess
import sysconfig

from whyoom import _program

_STACK = re.compile(r'\{"type": "stack", "id": (\d+)')
# Lines of these are nobody's own code.
_LIBRARIES = tuple({os.path.join(p, "") for p in (sysconfig.get_path("stdlib"),
                                                  sysconfig.get_path("platstdlib"))})


@dataclasses.dataclass(frozen=True)
class Site:
    """Blocks of one stack: their bytes, their number, and the frames, innermost first, each a
    dictionary of function, file and line."""
    bytes: int
    blocks: int
    frames: tuple

    @property
    def blamed(self):
        """The innermost frame of the caller's own code; else of Python's; else of all."""
        python = [f for f in self.frames if (f["file"] or "").endswith(".py")]
        own = [f for f in python if not is_library(f["file"])]
        return (own or python or list(self.frames) or [None])[0]


@dataclasses.dataclass(frozen=True)
class Measured:
    """peak_bytes: of blocks acquired in the stretch, alive at a time, at most; leaked_bytes: of
    them, alive at its end. Sites are the largest first, a site for each stack."""
    peak_bytes: int
    peak: tuple
    leaked_bytes: int
    leaked: tuple


def is_library(file):
    return "site-packages" in file or "dist-packages" in file or file.startswith(_LIBRARIES)


def measure(trace, name, space="host", pid=None):
    """Measure the first request `name` in the trace of a process. None: it was not begun there, or
    has no end."""
    command = [_program.program(), "export", "--format", "jsonl", "--space", space]
    command += ["--pid", str(pid)] if pid else []
    with subprocess.Popen([*command, os.fspath(trace)], stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                          errors="replace", env=_program.environment()) as process:
        stretch = _Stretch(name)
        ended = stretch.read(process.stdout)
        process.stdout.close()  # the rest is not wanted: the exporter ends
        said = process.stderr.read().strip()
    if not ended:
        if process.returncode:
            raise _program.Error(said.removeprefix("whyoom: "), process.returncode)
        return None
    return stretch.result()


class _Stretch:
    """The events of the stretch, as far as they are read."""

    def __init__(self, name):
        self.begin = '"phase": "begin", "what": "request"'
        self.name = f'"name": {json.dumps(name)}'
        self.stacks = {}  # id: its line, as most are never asked for
        self.live = {}  # key: (bytes, stack)
        self.deltas, self.of = array.array("q"), array.array("q")

    def read(self, lines):
        """Whether the end was found."""
        number = None
        for line in lines:
            found = _STACK.match(line)
            if found:
                self.stacks[int(found[1])] = line
            elif number is None:
                if self.begin in line and self.name in line:
                    number = json.loads(line)["id"]
            elif '"type": "event"' in line:
                event = json.loads(line)
                if event["kind"] != "mark":
                    self.take(event)
                elif event["phase"] == "end" and event["id"] == number:
                    return True
        return False

    def take(self, event):
        kind = event["kind"]
        if kind in ("alloc", "map"):
            key = event["block"] if kind == "alloc" else event["address"]
            self.add(key, event.get("bytes", event["size"]), event["stack"])
        elif kind in ("free", "unmap"):
            # a release without a block is of one that was not sampled
            key = event.get("block") if kind == "free" else event["address"]
            if key in self.live:
                bytes, stack = self.live.pop(key)
                self.deltas.append(-bytes)
                self.of.append(stack)
        elif kind == "unfree" and event["block"] not in self.live:
            self.add(event["block"], event.get("bytes", event["size"]), event["stack"])

    def add(self, key, bytes, stack):
        self.live[key] = bytes, stack
        self.deltas.append(bytes)
        self.of.append(stack)

    def result(self):
        now = peak = at = 0
        for i, delta in enumerate(self.deltas):
            now += delta
            if now > peak:
                peak, at = now, i + 1
        sums = {}
        for delta, stack in zip(self.deltas[:at], self.of[:at]):
            bytes, blocks = sums.get(stack, (0, 0))
            sums[stack] = bytes + delta, blocks + (1 if delta > 0 else -1)
        left = {}
        for size, stack in self.live.values():
            bytes, blocks = left.get(stack, (0, 0))
            left[stack] = bytes + size, blocks + 1
        return Measured(peak, self.sites(sums), sum(b for b, _ in left.values()),
                        self.sites(left))

    def sites(self, sums):
        made = [Site(bytes, blocks, tuple(json.loads(self.stacks[stack])["frames"])
                     if stack in self.stacks else ())
                for stack, (bytes, blocks) in sums.items() if bytes > 0]
        return tuple(sorted(made, key=lambda s: -s.bytes))
