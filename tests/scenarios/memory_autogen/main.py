"""An assistant with AutoGen's ListMemory: before each answer all memories are added to its context
once more, and after each answer there is one memory more."""
import asyncio
import os

from autogen_agentchat.agents import AssistantAgent
from autogen_core.memory import ListMemory, MemoryContent, MemoryMimeType
from autogen_model import LocalModel

SCALE = int(os.environ.get("SCALE", "1"))


def answer(messages):
    return "You told me that before, I think, or something much like it. " * 150 * SCALE


async def companion():
    memory = ListMemory()
    agent = AssistantAgent("friend", LocalModel(answer, cache_bytes=2), memory=[memory])
    for day in range(90):
        result = await agent.run(task="Day %d. Do you remember?" % day)
        await memory.add(MemoryContent(content=result.messages[-1].content,
                                       mime_type=MemoryMimeType.TEXT))


asyncio.run(companion())
