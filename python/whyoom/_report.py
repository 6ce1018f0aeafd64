"""_report.py - `whyoom report` as objects. Owns the shape of a report, which follows
report-schema.json (whyoom/share/whyoom in the wheel) member by member; there each is described.

Sizes are bytes, times seconds since the process's start. Spaces are "host", "cuda:0", "torch:0" and
so on. Stacks have the innermost frame first."""

import html
import json
import os

from whyoom import _program, _tables
from whyoom._shape import known_as, read, shape


@shape
class Frame:
    """A frame of a stack. file and line are None where they are not known."""
    function: str
    file: str | None
    line: int | None

    def __str__(self):
        if not self.file:
            return self.function
        where = self.file if self.line is None else f"{self.file}:{self.line}"
        return f"{self.function} ({where})"


@shape
class End:
    """How a process ended: "exit" with a status, "signal" with its number, "detached", or
    "unknown"."""
    how: str
    code: int | None
    running: bool | None = None


@shape
class ProcessMemory:
    """What a process held of the host, or of a GPU, at the failure, and at most."""
    space: str
    gpu: int | None
    held_bytes: int
    peak_bytes: int


@shape
class Process:
    """A recorded process. `dropped` events could not be recorded."""
    pid: int
    cmdline: str
    trace: str
    events: int
    dropped: int
    started: str
    seconds: float
    end: End
    parent_pid: int | None = None
    refused_seconds: float | None = None
    resident_bytes: int | None = None
    memory: tuple[ProcessMemory, ...] = ()


@shape
class ProspectSpace:
    """Whether a space grows, and when what is left of its limit will be used up."""
    space: str
    state: str
    live_bytes: int
    left_bytes: int | None
    bytes_per_second: float | None
    expected_seconds: float | None
    soonest_seconds: float | None
    latest_seconds: float | None
    alarm: bool


@shape
class Prospect:
    """What lies ahead of a process that still runs, `seconds` after its start."""
    seconds: float
    spaces: tuple[ProspectSpace, ...]


@shape
class Failure:
    """The request that was refused, or the kill. kind is "none" where nothing failed."""
    kind: str
    pid: int | None
    seconds: float | None
    space: str | None
    requested_bytes: int | None
    segment_bytes: int | None
    limit_kind: str
    stack: tuple[Frame, ...]
    limit_bytes: int | None = None
    usage_bytes: int | None = None
    mappings: int | None = None
    evidence: str | None = None


@shape
class Recovered:
    """A refused request that was granted later ("retried") or that the program got over."""
    seconds: float
    requested_bytes: int
    refused: int
    how: str
    stack: tuple[Frame, ...]
    space: str | None = None
    segment_bytes: int | None = None


@shape
class Period:
    """Older events of a recording, as sums."""
    from_seconds: float
    until_seconds: float
    acquired: int
    acquired_bytes: int
    released: int
    released_bytes: int
    most_bytes: int


@shape
class Checkpoint:
    """Older events were replaced by these sums."""
    until_seconds: float
    damaged: bool
    lost: bool
    trace_bytes: int
    acquired: int
    acquired_bytes: int
    released: int
    released_bytes: int
    most_bytes: int
    left_out: int
    periods: tuple[Period, ...]


@shape
class Rights:
    """Events or children are missing because the process gave up rights."""
    given_up: str
    seconds: float
    not_recorded_since_seconds: float
    children: int


@shape
class Sampled:
    """Small blocks were recorded as a sample."""
    every_bytes: int
    exact_from_bytes: int
    error_bytes: int
    coarser_times: int | None = None
    coarsest_every_bytes: int | None = None
    coarsest_exact_from_bytes: int | None = None


@shape
class Attached:
    """The process had run before it was recorded; what it held then has no call site."""
    after_seconds: float | None
    there_bytes: int
    freed_bytes: int


