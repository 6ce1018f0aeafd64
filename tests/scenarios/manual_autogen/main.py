"""A desk for many products: each question gets an assistant whose system message is that product's
whole manual. Most are short; that of the crane is not."""
import asyncio
import os

from autogen_agentchat.agents import AssistantAgent
from autogen_model import LocalModel

SCALE = int(os.environ.get("SCALE", "1"))
PAGES = {"kettle": 6, "drill": 40, "fridge": 25, "boiler": 150, "mower": 60, "lift": 500,
         "lathe": 300}
CRANE = 2600
ASKED = ["drill", "kettle", "lift", "fridge", "mower", "lathe", "boiler", "kettle", "lathe",
         "drill"]


def read_manual(pages):
    return "".join("Page %d. Turn the screw by a quarter, and check the oil.\n" % n
                   for n in range(pages))


def answer(messages):
    return "By a quarter. TERMINATE"


async def desk(product, pages):
    agent = AssistantAgent("expert", LocalModel(answer, cache_bytes=4096 * SCALE),
                           system_message="You know this manual:\n" + read_manual(pages))
    await agent.run(task="How far do I turn the screw of the %s?" % product)


async def day():
    for product in ASKED * 3 + ["crane"] + ASKED:
        await desk(product, PAGES.get(product, CRANE))


asyncio.run(day())
