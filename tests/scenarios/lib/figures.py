"""figures.py - the measures of a run, from its records alone: accuracy, confidence, completeness
and speed; and the gates that they must pass."""
import collections
import statistics

from corpus import CAUSES

SURE = 0.8
# The corpus must reach these shares.
CAUSE_MIN, BLAME_MIN, SURE_RIGHT_MIN = 0.95, 0.90, 0.95
BINS = (0, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 1)


def share(part, whole):
    return part / whole if whole else 1.0


def percent(part, whole):
    return "%d of %d (%.1f %%)" % (part, whole, 100 * share(part, whole))


def shares(records):
    """The figures for the gates, and the numbers behind them."""
    blames = [r["blame_right"] for r in records if r["blame_right"] is not None]
    sure = [r for r in records if r["confidence"] >= SURE]
    return {
        "judged": len(records),
        "cause_right": sum(r["cause_right"] for r in records),
        # A right blame under a wrong cause explains nothing.
        "blame_given": len(blames),
        "blame_right": sum(bool(r["blame_right"] and r["cause_right"]) for r in records),
        "accused": [r["case"] for r in records
                    if r["expected"] == "healthy" and r["cause"] not in ("healthy", "unknown")],
        "sure": len(sure),
        "sure_right": sum(r["cause_right"] for r in sure),
    }


def is_misjudged(record):
    """The failure was found, and only its verdict differs from the label."""
    return bool(record["events"] and record["expected"] != "healthy"
                and not record.get("contradictions")
                and (not record["cause_right"] or record["blame_right"] is False))


def faults(records):
    """What no verdict may be, whatever the shares, in words."""
    accused = shares(records)["accused"]
    return (["healthy programs accused: " + ", ".join(accused)] if accused else []) + [
        "%s contradicts itself: %s" % (r["case"], words) for r in records
        for words in r.get("contradictions", [])]


def gates(records):
    """The missed gates, in words."""
    s, found = shares(records), faults(records)
    for name, right, of, least in (("cause", s["cause_right"], s["judged"], CAUSE_MIN),
                                   ("blame", s["blame_right"], s["blame_given"], BLAME_MIN),
                                   ("verdicts of %.1f and more" % SURE, s["sure_right"], s["sure"],
                                    SURE_RIGHT_MIN)):
        if share(right, of) < least:
            found.append("%s right: %s, %.0f %% wanted" % (name, percent(right, of), 100 * least))
    return found


def matrix(records):
    """Rows: the program's true cause. Columns: the verdict's."""
    counts = collections.Counter((r["expected"], r["cause"]) for r in records)
    said = [c for c in (*CAUSES, "unknown") if any(n for (_, s), n in counts.items() if s == c)]
    lines = ["%-24s%s" % ("expected \\ said", "".join("%8s" % short(c) for c in said))]
    for cause in CAUSES:
        row = [counts[cause, c] for c in said]
        if sum(row):
            lines.append("%-24s%s" % (cause, "".join("%8s" % (n or ".") for n in row)))
    return lines


def short(cause):
    return {"prompt-growth": "prompt", "state-retention": "state", "fragmentation": "fragm",
            "oversized-model": "model", "batch-prealloc": "batch", "concurrency": "concur",
            "oversized-intermediate": "interm"}.get(cause, cause)


def calibration(records):
    lines = ["%-14s %6s %6s %7s" % ("confidence", "given", "right", "share")]
    for low, high in zip(BINS, BINS[1:]):
        band = [r["cause_right"] for r in records
                if low <= r["confidence"] and (r["confidence"] < high or high == 1)]
        if band:
            lines.append("%.2f to %.2f   %6d %6d %6.1f%%" % (low, high, len(band), sum(band),
                                                            100 * sum(band) / len(band)))
    s = shares(records)
    lines.append("of those of %.1f and more, right: %s"
                 % (SURE, percent(s["sure_right"], s["sure"])))
    lines.append("verdicts that are as sure: %s" % percent(s["sure"], s["judged"]))
    return lines


def by_framework(records):
    lines = []
    for name in sorted({r["framework"] for r in records}):
        own = [r for r in records if r["framework"] == name]
        s = shares(own)
        lines.append("%-12s %3d folders   cause %s, blame %s" % (
            name, len({r["folder"] for r in own}), percent(s["cause_right"], s["judged"]),
            percent(s["blame_right"], s["blame_given"])))
    return lines


def coverage(records):
    lines = []
    for key, name in (("unaccounted", "host"), ("unaccounted_device", "devices")):
        found = sorted((r[key], r["case"]) for r in records if r.get(key) is not None)
        if found:
            lines.append("unaccounted, %-8s median %.1f %%, largest %.1f %% of the limit (%s)" % (
                name + ":", 100 * statistics.median(f[0] for f in found), 100 * found[-1][0],
                found[-1][1]))
    return lines


def times(records):
    took = [r["seconds"] for r in records]
    # Start and symbols take the time of short traces.
    long = [r["seconds"] / r["events"] * 1e6 for r in records if r["events"] >= 200000]
    lines = ["report: median %.2f s, longest %.2f s a trace" % (statistics.median(took), max(took))]
    if long:
        lines.append("report, a million events: median %.2f s, longest %.2f s (%d traces of "
                     "200,000 "
                     "and more)" % (statistics.median(long), max(long), len(long)))
    return lines


def summary(records):
    """All of it, as lines."""
    if not records:
        return ["nothing was judged"]
    s = shares(records)
    names = {r["folder"] for r in records}
    by_cause = collections.Counter(c for _, c in {(r["folder"], r["expected"]) for r in records})
    return ["%d programs, %d runs" % (len(names), len(records)),
            "programs by cause: " + ", ".join("%s %d" % (c, by_cause[c]) for c in CAUSES
                                              if by_cause[c]),
            "", *matrix(records), "",
            "cause right: " + percent(s["cause_right"], s["judged"]),
            "blame right: " + percent(s["blame_right"], s["blame_given"]),
            "healthy programs accused: %d" % len(s["accused"]),
            "", *by_framework(records), "", *calibration(records), "", *coverage(records),
            *times(records)]
