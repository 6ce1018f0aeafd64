"""The same form with the checkpoints in a file."""
import os
import tempfile
from typing import TypedDict

from langgraph.checkpoint.sqlite import SqliteSaver
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


def serve(builder, saver):
    graph = builder.compile(checkpointer=saver)
    for number in range(60):
        state = graph.invoke({"upload": upload(number), "step": ""},
                             {"configurable": {"thread_id": str(number)}})
        print(number, state["step"])


def main():
    builder = StateGraph(Form)
    for before, name in zip([START, *STEPS], STEPS):
        builder.add_node(name, advance(name))
        builder.add_edge(before, name)
    builder.add_edge(STEPS[-1], END)
    with tempfile.TemporaryDirectory() as folder:
        with SqliteSaver.from_conn_string(os.path.join(folder, "threads.db")) as saver:
            serve(builder, saver)


main()
