"""composition.py - draws compositions by a seed, and writes each as a program with its label.

A composition is mechanism x carrier x background x request structure x limiter x limit x names x
mode of recording. The same seed and number give the same program, whatever else is drawn."""
import dataclasses
import os
import random
import subprocess

import environment
from corpus import CAUSES, Failure
from language import C, CPP, DEVICE, SHARED, STACKS, mechanisms, HERE
import render_c
import render_python

MIB = 1 << 20
# The bytes that the limit leaves to a program, at factor 1: B of the language.
BUDGET = {"host": 160 * MIB, "device": 768 * MIB}
# What a program takes before its first request, by limiter. A thread has a stack; under RLIMIT_AS
# it shares malloc's arena, whose reserve would be room or none, as the blocks happen to lie.
FLOOR = {"c": {"as": 8, "data": 4, "cgroup": 4, "rss": 4},
         "cpp": {"as": 12, "data": 4, "cgroup": 6, "rss": 6},
         "python": {"as": 28, "data": 16, "cgroup": 16, "rss": 16},
         "numpy": {"as": 130, "data": 60, "cgroup": 40, "rss": 40}}
# What a recording in mode sampled takes of a limit more than a full one.
SAMPLED_FLOOR = 8
FRACTION = 0.25  # of a device, with the limiter "fraction"
THREAD_FLOOR = {"as": 10, "data": 9, "cgroup": 1, "rss": 1}
STRUCTURES = {"c": ("loop", "threads", "forked"), "cpp": ("loop", "threads", "forked"),
              "python": ("loop", "threads", "asyncio", "forked", "nested")}
BACKGROUNDS = ("none", "WarmCache", "BoundedPool", "Sawtooth", "SecondLeak")
NAMES = ("telling", "neutral", "misleading")
NEUTRAL = ("alpha", "beta", "gamma", "delta", "step", "part", "unit", "stage", "visit", "apply",
           "phase", "take", "route", "begin", "relay", "touch", "prepare", "finish", "item_of")
MISLEADING = ("load_weights", "read_layer", "fill_slots", "kv_cache", "warm_up", "remember",
              "render_prompt", "history", "tokenize", "embed_all", "sessions", "store_result",
              "drop_all", "make_batch", "evict", "prefill", "free_list", "collect", "shard",
              "temporary", "buffer_pool", "answer")


@dataclasses.dataclass
class Composition:
    """One program under one limit."""
    id: str
    mechanism: object
    background: object
    carrier: str
    structure: str
    limiter: str
    factor: float
    names: str
    mode: str
    renamed: dict

    @property
    def language(self):
        return "c" if self.carrier in C + ["cuda", "c_shm", "c_stacks"] else \
            "cpp" if self.carrier in CPP else "python"

    @property
    def device(self):
        return self.carrier in DEVICE

    @property
    def budget(self):
        return BUDGET["device" if self.device else "host"]

    @property
    def crowd(self):
        return self.mechanism.crowd if self.structure == "threads" else 0

    @property
    def room(self):
        """The bytes that the limit leaves to the program."""
        return int(self.budget * self.factor)

    @property
    def limit(self):
        kind = "gpu" if self.limiter == "fraction" else self.limiter
        if kind == "gpu":
            device = self.room if self.limiter == "gpu" else int(self.room / FRACTION)
            return {"kind": "gpu", "bytes": (device + 2 * MIB) & -(2 * MIB)}
        if kind == "shm":
            return {"kind": "shm", "bytes": self.room & -4096}
        floor = FLOOR["numpy" if self.carrier == "numpy" else self.language][kind]
        floor += self.crowd * THREAD_FLOOR[kind]
        floor += SAMPLED_FLOOR if self.mode == "sampled" else 0
        processes = 2 if self.structure == "forked" and kind == "cgroup" else 1
        return {"kind": kind, "bytes": (self.room + floor * MIB * processes) & -4096}

    @property
    def causes(self):
        told = self.names == "telling"
        named = [] if told else self.mechanism.unnamed
        # What is put in place at start is told by names alone, where its shape does not tell.
        start = ["oversized-model", "batch-prealloc"]
        lied = start if self.names == "misleading" and self.mechanism.cause in start else []
        # Intent decides whether blocks stay by mistake or on purpose, and names alone tell it. A
        # thread that waits for ever is nobody's purpose.
        blocks = self.cause == "leak" and self.carrier not in STACKS
        meant = ["state-retention"] if blocks and not told else []
        return list(dict.fromkeys([self.cause, *self.mechanism.also, *named, *lied, *meant]))

    @property
    def cause(self):
        return self.mechanism.cause

    def blamed(self):
        return [self.renamed.get(name, name) for name in self.mechanism.blame]

    def title(self):
        return "%-5s %-22s %-10s %-11s %-8s %-8s x%-3g %-10s %s" % (
            self.id, self.mechanism.name, self.carrier, self.background.name if self.background
            else "none", self.structure, self.limiter, self.factor, self.names, self.mode)


