"""An analyst with a tool that looks up orders. For a customer it returns a few rows; asked for the
whole year, it returns all of them as one JSON text, which goes back to the model."""
import asyncio
import json
import os

from autogen_agentchat.agents import AssistantAgent
from autogen_core import FunctionCall
from autogen_core.models import FunctionExecutionResultMessage
from autogen_model import LocalModel

SCALE = int(os.environ.get("SCALE", "1"))
ASKED = ["customer %d" % n for n in range(40)] + ["the whole year"] + [
    "customer %d" % n for n in range(9)]


def fetch_orders(which: str) -> str:
    """Orders of a customer, or of a year."""
    count = 320000 * SCALE if "year" in which else 12
    return json.dumps([{"order": n, "customer": n % 997, "items": ["bolt", "nut", "washer"],
                        "paid": n % 3 == 0, "note": "leave it at the door %d" % n}
                       for n in range(count)])


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
