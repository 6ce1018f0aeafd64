"""The tool, mended: the number of orders, and the first twenty."""
import asyncio
import itertools
import json
import os

from autogen_agentchat.agents import AssistantAgent
from autogen_core import FunctionCall
from autogen_core.models import FunctionExecutionResultMessage
from autogen_model import LocalModel

SCALE = int(os.environ.get("SCALE", "1"))
ASKED = ["customer %d" % n for n in range(40)] + ["the whole year"] + [
    "customer %d" % n for n in range(9)]


def rows(which):
    for n in range(320000 * SCALE if "year" in which else 12):
        yield {"order": n, "customer": n % 997, "items": ["bolt", "nut", "washer"],
               "paid": n % 3 == 0, "note": "leave it at the door %d" % n}


def fetch_orders(which: str) -> str:
    """Orders of a customer, or of a year."""
    found = rows(which)
    first = list(itertools.islice(found, 20))
    return json.dumps({"count": len(first) + sum(1 for _ in found), "first": first})


def next_step(messages):
    if isinstance(messages[-1], FunctionExecutionResultMessage):
        return "There were some orders. TERMINATE"
    which = messages[-1].content
    return [FunctionCall(id="1", name="fetch_orders", arguments=json.dumps({"which": which}))]


async def analyst():
    model = LocalModel(next_step, cache_bytes=1)
    for which in ASKED:
        agent = AssistantAgent("analyst", model, tools=[fetch_orders], reflect_on_tool_use=True)
        await agent.run(task="How many orders has " + which + "?")


asyncio.run(analyst())
