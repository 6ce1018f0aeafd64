"""Each look-up is of a moderate size, but every result stays in the context, and the next question
carries them all: this is no single huge payload."""
import asyncio
import json
import os

from autogen_agentchat.agents import AssistantAgent
from autogen_core import FunctionCall
from autogen_core.models import FunctionExecutionResultMessage
from autogen_model import LocalModel

SCALE = int(os.environ.get("SCALE", "1"))


def fetch_orders(which: str) -> str:
    """Orders of a customer."""
    return json.dumps([{"order": n, "customer": which, "note": "leave it at the door"}
                       for n in range(4000 * SCALE)])


def next_step(messages):
    if isinstance(messages[-1], FunctionExecutionResultMessage):
        return "There were some orders. TERMINATE"
    return [FunctionCall(id="1", name="fetch_orders", arguments=json.dumps({"which": "all"}))]


async def analyst():
    agent = AssistantAgent("analyst", LocalModel(next_step, cache_bytes=16), tools=[fetch_orders],
                           reflect_on_tool_use=True)
    for customer in range(30):
        await agent.run(task="How many orders has customer %d?" % customer)


asyncio.run(analyst())
