"""An agent with a tool that returns all it found: of most customers a few orders, of the last one
every order."""
import json
import os

from langchain.agents import create_agent
from langchain_core.tools import tool

from stand_ins import ToolUser

SCALE = int(os.environ.get("SCALE", "1"))
ORDERS = {"acme": 300, "globex": 500, "initech": 200, "umbrella": 400, "everybody": 250000 * SCALE}


def rows(customer):
    for number in range(ORDERS[customer]):
        yield {"order": number, "customer": customer, "items": [number % 7, number % 11],
               "note": 6 * f"leave order {number} of {customer} with the neighbour, ring twice, "
               f"and do not wait. "}


@tool
def find_orders(query: str) -> str:
    """The orders of a customer."""
    return "\n".join(json.dumps(row) for row in rows(query))


def main():
    agent = create_agent(ToolUser(tool="find_orders"), [find_orders])
    for turn in range(3):
        for customer in ("acme", "globex", "initech", "umbrella"):
            print(turn, agent.invoke({"messages": [("user", customer)]})["messages"][-1].content[
                :40])
    print(agent.invoke({"messages": [("user", "everybody")]})["messages"][-1].content[:40])


main()
