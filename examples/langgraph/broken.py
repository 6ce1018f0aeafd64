"""An intake of insurance claims: each claim is a thread of a graph and brings its documents along
in the state. The checkpointer keeps the state after every step, of every claim, also of those that
are long decided."""

import signal
import sys
from typing import TypedDict

from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, StateGraph

from claims import claims, redacted, summary


class Claim(TypedDict):
    documents: str
    summary: str
    decision: str


def redact(state):
    return {"documents": redacted(state["documents"])}


def summarise(state):
    return {"summary": summary(state["documents"])}


def decide(state):
    return {"decision": "pay" if "storm" in state["summary"] else "ask"}


builder = StateGraph(Claim)
builder.add_node("redact", redact)
builder.add_node("summarise", summarise)
builder.add_node("decide", decide)
builder.add_edge(START, "redact")
builder.add_edge("redact", "summarise")
builder.add_edge("summarise", "decide")
builder.add_edge("decide", END)
intake = builder.compile(checkpointer=InMemorySaver())

for number, documents in claims(int(sys.argv[1])):
    signal.alarm(10)  # LangGraph waits without end for a thread that ended for want of memory
    claim = intake.invoke(
        {"documents": documents}, config={"configurable": {"thread_id": f"claim-{number}"}}
    )
    if number % 20 == 0:
        print(f"claim {number}: {claim['decision']}", flush=True)
