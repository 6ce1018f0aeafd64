"""Every message text of logs/corpus.json, as quoted from its public place or written after it, is
found and read. The program starts once for each log, two at a time."""

import concurrent.futures
import json
import os
import re
import unittest

from test_explain import CAUSES, LOGS, explain, explain_json


def read(name):
    with open(os.path.join(LOGS, name), "rb") as f:
        return f.read()


def in_parallel(judge, cases):
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        return list(zip(cases, pool.map(judge, cases)))


class Corpus(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        with open(os.path.join(LOGS, "corpus.json")) as f:
            cls.corpus = json.load(f)

    def test_each(self):
        for case, result in in_parallel(lambda c: explain_json(read(c["log"])), self.corpus):
            with self.subTest(case["log"]):
                found = [f"{m['from']}: {m['fields']['message']}" for m in result["messages"]]
                self.assertEqual(found, case["messages"])
                self.assertIn(case["cause"], CAUSES)
                self.assertEqual(result["verdict"]["cause"], case["cause"],
                                 result["verdict"]["summary"])
                for index, fields in case.get("fields", {}).items():
                    have = result["messages"][int(index)]["fields"]
                    for name, value in fields.items():
                        self.assertEqual(have.get(name), value, name)

    def test_a_failure_has_advice(self):
        for case, result in in_parallel(lambda c: explain_json(read(c["log"])), self.corpus[::4]):
            with self.subTest(case["log"]):
                if any(m["kind"] == "failure" for m in result["messages"]):
                    self.assertTrue(result["verdict"]["fixes"])

    def test_each_has_its_source(self):
        logs = {name for name in os.listdir(LOGS) if name.endswith(".log")}
        self.assertEqual(logs, {case["log"] for case in self.corpus})
        for case in self.corpus:
            self.assertRegex(case["source"], re.compile(r"^https://|^written "), case["log"])

    def test_text_fits_any_width(self):
        def text(case):
            columns = (40, 80, 120)[len(case["log"]) % 3]
            return columns, explain("-v", os.path.join(LOGS, case["log"]), columns=columns)

        for case, (columns, done) in in_parallel(text, self.corpus[::3]):
            self.assertEqual((done.returncode, done.stderr), (0, b""))
            for line in done.stdout.decode().splitlines():
                self.assertLessEqual(len(line), columns, case["log"])


if __name__ == "__main__":
    unittest.main()
