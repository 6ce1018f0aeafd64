"""The same agent: the tool keeps the page in a file and puts its head and its name into the
messages."""
import os
import tempfile

from langchain_core.tools import tool
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode, tools_condition

from stand_ins import ToolUser, text

SCALE = int(os.environ.get("SCALE", "1"))
BYTES = {"a.example": 60000, "b.example": 90000, "c.example": 40000,
         "all.example": 45000000 * SCALE}


FOLDER = tempfile.TemporaryDirectory()


def fetched(address):
    path = os.path.join(FOLDER.name, address)
    with open(path, "w") as f:
        for number in range(BYTES[address] // 10000):
            f.write(text(10000, number))
    return path


@tool
def read_page(query: str) -> str:
    """The text of a page."""
    path = fetched(query)
    with open(path) as f:
        return f"{os.path.basename(path)}: {f.read(2000)}"


def main():
    model = ToolUser(tool="read_page")
    builder = StateGraph(MessagesState)
    builder.add_node("model", lambda state: {"messages": [model.invoke(state["messages"])]})
    builder.add_node("tools", ToolNode([read_page]))
    builder.add_edge(START, "model")
    builder.add_conditional_edges("model", tools_condition)
    builder.add_edge("tools", "model")
    graph = builder.compile()
    for address in ["a.example", "b.example", "c.example"] * 6 + ["all.example"]:
        print(graph.invoke({"messages": [("user", address)]})["messages"][-1].content[:40])


main()
