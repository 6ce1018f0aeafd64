"""The same fan-out with max_concurrency=4."""
import asyncio
import operator
import os
from typing import Annotated, TypedDict

from langgraph.graph import END, START, StateGraph
from langgraph.types import Send

from stand_ins import LocalChat, text

SCALE = int(os.environ.get("SCALE", "1"))
model = LocalChat(width=128 * SCALE, seconds=0.1)


class State(TypedDict):
    documents: list
    findings: Annotated[list, operator.add]


async def read(branch):
    answer = await model.ainvoke(branch["document"])
    return {"findings": [answer.content[:100]]}


def spread(state):
    return [Send("read", {"document": document}) for document in state["documents"]]


def conclude(state):
    return {"findings": [f"{len(state['findings'])} were read"]}


async def serve(graph):
    for many in (1, 2, 1, 3, 2, 60):
        state = await graph.ainvoke({"documents": [text(16000, i) for i in range(many)],
                                     "findings": []},
                                    config={"max_concurrency": 4})
        print(state["findings"][-1])


def main():
    builder = StateGraph(State)
    builder.add_node("read", read)
    builder.add_node("conclude", conclude)
    builder.add_conditional_edges(START, spread, ["read"])
    builder.add_edge("read", "conclude")
    builder.add_edge("conclude", END)
    asyncio.run(serve(builder.compile()))


main()
