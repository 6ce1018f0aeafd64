#!/usr/bin/env python3
"""damage.py [--count N] [--seed N] [--keep DIR]: damaged traces are said to be damaged, or tell the
same as whole ones.

Records several programs (full, in threads, forked, killed, sampled with checkpoints, small), packs
one, and damages the files at random: zeroed, cut off, ranges swapped or repeated, one bit turned;
from 1 byte to 10 MiB, at the bounds of chunks and anywhere. Of each `whyoom report` must say the
same as of the whole trace in what matters (verdict, ledger, largest sites), or that it is damaged,
or what cannot be read; quickly, and by exit status 0 or 1. A wrong answer without a word is a
failure. Before that: nothing is said to be damaged where nothing is."""
import argparse
import concurrent.futures
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
SLOT = 65536
MAGIC = b"Chnk"
PATIENCE = 120  # seconds for one report: minutes mean a hang, on a busy machine too

# Name: the program and its rounds, and the recorder's environment.
PROGRAMS = {
    "full": (["leak", "500"], {}),
    "small": (["killed", "4"], {}),
    "threads": (["threads", "1500"], {}),
    "fork": (["forks", "400"], {}),
    "killed": (["killed", "600"], {}),
    "sampled": (["weeks", "400000"], {"WHYOOM_MODE": "sampled", "WHYOOM_SAMPLE_EVERY": "4096",
                                      "WHYOOM_EXACT_FROM": "8192",
                                    "WHYOOM_MAX_TRACE": str(3 << 20)}),
}


def tool(name):
    return os.environ.get(name) or sys.exit(f"{name} is not set: run it by meson")


def whyoom(*words):
    """Exit status, stdout and stderr."""
    environment = {k: v for k, v in os.environ.items()
                   if not k.startswith(("WHYOOM_D", "LD_PRELOAD"))}
    done = subprocess.run([tool("WHYOOM_EXE"), *words], stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True,
                          errors="replace", timeout=PATIENCE, env=environment)
    return done.returncode, done.stdout, done.stderr


def record(top):
    """Each program's directory, by name."""
    traces = {}
    for name, (words, more) in PROGRAMS.items():
        traces[name] = os.path.join(top, name)
        environment = dict(os.environ, LD_PRELOAD=tool("WHYOOM_SHIM"), WHYOOM_DIR=traces[name],
                           WHYOOM_QUIET="1",
                           WHYOOM_ALLOW_TMPFS="1", **more)
        subprocess.run([tool("WHYOOM_PROGRAMS"), *words], env=environment,
                       stdout=subprocess.DEVNULL, check=False)
    traces["packed"] = os.path.join(top, "packed")
    shutil.copytree(traces["killed"], traces["packed"])
    status, _, says = whyoom("pack", traces["packed"])
    if status:
        raise SystemExit(f"pack: {says}")
    return traces


def whole(report):
    """The parts of a report that must agree."""
    verdict = report["verdict"]
    blame = verdict.get("blame") or {}
    return {
        "cause": verdict["cause"],
        "blame": (blame.get("function"), blame.get("bytes")),
        "failure": report["failure"]["kind"],
        "ledger": report["ledger"],
        "ends": sorted((p["pid"], p["end"]["how"], p["end"]["code"]) for p in report["processes"]),
    }


def sites(directory):
    status, out, _ = whyoom("sites", "--format", "json", "--limit", "5", directory)
    if status:
        return None
    answer = json.loads(out)
    return [(s["function"], s["line"], s["bytes"]) for s in answer["sites"]], answer["damage"]


def answer_of(directory):
    status, out, says = whyoom("report", "--format", "json", directory)
    if status:
        return status, says, None, None
    report = json.loads(out)
    return status, says, report, report["damage"]


# --- damages: each changes the bytes of a file, and returns its description

def chunks(data):
    return [at for at in range(SLOT, len(data), SLOT) if data[at:at + 4] == MAGIC]


def place(rng, data):
    """Anywhere, at the beginning of a chunk, or near it, among the headers."""
    heads = chunks(data) or [0]
    how = rng.random()
    if how < 0.15:
        return rng.choice(heads)
    if how < 0.3:
        return min(len(data) - 1, rng.choice(heads) + rng.randrange(128))
    if how < 0.4:
        return rng.randrange(min(len(data), 4096))
    return rng.randrange(len(data))


def length(rng, data):
    if rng.random() < 0.3:
        return SLOT * rng.choice([1, 1, 2, 16, 16, 32, 160])
    return min(int(2 ** rng.uniform(0, 23.3)), 10 << 20, len(data))


def zero(rng, data):
    at, n = place(rng, data), length(rng, data)
    n = min(n, len(data) - at)
    data[at:at + n] = bytes(n)
    return f"{n} bytes zeroed at {at}"


def cut(rng, data):
    at = place(rng, data)
    del data[at:]
    return f"cut at {at}"


