"""An agent whose tool fetches a page and puts its whole text into the messages. One page is a whole
site."""
import os

from langchain_core.tools import tool
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode, tools_condition

from stand_ins import ToolUser, text

SCALE = int(os.environ.get("SCALE", "1"))
BYTES = {"a.example": 60000, "b.example": 90000, "c.example": 40000,
         "all.example": 45000000 * SCALE}


def fetched(address):
    return "<html>" + text(BYTES[address]) + "</html>"


@tool
def read_page(query: str) -> str:
    """The text of a page."""
    return fetched(query)


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
