"""The morning, mended: five tickets at a time."""
import asyncio
import os

from autogen_agentchat.agents import AssistantAgent
from autogen_model import LocalModel

SCALE = int(os.environ.get("SCALE", "1"))


def answer(messages):
    return "Done. TERMINATE"


async def triage(number, model, turn):
    agent = AssistantAgent("triage", model)
    async with turn:
        return await agent.run(task="Ticket %d: %s" % (number, "the printer is on fire; " * 40))


async def morning():
    model = LocalModel(answer, cache_bytes=8192 * SCALE, seconds=0.1)
    turn = asyncio.Semaphore(5)
    for size in (1, 2, 1, 3, 2, 1, 70):
        await asyncio.gather(*(triage(n, model, turn) for n in range(size)))


asyncio.run(morning())
