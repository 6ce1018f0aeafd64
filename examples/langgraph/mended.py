"""The same intake, mended: the state holds the name of a file in place of the documents, and a
claim that is decided is deleted from the checkpointer."""

import os
import signal
import sys
import tempfile
from typing import TypedDict

from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, StateGraph

from claims import claims, redacted, summary

folder = tempfile.TemporaryDirectory()


class Claim(TypedDict):
    file: str
    summary: str
    decision: str


def stored(name, documents):
    path = os.path.join(folder.name, name)
    with open(path, "w") as f:
        f.write(documents)
    return path


def redact(state):
    with open(state["file"]) as f:
        stored(os.path.basename(state["file"]), redacted(f.read()))
    return {}


def summarise(state):
    with open(state["file"]) as f:
        return {"summary": summary(f.read())}


def decide(state):
    os.unlink(state["file"])
    return {"decision": "pay" if "storm" in state["summary"] else "ask"}


builder = StateGraph(Claim)
builder.add_node("redact", redact)
builder.add_node("summarise", summarise)
builder.add_node("decide", decide)
builder.add_edge(START, "redact")
builder.add_edge("redact", "summarise")
builder.add_edge("summarise", "decide")
builder.add_edge("decide", END)
saver = InMemorySaver()
intake = builder.compile(checkpointer=saver)

for number, documents in claims(int(sys.argv[1])):
    signal.alarm(10)  # LangGraph waits without end for a thread that ended for want of memory
    thread = f"claim-{number}"
    claim = intake.invoke(
        {"file": stored(thread, documents)}, config={"configurable": {"thread_id": thread}}
    )
    saver.delete_thread(thread)
    if number % 20 == 0:
        print(f"claim {number}: {claim['decision']}", flush=True)