@shape
class Coverage:
    """What was recorded, and why what was not."""
    malloc_owner: str | None
    hooks: tuple[str, ...]
    python: str | None
    cuda: str | None
    torch: str | None
    trace_complete: bool
    lost_events: int | None = None
    bound: str | None = None
    paused_seconds: float | None = None
    paused_bytes: int | None = None
    checkpoint: Checkpoint | None = None
    rights: Rights | None = None
    attached: Attached | None = None
    sampled: Sampled | None = None
    gap: str | None = None


@shape
class Blame:
    """The call site to blame, and the bytes of its blocks."""
    function: str
    file: str | None
    line: int | None
    bytes: int
    stack: tuple[Frame, ...]
    error_bytes: int | None = None

    __str__ = Frame.__str__


@shape
class Evidence:
    """A number that the verdict rests on. unit is "bytes", "blocks", "share", "ns" or "1"."""
    fact: str
    value: float
    unit: str


@shape
class Fix:
    """What to change. for_ is a framework, or "any"."""
    for_: str = known_as("for")
    text: str = ""


@shape
class RunnerUp:
    """The second cause."""
    cause: str
    confidence: float


@shape
class Candidate:
    """A cause among which the verdict was chosen. Numbers are shares of 1."""
    cause: str
    strength: float
    share: float
    further: float
    score: float
    confidence: float
    fits: bool
    admissible: bool


@shape
class Verdict:
    """The cause, its confidence from 0 to 1, and the advice. `next`: what to record next time."""
    cause: str
    confidence: float
    summary: str
    space: str
    blame: Blame | None
    evidence: tuple[Evidence, ...]
    fixes: tuple[Fix, ...]
    runner_up: RunnerUp | None
    next: str | None = None
    candidates: tuple[Candidate, ...] = ()


@shape
class LedgerRow:
    """A row of a ledger."""
    class_: str = known_as("class")
    bytes: int = 0


@shape
class Ledger:
    """Where the bytes of a limit went: rows and unaccounted_bytes add up to limit_bytes."""
    space: str
    pid: int
    limit_kind: str
    limit_bytes: int
    at: str
    rows: tuple[LedgerRow, ...]
    unaccounted_bytes: int
    sample_age_seconds: float | None = None


@shape
class Site:
    """A call site, and its live blocks on a device."""
    function: str
    file: str | None
    line: int | None
    bytes: int
    blocks: int
    stack: tuple[Frame, ...]
    largest_bytes: int | None = None


@shape
class Unattributed:
    """What a device's memory was used for, at a time, without an event that says so."""
    seconds: float
    bytes: int
    explained_bytes: int
    free_bytes: int
    own_bytes: int | None
    others_bytes: int | None


@shape
class Device:
    """The memory of a GPU."""
    space: str
    at: str
    unattributed: tuple[Unattributed, ...]
    free_bytes: int | None
    total_bytes: int | None
    explained_bytes: int
    unattributed_bytes: int | None
    live_bytes: int
    live_blocks: int
    holes: int
    hole_bytes: int
    largest_hole_bytes: int
    sites: tuple[Site, ...]
    seconds: float | None = None
    others_bytes: int | None = None
    own_bytes: int | None = None
    reserved_bytes: int | None = None
    allocated_bytes: int | None = None
    segments: int | None = None
    segment_bytes: int | None = None
    attempts: int | None = None
    call: str | None = None
    below: str | None = None
    retried: int | None = None
    failed_otherwise: int | None = None


@shape
class Space:
    """Memory beside the host's, and what lived in it at the device's moment, and at most."""
    space: str
    live_bytes: int
    live_blocks: int
    peak_bytes: int
    peak_seconds: float


@shape
class Phase:
    """What the process was at. marked: the program said so."""
    phase: str
    start_seconds: float
    end_seconds: float
    live_bytes: int
    marked: bool


@shape
class Request:
    """A request; end_seconds is None while it is in flight."""
    id: int | None
    name: str | None
    thread: int
    task: int
    start_seconds: float
    end_seconds: float | None
    acquired_bytes: int
    peak_bytes: int
    held_bytes: int


