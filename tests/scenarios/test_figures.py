#!/usr/bin/env python3
"""The corpus' measures, on records made up here: each gate can fail, and the fit finds what is
there."""
import os
import random
import sys
import unittest

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "lib"), HERE]
import calibration  # noqa: E402
import consistent  # noqa: E402
import figures  # noqa: E402
import judge  # noqa: E402


def record(expected, cause, confidence=0.9, blame=True, folder="a", **more):
    return dict({"case": folder + ".0", "folder": folder, "framework": "C", "expected": expected,
                 "cause": cause, "confidence": confidence, "cause_right": cause == expected,
                 "blame_right": None if expected == "healthy" else blame, "candidates": [],
                 "unaccounted": 0.01, "unaccounted_device": None, "events": 300000, "seconds": 0.3},
                **more)


def scored(folder, cause, expected, score, second):
    best = {"cause": cause, "score": score, "admissible": True, "confidence": 0.9}
    return record(expected, cause, folder=folder, candidates=[best, dict(best, score=second)])


class Gates(unittest.TestCase):
    good = [record("leak", "leak")] * 39

    def test_all_right(self):
        self.assertEqual(figures.gates(self.good), [])

    def test_cause(self):
        missed = figures.gates(self.good + [record("leak", "unknown", 0)] * 3)
        self.assertEqual(len(missed), 1)
        self.assertIn("cause right: 39 of 42", missed[0])

    def test_blame(self):
        self.assertIn("blame right: 39 of 45",
                      figures.gates(self.good + [record("leak", "leak", blame=False)] * 6)[0])

    def test_blame_under_a_wrong_cause(self):
        self.assertEqual(figures.shares([record("leak", "external")])["blame_right"], 0)

    def test_sure(self):
        missed = figures.gates(self.good + [record("leak", "external", 0.9, blame=None)] * 3)
        self.assertTrue(any("0.8 and more" in m for m in missed), missed)

    def test_accused(self):
        self.assertIn("accused: b.0",
                      figures.gates(self.good + [record("healthy", "leak", folder="b")])[0])
        self.assertEqual(figures.gates(self.good + [record("healthy", "unknown", 0)]), [])

    def test_summary_counts(self):
        text = "\n".join(figures.summary(self.good + [record("healthy", "healthy", folder="b")]))
        self.assertIn("2 programs, 40 runs", text)
        self.assertIn("median 1.00 s, longest 1.00 s (40 traces", text)


class Blame(unittest.TestCase):
    def test_caller(self):
        stack = [{"function": f, "line": n} for n,
                 f in enumerate(("malloc", "make", "serve", "main"))]
        verdict = {"blame": {"function": "make", "line": 1, "stack": stack}}
        self.assertEqual(judge.blamed_and_caller(verdict), ("make", "serve"))

    def test_names(self):
        self.assertTrue(judge.matches("ns::Cache::put[abi:cxx11](int)", ["Cache::put"]))
        self.assertFalse(judge.matches("output", ["put"]))


class Cause(unittest.TestCase):
    class Case:
        cause, expect = "leak", {"cause": "leak", "runner_up": "state-retention"}

    def test_runner_up(self):
        for second, right in (("state-retention", True), ("external", False), (None, False)):
            verdict = {"cause": "leak", "runner_up": second and {"cause": second}}
            self.assertEqual(judge.cause_right({"verdict": verdict}, self.Case), right)

    def test_of_another_limit(self):
        class High(self.Case):
            cause = "healthy"
        self.assertTrue(judge.cause_right({"verdict": {"cause": "healthy", "runner_up": None}},
                                          High))


class Fit(unittest.TestCase):
    def test_margin_decides(self):
        pick, records = random.Random(5), []
        for n in range(400):
            margin = pick.random() * 0.8
            right = pick.random() < 1 / (1 + 2.718 ** -(10 * margin - 2))
            records.append(scored("p%d" % n, "leak" if right else "external", "leak", 0.9,
                                  0.9 - margin))
        base, score, margin = calibration.fit(records)
        self.assertTrue(6 < margin < 14, margin)
        self.assertGreaterEqual(score, 0)
        sure = calibration.judged_with((base, score, margin), records)
        self.assertGreater(figures.share(figures.shares(sure)["sure_right"],
                                         figures.shares(sure)["sure"]), 0.9)

    def test_never_falls(self):
        # Against all reason the weaker ones are right: no weight may say so.
        records = [scored("p%d" % n, "leak" if n < 40 else "external", "leak", n / 80, 0)
                   for n in range(80)]
        _, score, margin = calibration.fit(records)
        self.assertEqual((score, margin), (0, 0))

    def test_nothing_to_fit(self):
        self.assertIsNone(calibration.fit([scored("a", "leak", "leak", 0.9, 0.1)]))

    def test_below_the_least_it_is_unknown(self):
        out = calibration.judged_with((-5, 0, 0), [scored("a", "leak", "leak", 0.9, 0.1)])
        self.assertEqual((out[0]["cause"], out[0]["cause_right"]), ("unknown", False))

    def test_halves(self):
        halves = [calibration.half("program_%d" % n) for n in range(200)]
        self.assertTrue(80 < sum(halves) < 120)


