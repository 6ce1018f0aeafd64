"""calibration.py - the confidence of a verdict: fits the weights of rank_confidence()
(verdict/judge/rank.c) on records, and computes the verdicts under other weights.

The model is that function's: a logistic of the winner's score and of its margin over the second."""
import hashlib
import math

CONFIDENCE_MIN = 0.5  # RANK_CONFIDENCE_MIN
RIDGE = 0.02  # keeps the slopes finite when score and margin separate right from wrong entirely


def half(folder):
    """0 or 1, by the folder's name: the cases of a program stay together."""
    return hashlib.sha256(folder.encode()).digest()[0] & 1


def features(record):
    scores = [c["score"] for c in record["candidates"]] + [0]
    return (1.0, scores[0], max(0.0, scores[0] - scores[1]))


def usable(records):
    """The records with an admissible winner: others have no confidence."""
    return [r for r in records if r["candidates"] and r["candidates"][0]["admissible"]]


def is_right(record):
    return record["candidates"][0]["cause"] == record["expected"]


def probability(weights, x):
    return 1 / (1 + math.exp(-max(-30.0, min(30.0, sum(w * v for w, v in zip(weights, x))))))


def solve(a, b):
    """Solve the linear system a x = b, by elimination."""
    n = len(b)
    m = [row[:] + [v] for row, v in zip(a, b)]
    for i in range(n):
        pivot = max(range(i, n), key=lambda k: abs(m[k][i]))
        m[i], m[pivot] = m[pivot], m[i]
        for k in range(n):
            if k != i:
                f = m[k][i] / m[i][i]
                m[k] = [x - f * y for x, y in zip(m[k], m[i])]
    return [m[i][n] / m[i][i] for i in range(n)]


def newton(rows, used):
    """Maximum likelihood with a ridge on the slopes. `used`: the features that may have weight."""
    weights = [0.0, 0.0, 0.0]
    for _ in range(50):
        gradient = [0.0] * len(used)
        hessian = [[0.0] * len(used) for _ in used]
        for x, y, mass in rows:
            p = probability(weights, x)
            for i, f in enumerate(used):
                gradient[i] += mass * (y - p) * x[f]
                for k, g in enumerate(used):
                    hessian[i][k] += mass * p * (1 - p) * x[f] * x[g]
        for i, f in enumerate(used):
            gradient[i] -= RIDGE * weights[f] if f else 0
            hessian[i][i] += RIDGE if f else 1e-9
        step = solve(hessian, gradient)
        for i, f in enumerate(used):
            weights[f] += max(-2.0, min(2.0, step[i]))
        if max(map(abs, step)) < 1e-6:
            break
    return weights


def fit(records):
    """Base, weight of the score, weight of the margin. Every program counts the same, however many
    cases it has; a higher score or margin never makes a verdict less sure."""
    rows, count = [], {}
    for r in usable(records):
        count[r["folder"]] = count.get(r["folder"], 0) + 1
    for r in usable(records):
        rows.append((features(r), float(is_right(r)), 1 / count[r["folder"]]))
    if not rows or len({y for _, y, _ in rows}) < 2:
        return None  # both classes are needed
    used = [0, 1, 2]
    while True:
        weights = newton(rows, used)
        falling = [f for f in used[1:] if weights[f] < 0]
        if not falling:
            return weights
        used.remove(min(falling, key=lambda f: weights[f]))


def judged_with(weights, records):
    """The records under these weights. Other reasons that lowered a confidence, or made it unknown
    (losses, a gap in the recording), still apply."""
    out = []
    for r in records:
        best = r["candidates"][0] if r["candidates"] else None
        given = best and best["admissible"] and best["confidence"] >= CONFIDENCE_MIN
        if not best or not best["admissible"] or (given and r["cause"] == "unknown"):
            out.append(r)
            continue
        sure = probability(weights, features(r))
        lowered = r["confidence"] / best["confidence"] if r["cause"] != "unknown" else 1
        known = sure >= CONFIDENCE_MIN
        cause = best["cause"] if known else "unknown"
        right = cause == r["expected"]
        out.append(dict(r, cause=cause, confidence=sure * lowered if known else 0,
                        cause_right=right))
    return out
