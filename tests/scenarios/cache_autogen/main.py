"""AutoGen's cache of completions over an in-memory store: each new question adds an answer, and no
question comes twice."""
import asyncio
import os

from autogen_agentchat.agents import AssistantAgent
from autogen_core import InMemoryStore
from autogen_ext.models.cache import ChatCompletionCache
from autogen_model import LocalModel

SCALE = int(os.environ.get("SCALE", "1"))


def answer(messages):
    return "That is a long story, and it begins with a ship in the fog. " * 8000 * SCALE


async def narrator():
    model = ChatCompletionCache(LocalModel(answer, cache_bytes=64), InMemoryStore())
    for night in range(500):
        agent = AssistantAgent("narrator", model)
        await agent.run(task="Tell me story number %d." % night)


asyncio.run(narrator())
