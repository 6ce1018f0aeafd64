#!/usr/bin/env python3
"""schema.py PRINT_JSON SCHEMA: report_json() writes valid JSON, and the schema is strict enough to
refuse other JSON."""
import copy
import json
import subprocess
import sys

try:
    import jsonschema
except ImportError:
    print("SKIP schema: no python3-jsonschema")
    sys.exit(77)

program, path = sys.argv[1:3]
with open(path) as f:
    schema = json.load(f)
jsonschema.Draft202012Validator.check_schema(schema)
validator = jsonschema.Draft202012Validator(schema)

reports = {}
for name in ("leak", "none", "recovered", "served"):
    text = subprocess.run([program, name], check=True, capture_output=True).stdout
    reports[name] = json.loads(text.decode("utf-8"))
    validator.validate(reports[name])
    for ledger in reports[name]["ledger"]:
        total = sum(row["bytes"] for row in ledger["rows"]) + ledger["unaccounted_bytes"]
        assert total == ledger["limit_bytes"], name

leak = reports["leak"]
assert leak["verdict"]["cause"] == "leak"
assert leak["verdict"]["blame"]["function"].endswith('il"name')
assert leak["verdict"]["blame"]["stack"][0]["function"] == "malloc"  # innermost first
assert leak["failure"]["requested_bytes"] == 2 << 20
assert leak["failure"]["limit_kind"] == "RLIMIT_AS"
assert reports["none"]["verdict"]["cause"] == "unknown"
assert reports["recovered"]["recovered"][0]["how"] == "retried"

served = reports["served"]
assert [p["phase"] for p in served["phases"]] == ["serving"]
assert served["requests"]["source"] == "marks" and served["requests"]["begun"] == 2
assert served["requests"]["ended"][0]["name"] == "ask"
assert served["requests"]["ended"][0]["held_bytes"] == 1000
assert served["requests"]["in_flight"][0]["id"] == 2

wrong = []
for change in (
    lambda r: r.pop("verdict"),
    lambda r: r["verdict"].update(cause="gremlins"),
    lambda r: r["verdict"].update(confidence=1.5),
    lambda r: r["failure"].update(kind="mystery"),
    lambda r: r["ledger"][0]["rows"][0].update(bytes=-1),
    lambda r: r["processes"][0]["end"].pop("how"),
    lambda r: r.update(schema=2),
    lambda r: r["requests"].update(source="gossip"),
    lambda r: r["requests"]["ended"].append({}),
    lambda r: r["phases"].append({"phase": "loading"}),
    lambda r: r["stages"].append({"stage": "tool-call"}),
):
    bad = copy.deepcopy(leak)
    change(bad)
    if validator.is_valid(bad):
        wrong.append(change)
assert not wrong, "the schema lets %d wrong reports pass" % len(wrong)
print("ok")
