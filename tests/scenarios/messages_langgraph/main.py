"""A graph that talks to itself: every node is given the whole message state, and adds to it."""
import os

from langchain_core.messages import HumanMessage
from langgraph.graph import END, START, MessagesState, StateGraph

from stand_ins import LocalChat, text

SCALE = int(os.environ.get("SCALE", "1"))
ROUNDS = 16
model = LocalChat(width=192 * SCALE, answer_bytes=10000)


def critic(state):
    return {"messages": [model.invoke(state["messages"])]}


def writer(state):
    answer = model.invoke(state["messages"])
    return {"messages": [answer, HumanMessage("say more about that")]}


def again(state):
    again.rounds += 1
    return END if again.rounds >= ROUNDS else "writer"


def main():
    again.rounds = 0
    builder = StateGraph(MessagesState)
    builder.add_node("writer", writer)
    builder.add_node("critic", critic)
    builder.add_edge(START, "writer")
    builder.add_edge("writer", "critic")
    builder.add_conditional_edges("critic", again)
    graph = builder.compile()
    state = graph.invoke({"messages": [("user", text(2000))]}, config={"recursion_limit": 1000})
    print(len(state["messages"]))


main()
