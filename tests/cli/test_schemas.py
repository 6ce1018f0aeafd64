#!/usr/bin/env python3
"""Each command's JSON follows its schema, for whole traces and for damaged ones."""

import json
import os
import pathlib
import subprocess

import pytest

jsonschema = pytest.importorskip("jsonschema")

TOP = pathlib.Path(__file__).resolve().parent.parent.parent
GOLDEN = TOP / "tests" / "golden"
WHYOOM = os.environ["WHYOOM_EXE"]
SCHEMAS = pathlib.Path(WHYOOM).parent.parent / "report"  # as they are built
TRACES = ["v1/spaces", "v1/order", "v1/killed", "v2/checkpoint", "v2/unwhole", "v2/packed"]
COMMANDS = {"report": [], "sites": [], "flame": [], "map": [], "check": [],
            "what-if": ["--memory", "1GiB"], "diff": ["--at", "peak", "--and", "end"]}


def schema(command):
    text = json.loads((SCHEMAS / f"{command}-schema.json").read_text())
    jsonschema.Draft202012Validator.check_schema(text)
    return jsonschema.Draft202012Validator(text)


def answer(command, trace):
    """None if the command has no result for that trace, and tells the reason."""
    done = subprocess.run([WHYOOM, command, "--format", "json", *COMMANDS[command], trace],
                          stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True, timeout=120)
    assert done.returncode in (0, 1)
    assert done.stdout or done.stderr.startswith("whyoom: ")
    return json.loads(done.stdout) if done.stdout else None


@pytest.mark.parametrize("command", COMMANDS)
def test_is_what_the_schema_says(command):
    valid, seen = schema(command), 0
    for trace in TRACES:
        said = answer(command, GOLDEN / trace)
        if said is None:
            continue
        valid.validate(said)
        assert said["schema"] == 1
        # The schema is strict enough to find a missing member, and another version.
        assert not valid.is_valid({**said, "schema": 2})
        for member in valid.schema["required"]:
            assert not valid.is_valid({k: v for k, v in said.items() if k != member}), member
        seen += 1
    assert seen >= 3


def test_damaged(tmp_path):
    """Each command tells of omitted rows in the same member."""
    data = next((GOLDEN / "v1" / "order").glob("*.whyoom")).read_bytes()[:-66000]
    (tmp_path / "4711.0.whyoom").write_bytes(data)
    for command in COMMANDS:
        said = answer(command, tmp_path)
        if said is None:
            continue
        schema(command).validate(said)
        damage = (said["processes"][0]["damage"] if command == "check" else
                  said["a"]["damage"] if command == "diff" else said["damage"])
        assert damage and damage["bytes"] >= 0 and 0 <= damage["share"] <= 1, command
        if command != "check":
            assert damage["files"] == 1 and damage["what"]


def test_left_out(tmp_path):
    """Of several, one of which is unreadable."""
    whole = next((GOLDEN / "v1" / "order").glob("*.whyoom")).read_bytes()
    (tmp_path / "1.0.whyoom").write_bytes(whole)
    (tmp_path / "2.0.whyoom").write_bytes(whole[:1000])
    damage = answer("report", tmp_path)["damage"]
    assert damage["files"] == damage["files_left_out"] == 1 and damage["bytes"] == 1000
