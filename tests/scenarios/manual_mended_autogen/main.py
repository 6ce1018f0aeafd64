"""The desk, mended: the assistant gets the three pages of the manual that the question is about."""
import asyncio
import os

from autogen_agentchat.agents import AssistantAgent
from autogen_model import LocalModel

SCALE = int(os.environ.get("SCALE", "1"))
PAGES = {"kettle": 6, "drill": 40, "fridge": 25, "boiler": 150, "mower": 60, "lift": 500,
         "lathe": 300,
         "crane": 2600}
ASKED = ["drill", "kettle", "lift", "fridge", "mower", "lathe", "boiler", "kettle", "lathe",
         "drill"]


def read_page(number):
    return "Page %d. Turn the screw by a quarter, and check the oil.\n" % number


def find_pages(pages, question):
    words = set(question.lower().split())
    return sorted(range(pages), key=lambda n: -len(words & set(read_page(n).lower().split())))[:3]


def answer(messages):
    return "By a quarter. TERMINATE"


async def desk(product, pages):
    question = "How far do I turn the screw of the %s?" % product
    found = "".join(read_page(n) for n in find_pages(pages, question))
    agent = AssistantAgent("expert", LocalModel(answer, cache_bytes=65536 * SCALE),
                           system_message="Of its manual:\n" + found)
    await agent.run(task=question)


async def day():
    for product in ASKED * 3 + ["crane"] + ASKED:
        await desk(product, PAGES[product])


asyncio.run(day())
