"""_watch.py - this process's room and its forecast, as `whyoom watch` sees them in the trace. Owns
the cache of the latest look, and the thread and the child that look in the background if asked."""

import dataclasses
import math
import os
import re
import subprocess
import threading
import time

from whyoom import _marks, _program

_SAMPLE = re.compile(r"(\w+)(?:\{(.*)\})? (\S+)")
_LABEL = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)"')
_LAST = "whyoom_watch_answers_total "  # the last sample of a page


@dataclasses.dataclass(frozen=True)
class WatchedSpace:
    """A space ("host", "cuda:0", "torch:0") of the process. Bytes, and seconds from the look.

    limit names the limit that is reached first; without one, limit_bytes, used_bytes and
    headroom_bytes are None. growth_bytes_per_second and the three times are None until the
    forecast begins (a minute after the start); the times are math.inf where nothing grows."""
    space: str
    limit: str | None
    limit_bytes: int | None
    used_bytes: int | None
    headroom_bytes: int | None
    live_bytes: int | None
    reserved_bytes: int | None
    growth_bytes_per_second: float | None
    full_in_seconds: float | None
    full_soonest_seconds: float | None
    full_latest_seconds: float | None
    alarm: bool

    @property
    def used_share(self):
        """Of the limit, from 0 to 1; None without a limit."""
        return self.used_bytes / self.limit_bytes if self.limit_bytes else None


@dataclasses.dataclass(frozen=True)
class WatchedSite:
    """A call site that grows, or is among the largest."""
    function: str
    file: str | None
    line: int | None
    live_bytes: int
    growth_bytes_per_second: float | None


@dataclasses.dataclass(frozen=True)
class Watched:
    """A look at a process. `raw` has every metric of docs/watch.md: {name: [(labels, value)]}."""
    pid: int
    spaces: tuple[WatchedSpace, ...]
    sites: tuple[WatchedSite, ...]
    resident_bytes: int | None
    requests_in_flight: int | None
    refused: int
    dropped: int
    time: float  # of the look: time.monotonic()
    raw: dict = dataclasses.field(repr=False, compare=False)

    @property
    def tightest(self):
        """The space that will be full first; if none grows, the one with the largest used share.
        None: no space has a limit."""
        limited = [s for s in self.spaces if s.limit_bytes]
        return min(limited, default=None, key=lambda s: (
            math.inf if s.full_in_seconds is None else s.full_in_seconds, -s.used_share))

    @property
    def alarm(self):
        """Whether growth that lasted will fill a space soon, as docs/watch.md says."""
        return any(s.alarm for s in self.spaces)

    @property
    def headroom_bytes(self):
        """Of the tightest space; None without a limit."""
        return self.tightest.headroom_bytes if self.tightest else None

    @property
    def used_share(self):
        """Of the tightest space's limit, from 0 to 1; 0 without a limit."""
        return self.tightest.used_share if self.tightest else 0.0

    @property
    def full_in_seconds(self):
        """Of the tightest space; None: not known yet, math.inf: nothing grows."""
        return self.tightest.full_in_seconds if self.tightest else None


def watch(interval=5.0, *, background=False, warm_up=60.0):
    """The latest look at this process, at most `interval` seconds old; None where nothing records.

    A look starts `whyoom watch --once`, which reads the trace from its start. With background, a
    child follows the trace instead and a thread takes what it says: then no call waits, each look
    costs only what is new, and the answer is None until the first. Nothing is forecast in the
    process's first `warm_up` seconds. Safe in threads. Raises Error with whyoom's message."""
    if not _marks.recording():
        return None
    return (_watcher.follow if background else _watcher.look)(interval, warm_up)


