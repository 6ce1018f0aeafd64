"""A framework's knowledge: a framework with a role, a message and a fix."""
import json
import os
import subprocess

import lib

TITLE = "A framework's knowledge"
MOST = 2
FILE = """# Jar, a server that keeps answers in jars.
framework = jar
name = Jar
package = jar/

[role cache]
python = jar/shelf.py: Shelf.put

[fix state-retention]
setting = shelf_size
text = Lower shelf_size: the shelf keeps so many jars.

[message full]
kind = failure
space = host
needle = the jar is full
pattern = the jar is full at (?<used_MiB>{NUM}) MiB
cause = state-retention 0.7
meaning = The jar held {used_bytes}.
"""


def follow(tree):
    tree.write("analyzer/knowledge/data/jar.know", FILE)
    tree.insert("analyzer/knowledge/data/meson.build", "  'glibc',", "  'jar',\n")


def prove(tree):
    tree.test("knowledge-knowledge", "knowledge-open")
    tree.make("analyzer/cmd/whyoom")
    environment = dict(os.environ, WHYOOM_KNOWLEDGE=tree.built("analyzer/knowledge/data"))
    done = subprocess.run([tree.built("analyzer/cmd/whyoom"), "explain", "--format", "json"],
                          input="the jar is full at 3 MiB\n", capture_output=True, text=True,
                          env=environment)
    result = json.loads(done.stdout)
    if result["messages"][0]["from"] != "Jar" or result["verdict"]["cause"] != "state-retention":
        raise lib.Failed(f"explain does not know the framework: {done.stdout[:500]}")