def bit(rng, data):
    at, b = place(rng, data), rng.randrange(8)
    data[at] ^= 1 << b
    return f"bit {b} of the byte at {at} turned"


def swap(rng, data):
    a, b = sorted((place(rng, data), place(rng, data)))
    n = min(length(rng, data), b - a, len(data) - b)
    data[a:a + n], data[b:b + n] = data[b:b + n], data[a:a + n]
    return f"{n} bytes at {a} and at {b} swapped"


def repeat(rng, data):
    a, b = place(rng, data), place(rng, data)
    n = min(length(rng, data), len(data) - a, len(data) - b)
    data[b:b + n] = bytes(data[a:a + n])
    return f"{n} bytes at {a} again at {b}"


DAMAGES = (zero, cut, bit, bit, swap, repeat)


class Judge:
    def __init__(self, top, traces, seed, keep):
        self.top, self.traces, self.seed, self.keep = top, traces, seed, keep
        self.whole, self.sites = {}, {}

    def see_whole(self):
        """No trace is reported as damaged before the damage."""
        wrong = []
        for name, directory in self.traces.items():
            status, says, report, damage = answer_of(directory)
            if status or damage:
                wrong.append(f"{name}: said to be damaged, and is whole: {damage or says}")
                continue
            status, out, says = whyoom("check", directory)
            if status:
                wrong.append(f"{name}: check ends with {status}: {out}{says}")
            self.whole[name] = whole(report)
            self.sites[name] = sites(directory)[0]
        return wrong

    def one(self, number):
        """The outcome of the report, and its fault, or None."""
        rng = random.Random(f"{self.seed} {number}")
        name = rng.choice(sorted(self.traces))
        directory = self.traces[name]
        files = sorted(os.listdir(directory))
        victim = rng.choice(files)
        with open(os.path.join(directory, victim), "rb") as f:
            original = f.read()
        data = bytearray(original)
        words = f"{number}: {name}/{victim}: " + rng.choice(DAMAGES)(rng, data)
        if data == original:
            return "nothing", None
        with tempfile.TemporaryDirectory(prefix="damaged.", dir=self.top) as copy:
            for other in files:
                if other != victim:
                    os.link(os.path.join(directory, other), os.path.join(copy, other))
            with open(os.path.join(copy, victim), "wb") as f:
                f.write(data)
            try:
                result, wrong = self.judge(name, copy)
            except subprocess.TimeoutExpired as late:
                result, wrong = "late", f"{' '.join(late.cmd[1:])} takes more than {PATIENCE} s"
            if wrong and self.keep:
                shutil.copytree(copy, os.path.join(self.keep, str(number)), dirs_exist_ok=True)
        return result, wrong and f"{words}: {wrong}"

    def judge(self, name, directory):
        status, says, report, damage = answer_of(directory)
        if status == 1 and says.strip():
            return "refused", None
        if status:
            return "crashed", f"report ends with {status}: {says[-400:]}"
        if damage:
            if not damage["files"] or not damage["what"] and not damage["files_left_out"]:
                return "said", f"says nothing of what is missing: {damage}"
            return "said", None
        now = whole(report)
        if now != self.whole[name]:
            differs = [k for k in now if now[k] != self.whole[name][k]]
            return "silent", "another answer without a word: " + "; ".join(
                f"{k} {now[k]} for {self.whole[name][k]}" for k in differs)[:600]
        found = sites(directory)
        if not found or (not found[1] and found[0] != self.sites[name]):
            return "silent", f"other sites without a word: {found}"
        return "same", None


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=48)
    parser.add_argument("--seed", type=int, default=None)
    parser.add_argument("--only", type=int, help="this one alone")
    parser.add_argument("--keep", help="where those that fail are left")
    options = parser.parse_args()
    seed = options.seed if options.seed is not None else random.SystemRandom().randrange(1 << 32)
    print(f"seed {seed}", flush=True)
    counts, wrong = {}, []
    started = time.time()
    with tempfile.TemporaryDirectory(prefix="whyoom-damage-") as top:
        os.environ["WHYOOM_CACHE"] = os.path.join(top, "symbols")
        judge = Judge(top, record(top), seed, options.keep)
        if options.keep:
            shutil.copytree(top, os.path.join(options.keep, "whole"), dirs_exist_ok=True)
        wrong += judge.see_whole()
        numbers = [options.only] if options.only is not None else range(options.count)
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            for result, trouble in pool.map(judge.one, [] if wrong else numbers):
                counts[result] = counts.get(result, 0) + 1
                if trouble:
                    wrong.append(trouble)
    for line in wrong[:40]:
        print("FAILED", line)
    print(", ".join(f"{n} {result}" for result, n in sorted(counts.items())),
          f"in {time.time() - started:.0f} s")
    passed = sum(counts.values()) - len(wrong)
    print(f"{max(passed, 0)} passed, {len(wrong)} failed")
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