class _Watcher:
    def __init__(self):
        self.lock = threading.Lock()
        self.latest = self.error = self.thread = self.child = None
        self.looked = -math.inf

    def look(self, interval, warm_up):
        with self.lock:  # callers at once share a look
            if not self.thread and time.monotonic() - self.looked >= interval:
                # /dev/stdout: no file to clean up
                page = _program.run("watch", "--once", "--textfile", "/dev/stdout",
                                    "--warm-up", str(warm_up), str(os.getpid()))
                self.latest = _take(page)
                self.looked = time.monotonic()
            return self.latest

    def follow(self, interval, warm_up):
        with self.lock:
            if not self.thread:
                self.thread = threading.Thread(target=self.take, args=(interval, warm_up),
                                               daemon=True, name="whyoom.watch")
                self.thread.start()
            if self.error:
                self.thread, error, self.error = None, self.error, None
                raise error
            return self.latest

    def take(self, interval, warm_up):
        """In the thread: start the child and take each of its pages."""
        reader, writer = os.pipe()
        try:
            with subprocess.Popen(
                    [_program.program(), "watch", "--interval", str(max(interval, 0.1)),
                     "--warm-up", str(warm_up), "--textfile", f"/proc/self/fd/{writer}",
                     str(os.getpid())],
                    stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                    pass_fds=[writer], env=_program.environment()) as child:
                os.close(writer)
                writer = None
                self.child = child
                self.read(reader)
                said = child.stderr.read().decode(errors="replace").strip()
            self.error = _program.Error(said.removeprefix("whyoom: ") or "whyoom watch ended",
                                        child.returncode)
        except (OSError, _program.Error) as error:
            self.error = _program.Error(str(error))
        finally:
            if writer is not None:
                os.close(writer)

    def read(self, reader):
        page = []
        with open(reader, errors="replace") as lines:
            for line in lines:
                page.append(line)
                if line.startswith(_LAST):
                    self.latest = _take("".join(page))
                    self.looked = time.monotonic()
                    page = []


def _unescape(text):
    return re.sub(r"\\(.)", lambda m: "\n" if m[1] == "n" else m[1], text)


def _parse(page):
    raw = {}
    for line in page.splitlines():
        found = None if line.startswith("#") else _SAMPLE.fullmatch(line)
        if found:
            labels = {k: _unescape(v) for k, v in _LABEL.findall(found[2] or "")}
            raw.setdefault(found[1], []).append((labels, float(found[3])))
    return raw


def _take(page):
    """A look from a page of metrics."""
    raw = _parse(page)

    def one(name, kind=float, **labels):
        for had, value in raw.get("whyoom_" + name, ()):
            if labels.items() <= had.items():
                return None if math.isnan(value) else kind(value)
        return None

    spaces = []
    for labels, _ in raw.get("whyoom_memory_live_bytes", ()):
        space = labels["space"]
        limit = next((had["limit"] for had, _ in raw.get("whyoom_memory_limit_bytes", ())
                      if had["space"] == space), None)
        spaces.append(WatchedSpace(
            space, limit,
            *(one(f"memory_{name}_bytes", int, space=space)
              for name in ("limit", "used", "headroom", "live", "reserved")),
            one("memory_growth_bytes_per_second", space=space),
            *(one("time_to_failure_seconds", space=space, bound=bound)
              for bound in ("expected", "soonest", "latest")),
            one("memory_alarm", space=space) == 1))
    sites = [WatchedSite(had["function"], had.get("file") or None,
                         int(had["line"]) if had.get("line") else None, int(value),
                         one("site_growth_bytes_per_second", **had))
             for had, value in raw.get("whyoom_site_live_bytes", ())]
    return Watched(os.getpid(), tuple(spaces), tuple(sites),
                   one("process_resident_bytes", int), one("requests_in_flight", int),
                   one("refused_total", int) or 0, one("events_dropped_total", int) or 0,
                   time.monotonic(), raw)


_watcher = _Watcher()


def _forked():
    """The child has a trace of its own, and none of the threads."""
    global _watcher
    _watcher = _Watcher()


os.register_at_fork(after_in_child=_forked)
