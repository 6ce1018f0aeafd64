"""consistent.py - what a report must not say against itself, and what the answers to a pair of
programs have in common. Knows no label."""
import os
import re

from corpus import causes

CLASSES = os.path.join(os.path.dirname(causes.DEF), "..", "verdict", "ledger", "classes.c")
# In place before anything grew.
AT_START = {"weights", "preallocated pools"}
# What a program always needs, too: a limit may lie below it, or it may pin holes.
STEADY = {"retained state", "working sets of requests"}
MOST = 0.5


def class_causes():
    """The ledger's rows that name a cause, and the causes of each."""
    with open(CLASSES) as f:
        names = dict(re.findall(r'\[(CLASS_\w+)\] = \{"([^"]+)"', f.read()))
    with open(causes.DEF) as f:
        rows = re.findall(r'^CAUSE\(\w+, "([^"]+)",\s*\w+,\s*(CLASS_\w+)', f.read(), re.M)
    return {names[c]: {cause for cause, of in rows if of == c} for c in names}


CAUSES_OF = class_causes()
CLASS_OF = {cause: name for name, of in CAUSES_OF.items() for cause in of}


def share_of(verdict, causes_of):
    """The part of the growth that these causes' best candidate explains."""
    return max([c["share"] for c in verdict.get("candidates", []) if c["cause"] in causes_of],
               default=0)


def against_the_ledger(answer):
    """A row with most of the limit names one cause, and the verdict none, or another that explains
    less of the growth."""
    verdict = answer["verdict"]
    said = verdict["cause"]
    if answer["failure"]["kind"] == "none" or not answer["ledger"]:
        return
    ledger, own = answer["ledger"][0], share_of(verdict, {said})
    for row in ledger["rows"]:
        named = CAUSES_OF.get(row["class"])
        share = row["bytes"] / (ledger["limit_bytes"] or 1)
        if not named or said in named or row["class"] in AT_START or share <= MOST:
            continue
        if said != "unknown" and (row["class"] in STEADY and not CLASS_OF.get(said)
                                  or own > MOST and own > share_of(verdict, named)):
            continue
        yield "says %s beside '%s', %.0f %%" % (said, row["class"], 100 * share)


def named_twice(verdict):
    causes_of = [c["cause"] for c in verdict.get("candidates", [])]
    second = (verdict["runner_up"] or {}).get("cause")
    if len(set(causes_of)) < len(causes_of) or second == verdict["cause"]:
        yield "names a candidate twice: " + ", ".join([verdict["cause"], str(second), *causes_of])
    perhaps = re.findall(r"(?:perhaps|, or) ([\w-]+) in ([^,]+)", verdict["summary"])
    if verdict["cause"] == "unknown" and len(set(perhaps)) < len(perhaps):
        yield "names a candidate twice: " + verdict["summary"]


def healthy_in_spite(answer):
    """Healthy, though it was refused memory for good, held back, or not wholly recorded."""
    if answer["verdict"]["cause"] != "healthy":
        return
    if answer["failure"]["kind"] != "none":
        yield "says healthy of a failure: " + answer["failure"]["kind"]
    for p in answer["processes"]:
        if p.get("refused_seconds") is not None:
            yield "says healthy, though process %d was refused memory for good" % p["pid"]
    for d in [answer.get("device"), *answer.get("other_devices", [])]:
        if d and d.get("own_bytes") and not d["explained_bytes"]:
            yield "says healthy, though nothing was recorded of the GPU that it used"
    if answer["coverage"].get("gap"):
        yield "says healthy, though " + answer["coverage"]["gap"]


def contradictions(answer):
    """What the report says against itself, in words."""
    return [*against_the_ledger(answer), *named_twice(answer["verdict"]),
            *healthy_in_spite(answer)]


def two(record):
    """The two causes that a verdict was chosen between."""
    found = [c["cause"] for c in record["candidates"] if c["cause"] != "healthy"]
    return set(found[:2])


def same_blame(a, b, translated):
    """Whether two records blame one function, or one the other's caller: a block's own function
    may be blamed or not. `translated`: a block is another thing in each."""
    if a["blamed"] == b["blamed"] or a["blamed"] == b["caller"] != "" or \
            b["blamed"] == a["caller"] != "":
        return True
    return translated and a["caller"] == b["caller"] != ""


def difference(a, b, translated=False):
    """What two records that must have the same answer differ in, or None. An unknown names the same
    two candidates."""
    if "unknown" in (a["cause"], b["cause"]) and two(a) == two(b):
        return None
    if a["cause"] != b["cause"]:
        return "%s (%.2f), but %s (%.2f)" % (a["cause"], a["confidence"], b["cause"],
                                             b["confidence"])
    if not same_blame(a, b, translated):
        return "%s: blames %s, but %s" % (a["cause"], a["blamed"] or "nobody",
                                          b["blamed"] or "nobody")
    return None
