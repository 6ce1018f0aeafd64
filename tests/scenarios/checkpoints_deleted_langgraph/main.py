"""The same form: a thread that is done is deleted from the checkpointer."""
import os
from typing import TypedDict

from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, StateGraph

from stand_ins import text

SCALE = int(os.environ.get("SCALE", "1"))
STEPS = ["received", "scanned", "checked", "priced", "filed"]


class Form(TypedDict):
    upload: str
    step: str


def advance(name):
    def node(state):
        return {"step": name, "upload": state["upload"].replace("wait", name[:4])}
    return node


def upload(number):
    return text(300000 * SCALE, number)


def serve(builder):
    saver = InMemorySaver()
    graph = builder.compile(checkpointer=saver)
    for number in range(60):
        state = graph.invoke({"upload": upload(number), "step": ""},
                             {"configurable": {"thread_id": str(number)}})
        print(number, state["step"])
        saver.delete_thread(str(number))


def main():
    builder = StateGraph(Form)
    for before, name in zip([START, *STEPS], STEPS):
        builder.add_node(name, advance(name))
        builder.add_edge(before, name)
    builder.add_edge(STEPS[-1], END)
    serve(builder)


main()
