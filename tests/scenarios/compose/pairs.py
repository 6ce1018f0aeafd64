"""pairs.py - the same composition with one factor changed must get the same answer.

What a mechanism's label says holds at each of its carriers, structures, limiters and factors, so a
pair changes within these alone."""
import dataclasses
import random

import composition
import consistent
from figures import percent, share
from language import C, CPP, DEVICE, SHARED, STACKS, mechanisms

# What a fixed seed must reach (--pairs --gates): less than it does reach, since a kill by size
# comes when it comes, and one composition that is judged otherwise for it costs six pairs of 37.
SAME_LEAST = 0.7
HARMLESS = ("WarmCache", "BoundedPool", "Sawtooth")
FACTORS = ("limiter", "limit", "sampling", "structure", "background", "language")


def language(carrier):
    return "C" if carrier in C else "C++" if carrier in CPP else "Python"


def others(c, factor):
    """What may be changed in a composition, for that factor: keywords of dataclasses.replace()."""
    carrier, mechanism = c.carrier, c.mechanism
    if factor == "limiter":
        return [{"limiter": x} for x in composition.limiters_of(carrier, mechanism)
                if x != c.limiter]
    if factor == "limit":
        return [{"factor": x} for x in mechanism.factors if x in (c.factor / 2, c.factor * 2)]
    if factor == "sampling":
        return [{"mode": "full" if c.mode == "sampled" else "sampled"}]
    if factor == "structure":
        found = composition.structures_of(carrier, mechanism)
        return [{"structure": x} for x in found
                if x != c.structure and "loop" in (x, c.structure)]
    if factor == "background":
        if carrier in SHARED + STACKS or c.background and c.background.name not in HARMLESS:
            return []
        found = mechanism.backgrounds or composition.BACKGROUNDS
        known = mechanisms()
        return [{"background": known.get(x)} for x in found
                if (x == "none") == bool(c.background) and x in ("none",) + HARMLESS]
    if carrier in DEVICE + SHARED + STACKS:
        return []
    return [{"carrier": x} for x in dict.fromkeys(mechanism.carriers)
            if x not in DEVICE + SHARED + STACKS and language(x) != language(carrier)
            and c.structure in composition.structures_of(x, mechanism)
            and c.limiter in composition.limiters_of(x, mechanism)]


def changed(c, factor):
    """The composition with that factor changed; None: it has no other value."""
    choices = others(c, factor)
    if not choices:
        return None
    rng = random.Random("%s/%s" % (c.id, factor))
    other = dataclasses.replace(c, id="%s.%s" % (c.id, factor), **rng.choice(choices))
    drawn = composition.renamed(c.names, rng, c.mechanism, other.background)
    free = iter(sorted(set(drawn.values()) - set(c.renamed.values())))
    other.renamed = {word: c.renamed.get(word) or next(free) for word in drawn}
    return other


def variants(c):
    return [v for v in (changed(c, factor) for factor in FACTORS) if v]


def compared(records):
    """(factor, record, record, what differs or None) of each pair whose labels hold."""
    by_case = {r["case"]: r for r in records}
    for r in records:
        first, _, factor = r["case"].rpartition(".")
        other = by_case.get(first) if factor in FACTORS else None
        if other and not r["label_wrong"] and not other["label_wrong"]:
            yield factor, other, r, consistent.difference(other, r, factor == "language")


def figures(records):
    """The share of pairs with the same answer by factor, and those that differ, as lines; and the
    missed gate, in words."""
    found = list(compared(records))
    lines = ["%s %s: %s" % (b["case"], b["folder"], words) for _, _, b, words in found if words]
    for factor in (*FACTORS, "all"):
        own = [words for f, _, _, words in found if factor in (f, "all")]
        lines.append("%-11s same answer: %s" % (factor, percent(own.count(None), len(own))))
    same = sum(not words for *_, words in found)
    missed = [] if share(same, len(found)) >= SAME_LEAST else [
        "pairs with the same answer: %s, %.0f %% wanted" % (percent(same, len(found)),
                                                            100 * SAME_LEAST)]
    return lines, missed