def limiters_of(carrier, mechanism):
    if carrier in SHARED:
        found = ["shm"]  # a limit of its own, and gone with it
    elif carrier in STACKS:
        found = ["as"]
    elif carrier in DEVICE:
        found = ["gpu"] if carrier == "cuda" else ["gpu", "fraction"]
    elif carrier == "py_mmap":  # shared mappings, which RLIMIT_DATA does not count
        found = ["as", "cgroup", "rss"]
    else:
        found = ["as", "data", "cgroup", "rss"]
    return [f for f in found if not mechanism.limiters or f in mechanism.limiters]


def structures_of(carrier, mechanism):
    language = "c" if carrier.startswith("c_") or carrier == "cuda" else \
        "cpp" if carrier in CPP else "python"
    found = [s for s in mechanism.structures if s in STRUCTURES[language]]
    if carrier in DEVICE:  # a device's context does not survive a fork
        found = [s for s in found if s != "forked"]
    return found


def words_of(mechanism, background):
    """The words that a variant may rename: functions and stores."""
    parts = [mechanism] + ([background] if background else [])
    return [w for p in parts for w in [f.name for f in p.functions] + p.stores]


def renamed(kind, rng, mechanism, background):
    words = words_of(mechanism, background)
    if kind == "telling":
        return {}
    pool = list(NEUTRAL if kind == "neutral" else MISLEADING)
    rng.shuffle(pool)
    pool += ["%s_%d" % (p, k) for k in (2, 3) for p in pool]
    return dict(zip(words, pool))


def draw(seed, number, found, fixed):
    """Composition `number` of a seed. `fixed`: factors that are given, as {"carrier": "numpy"}."""
    for attempt in range(1000):
        rng = random.Random("%s/%d/%d" % (seed, number, attempt))
        real = [m for m in found.values() if m.cause]
        cause = fixed.get("cause") or rng.choice([c for c in CAUSES if any(m.cause == c
                                                                          for m in real)])
        mechanism = rng.choice([m for m in real if m.cause == cause])
        carrier = rng.choice(mechanism.carriers)
        structures = structures_of(carrier, mechanism)
        backgrounds = mechanism.backgrounds or BACKGROUNDS
        choices = {"mechanism": [mechanism.name], "carrier": [carrier], "structure": structures,
                   "background": backgrounds, "limiter": limiters_of(carrier, mechanism),
                   "factor": mechanism.factors, "names": NAMES, "mode": ("full", "full", "sampled")}
        if not all(choices.values()):
            continue
        got = {key: rng.choice(list(values)) for key, values in choices.items()}
        if carrier in SHARED + STACKS:
            got["background"] = "none"
        if all(str(got.get(k, cause)) == str(v) for k, v in fixed.items()):
            background = found.get(got["background"])
            return Composition("%s-%d" % (seed, number), mechanism, background, carrier,
                               got["structure"], got["limiter"], got["factor"], got["names"],
                               got["mode"], renamed(got["names"], rng, mechanism, background))
    raise Failure("no composition has " + ", ".join("%s %s" % kv for kv in fixed.items()))


def written(composition, work, python):
    """Writes the program into `work`; its command and environment."""
    c = composition
    variables = {**environment.VARIABLES, "OPENBLAS_NUM_THREADS": "1", "WHYOOM_MODE": c.mode}
    if c.limiter == "as" and (c.structure == "threads" or c.carrier in STACKS):
        variables["MALLOC_ARENA_MAX"] = "1"
    if c.language == "python":
        path = os.path.join(work, "main.py")
        with open(path, "w") as f:
            f.write(render_python.rendered(c, c.mechanism, c.background, c.renamed, c.budget,
                                           FRACTION))
        if c.carrier in ("torch", "numpy"):
            variables["WHYOOM_SIMGPU_MACHINE"] = "compose-%d-%s" % (os.getpid(), c.id)
            return [environment.interpreter(c.carrier), path], variables
        return [python, path], variables
    path = os.path.join(work, "main." + c.language)
    with open(path, "w") as f:
        f.write(render_c.rendered(c, c.mechanism, c.background, c.renamed, c.budget))
    program = os.path.join(work, "prog")
    done = subprocess.run(["g++" if c.language == "cpp" else "gcc", "-O1", "-g", "-w", "-pthread",
                           "-I", os.path.join(HERE, "runtime"), "-o", program, path, "-ldl"],
                          capture_output=True, text=True)
    if done.returncode:
        raise Failure("does not compile: " + done.stderr[:2000])
    if c.carrier == "cuda":
        variables["WHYOOM_SIMGPU_MACHINE"] = "compose-%d-%s" % (os.getpid(), c.id)
    return [program], variables


def compositions(seed, count, fixed, with_judges=True):
    found = {name: m for name, m in mechanisms().items()
             if with_judges or not m.file.startswith("judges")}
    return [draw(seed, number, found, fixed) for number in range(count)]
