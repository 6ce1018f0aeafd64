"""judge.py - asks whyoom about a trace, and compares the answer with the label.

Makes one record of a case, a plain dictionary: --results writes it, and the figures use nothing
else."""
import json
import os
import re
import subprocess
import time

from consistent import contradictions
from corpus import causes, HERE, Failure, framework

SCHEMA = os.path.join(HERE, "..", "..", "analyzer", "report", "schemas",
                      "report-schema.json.in")

try:
    import jsonschema
except ImportError:
    jsonschema = None


def report(whyoom, trace, environment):
    started = time.monotonic()
    done = subprocess.run([whyoom, "report", "--format", "json", trace], capture_output=True,
                          text=True, env=environment)
    if done.returncode:
        raise Failure("report: " + done.stderr.strip())
    return json.loads(done.stdout), time.monotonic() - started


def simple(function):
    """A function's name without parameters; namespaces stay."""
    name = re.sub(r"\(.*|\[abi:\w+\]", "", function)
    return name.split(" ")[-1]


def matches(function, wanted):
    name = simple(function)
    return any(name == w or name.endswith("::" + w) or name.endswith("." + w) for w in wanted)


def blamed_and_caller(verdict):
    """The blamed function and its direct caller, as far as there are any. Stacks begin innermost.
    Frames without a line are the interpreter's own, between two functions of Python."""
    blame = verdict["blame"]
    if not blame:
        return "", ""
    for i, here in enumerate(blame["stack"]):
        if here["function"] == blame["function"] and here["line"] == blame["line"]:
            callers = [f for f in blame["stack"][i + 1:] if f["line"]]
            return blame["function"], (callers[0]["function"] or "") if callers else ""
    return blame["function"], ""


def check_limit(ledger, case, runner):
    """Whether the failure's kind has rows of its own."""
    limit = case.limit
    wanted = {"cgroup": "cgroup memory.max", "shm": "tmpfs size"}.get(limit["kind"])
    if not wanted or (limit["kind"] == "cgroup" and runner.cgroup.why) or \
            (limit["kind"] == "shm" and case.cause == "healthy"):
        return
    if ledger["limit_kind"] != wanted or ledger["limit_bytes"] != limit["bytes"]:
        raise Failure("the limit is %s of %d" % (ledger["limit_kind"], ledger["limit_bytes"]))
    missing = set(limit.get("rows", case.expect.get("rows", []))) - {row["class"] for row in ledger[
        "rows"]}
    if missing:
        raise Failure("the ledger has no row: " + ", ".join(sorted(missing)))


def check_report(answer, case, status, runner):
    """Checks that hold for every verdict."""
    if jsonschema:
        jsonschema.validate(answer, json.loads(causes.filled(SCHEMA)))
    against = contradictions(answer)
    if against:
        raise Failure("contradicts itself: " + "; ".join(against))
    for ledger in answer["ledger"]:
        rows = sum(r["bytes"] for r in ledger["rows"])
        if rows + ledger["unaccounted_bytes"] != ledger["limit_bytes"]:
            raise Failure("the ledger does not add up")
    check_limit(answer["ledger"][0], case, runner)
    if "exit" in case.expect and status != case.expect["exit"]:
        raise Failure("exit status %d" % status)


def kill_kind(case, runner):
    """A kill at a resident size is unrelated to memory if the machine has plenty left and a
    supervisor watched the kernel's counts; a bare preload does not."""
    emulated = case.limit["kind"] in ("rss", "none") or runner.cgroup.why
    return "none" if emulated and not runner.preload else "oom-kill"


def check_failure(answer, case, runner):
    kind = answer["failure"]["kind"]
    if case.cause == "healthy":
        if kind != "none":
            raise Failure("failure.kind is %s" % kind)
        if case.expect.get("recovered") and not answer["recovered"]:
            raise Failure("the refused request is not listed")
        return
    killed = (kill_kind(case, runner),)
    refused = ("host-alloc", "python-memoryerror")
    # without our limit the program's starter kills it, or it sets a limit itself
    kinds = {"rss": killed, "none": killed + refused, "cgroup": killed, "gpu": ("cuda-oom",),
             "shm": ("bus-error",)}
    if kind not in kinds.get(case.limit["kind"], refused):
        raise Failure("failure.kind is %s" % kind)


def blame_right(answer, case):
    """None: the label blames no function."""
    wanted, unwanted = case.names("blame"), case.names("not_blame")
    if case.cause == "healthy" or not (wanted or unwanted):
        return None
    blamed, caller = blamed_and_caller(answer["verdict"])
    if matches(blamed, unwanted):
        return False
    return not wanted or matches(blamed, wanted) or matches(caller, wanted)


def cause_right(answer, case):
    """Whether the label names a second cause, too: the evidence cannot tell it from the first."""
    verdict = answer["verdict"]
    second = case.expect.get("runner_up") if case.cause == case.expect["cause"] else None
    return verdict["cause"] == case.cause and (
        not second or (verdict["runner_up"] or {}).get("cause") == second)


def unaccounted(answer, host):
    """The share of the limit without a row in that ledger; None: there is no such ledger."""
    for ledger in answer["ledger"]:
        if (ledger["space"] == "host") == host and ledger["limit_bytes"]:
            return abs(ledger["unaccounted_bytes"]) / ledger["limit_bytes"]
    return None


def record(case):
    """The facts known before the verdict."""
    return {"case": case.id, "folder": case.folder,
            "framework": framework(case.folder, case.expect),
            "limit": case.limit, "shuffled": case.variant, "expected": case.cause,
            "open": case.open}


def judged(case, status, trace, runner, environment):
    """The record of a case whose trace is there. `wrong`: its fault, or None."""
    answer, seconds = report(runner.whyoom, trace, environment)
    verdict = answer["verdict"]
    blamed, caller = blamed_and_caller(verdict)
    out = dict(record(case), cause=verdict["cause"], confidence=verdict["confidence"],
               blamed=blamed, caller=caller, summary=verdict["summary"],
               candidates=verdict.get("candidates", []), failure=answer["failure"]["kind"],
               cause_right=cause_right(answer, case), blame_right=blame_right(answer, case),
               unaccounted=unaccounted(answer, True), unaccounted_device=unaccounted(answer, False),
               events=sum(p["events"] for p in answer["processes"]), seconds=seconds, wrong=None,
               contradictions=contradictions(answer))
    try:
        check_report(answer, case, status, runner)
        if not out["cause_right"]:
            raise Failure("says %s, then %s" % (verdict["cause"],
                                                (verdict["runner_up"] or {}).get("cause")))
        check_failure(answer, case, runner)
        if out["blame_right"] is False:
            raise Failure("blames %s" % (blamed or "nobody"))
    except (Failure, *((jsonschema.ValidationError,) if jsonschema else ())) as e:
        out["wrong"] = str(e).splitlines()[0]
    return out