def told(cause, row="free", share=0.7, kind="host-alloc", candidates=(), **more):
    """A report with that verdict, and a row of that share of the limit."""
    return dict({"verdict": {"cause": cause, "summary": "", "runner_up": None, "candidates": [
        {"cause": c, "share": s} for c, s in candidates]}, "failure": {"kind": kind},
        "ledger": [{"limit_bytes": 100, "limit_kind": "RLIMIT_AS", "rows": [
            {"class": row, "bytes": 100 * share}]}],
        "processes": [{"pid": 1, "refused_seconds": None}], "coverage": {"gap": None}}, **more)


class Contradictions(unittest.TestCase):
    def number(self, *arguments, **more):
        return len(consistent.contradictions(told(*arguments, **more)))

    def test_ledger(self):
        for cause, row, share, found in (
                ("unknown", "leaked", 0.68, 1), ("unknown", "leaked", 0.3, 0),
                ("unknown", "weights", 0.68, 0), ("leak", "leaked", 0.68, 0),
                ("leak", "retained state", 0.68, 1), ("external", "leaked", 0.68, 1),
                ("external", "working sets of requests", 0.68, 0), ("external", "free", 1, 0)):
            self.assertEqual(self.number(cause, row, share), found, (cause, row))
        # What stands there is not what grows.
        self.assertEqual(self.number("leak", "retained state", candidates=(("leak", 0.9), (
            "state-retention", 0.1))), 0)
        self.assertEqual(self.number("unknown", "leaked", kind="none"), 0)

    def test_named_twice(self):
        self.assertEqual(self.number("leak", candidates=(("leak", 1), ("leak", 0.5))), 1)

    def test_healthy(self):
        refused = [{"pid": 1, "refused_seconds": 2.0}]
        gpu = {"own_bytes": 5, "explained_bytes": 0}
        self.assertEqual(self.number("healthy", kind="none"), 0)
        self.assertEqual(self.number("healthy", kind="stalled"), 1)
        self.assertEqual(self.number("healthy", kind="none", processes=refused), 1)
        self.assertEqual(self.number("healthy", kind="none", device=gpu), 1)
        self.assertEqual(self.number("healthy", kind="none", coverage={"gap": "lost"}), 1)

    def test_fault_of_a_run(self):
        bad = record("leak", "leak", contradictions=["x"], events=5)
        self.assertEqual(figures.gates([bad]), ["a.0 contradicts itself: x"])
        self.assertFalse(figures.is_misjudged(dict(bad, cause_right=False)))


class Pairs(unittest.TestCase):
    def answer(self, cause, blamed="f", caller="", candidates=()):
        return record("leak", cause, blamed=blamed, caller=caller,
                      candidates=[{"cause": c} for c in candidates])

    def test_same(self):
        leak = self.answer("leak", caller="g", candidates=("leak", "external"))
        for other, same in ((leak, True), (self.answer("external"), False),
                            (self.answer("leak", "g"), True), (self.answer("leak", "h"), False)):
            self.assertEqual(consistent.difference(leak, other) is None, same)

    def test_unknown_names_the_same_two(self):
        leak = self.answer("leak", candidates=("leak", "external"))
        for two, same in ((("external", "leak"), True), (("leak", "concurrency"), False)):
            other = self.answer("unknown", candidates=two)
            self.assertEqual(consistent.difference(leak, other) is None, same)


class Misjudged(unittest.TestCase):
    def test_only_another_verdict_may_vary(self):
        good = {"events": 5, "expected": "leak", "cause_right": True, "blame_right": True}
        self.assertFalse(figures.is_misjudged(good))
        self.assertTrue(figures.is_misjudged({**good, "cause_right": False}))
        self.assertTrue(figures.is_misjudged({**good, "blame_right": False}))
        self.assertFalse(figures.is_misjudged({**good, "blame_right": None}))
        self.assertFalse(figures.is_misjudged({**good, "cause_right": False, "events": 0}))
        self.assertFalse(figures.is_misjudged({**good, "cause_right": False,
                                               "expected": "healthy"}))


if __name__ == "__main__":
    unittest.main()