@shape
class Requests:
    """The requests until the failure. source: what tells one from the other."""
    source: str
    begun: int
    finished: int
    most_at_once: int
    in_flight: tuple[Request, ...]
    ended: tuple[Request, ...]


@shape
class Stage:
    """What a stage of the work held at the moment, and at most."""
    stage: str
    held_bytes: int
    peak_bytes: int
    peak_seconds: float
    acquired_bytes: int | None = None


@shape
class WhatIf:
    """A change, whether all would have fitted with it, and the room that would have been left."""
    change: str
    fits: bool
    headroom_bytes: int


@shape
class Damage:
    """What is missing of damaged traces."""
    bytes: int
    share: float
    from_seconds: float | None
    to_seconds: float | None
    threads: int | None
    what: tuple[str, ...]
    files: int
    files_left_out: int


@shape
class Report:
    """What `whyoom report` says. damage is None where the traces are whole; device is None where
    no GPU was used; log is the explained log's JSON."""
    schema: int
    damage: Damage | None
    processes: tuple[Process, ...]
    failure: Failure
    recovered: tuple[Recovered, ...]
    coverage: Coverage
    verdict: Verdict
    ledger: tuple[Ledger, ...]
    what_if: tuple[WhatIf, ...]
    device: Device | None = None
    other_devices: tuple[Device, ...] = ()
    spaces: tuple[Space, ...] = ()
    host: str | None = None
    labels: dict | None = None
    prospect: Prospect | None = None
    log: dict | None = None
    phases: tuple[Phase, ...] = ()
    requests: Requests | None = None
    stages: tuple[Stage, ...] = ()

    @property
    def cause(self):
        return self.verdict.cause

    @property
    def blame(self):
        """The call site to blame, or None."""
        return self.verdict.blame

    def text(self, verbose=False):
        """The report as `whyoom report` prints it."""
        return self._whyoom("report", *(["--verbose"] if verbose else []))

    def html(self):
        """The page, one file that needs no network."""
        return self._whyoom("report", "--format", "html")

    def tables(self):
        """Rows of the report's lists, as dictionaries: {"ledger": [...], ...}."""
        return _tables.tables(self)

    def to_pandas(self, name=None):
        """A pandas.DataFrame of one of tables(), or a dictionary of all. Needs pandas."""
        return _tables.frames(self, name)

    def __str__(self):
        return self.text()

    def _repr_html_(self):
        """The page in a notebook, where it can run its own script and nothing else."""
        try:
            page = self.html()
        except _program.Error as error:
            return f"<pre>{html.escape(str(error))}</pre>"
        return ('<iframe sandbox="allow-scripts" style="width:100%;height:640px;border:0" '
                f'srcdoc="{html.escape(page)}"></iframe>')

    def _whyoom(self, command, *options):
        asked = self.__dict__.get("_asked")
        if not asked:
            raise _program.Error("this report was made from JSON: it does not know its trace")
        return _program.run(command, *options, *asked)

    @classmethod
    def from_json(cls, data):
        """A report from what `whyoom report --format json` wrote: text, or as json.load() has
        it."""
        return read(cls, json.loads(data) if isinstance(data, (str, bytes)) else data)


def report(*traces, log=None, timeout=None):
    """The report on a directory that `whyoom run` made, or on files of it.

    log: also explain this log of the same run. timeout: seconds, None: any time. Raises Error
    with whyoom's message."""
    if not traces:
        raise TypeError("report() needs a directory or a trace")
    # absolute: text() and html() ask again, perhaps from another directory
    asked = ([] if log is None else ["--log", os.path.abspath(log)]) + [
        os.path.abspath(t) for t in traces]
    made = Report.from_json(_program.run("report", "--format", "json", *asked, timeout=timeout))
    made.__dict__["_asked"] = asked
    return made
