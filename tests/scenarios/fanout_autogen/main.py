"""Every ticket of the morning is handed to an assistant at once. Each of them has a short prompt,
and holds the model's memory of it while it waits for its answer."""
import asyncio
import os

from autogen_agentchat.agents import AssistantAgent
from autogen_model import LocalModel

SCALE = int(os.environ.get("SCALE", "1"))


def answer(messages):
    return "Done. TERMINATE"


async def triage(number, model):
    agent = AssistantAgent("triage", model)
    return await agent.run(task="Ticket %d: %s" % (number, "the printer is on fire; " * 40))


async def morning():
    model = LocalModel(answer, cache_bytes=8192 * SCALE, seconds=0.4)
    for size in (1, 2, 1, 3, 2, 1, 70):
        await asyncio.gather(*(triage(n, model) for n in range(size)))


asyncio.run(morning())
