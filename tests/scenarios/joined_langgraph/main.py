"""The same shape as a fan-out, and another fault: the branches are small, and what they found is
joined into one matrix of everything against everything."""
import operator
import os
from typing import Annotated, TypedDict

import numpy as np
from langgraph.graph import END, START, StateGraph
from langgraph.types import Send

from stand_ins import HashEmbeddings, text

SCALE = int(os.environ.get("SCALE", "1"))
embedder = HashEmbeddings(96)


class State(TypedDict):
    documents: list
    vectors: Annotated[list, operator.add]


def embed(branch):
    return {"vectors": [embedder.embed_query(branch["document"])]}


def spread(state):
    return [Send("embed", {"document": document}) for document in state["documents"]]


def compare(state):
    rows = np.array(state["vectors"])
    differences = rows[:, None, :] - rows[None, :, :]
    print(len(rows), float(differences.max()))
    return {}


def main():
    builder = StateGraph(State)
    builder.add_node("embed", embed)
    builder.add_node("compare", compare)
    builder.add_conditional_edges(START, spread, ["embed"])
    builder.add_edge("embed", "compare")
    builder.add_edge("compare", END)
    graph = builder.compile()
    for many in (20, 40, 30, 20, 40, 450 * SCALE):
        graph.invoke({"documents": [text(300, i) for i in range(many)], "vectors": []})


main()
