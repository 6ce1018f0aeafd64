"""One assistant, asked again and again: its context keeps every message, and replays them all."""
import asyncio
import os

from autogen_agentchat.agents import AssistantAgent
from autogen_model import LocalModel

SCALE = int(os.environ.get("SCALE", "1"))


def answer(messages):
    return "Look at the log of the service and restart what has stopped. " * 240 * SCALE


async def support_line(agent):
    for call in range(36):
        await agent.run(task="Call %d: it is down again, what now? " % call + "log line; " * 1000)


def main():
    agent = AssistantAgent("helper", LocalModel(answer, cache_bytes=512))
    asyncio.run(support_line(agent))


main()
