"""The same line, mended: the assistant reads its last eight messages, and keeps no more than
those."""
import asyncio
import os

from autogen_agentchat.agents import AssistantAgent
from autogen_core.model_context import BufferedChatCompletionContext
from autogen_model import LocalModel

SCALE = int(os.environ.get("SCALE", "1"))


class LastMessages(BufferedChatCompletionContext):
    async def add_message(self, message):
        await super().add_message(message)
        del self._messages[:-self._buffer_size]


def answer(messages):
    return "Look at the log of the service and restart what has stopped. " * 240 * SCALE


async def support_line(agent):
    for call in range(36):
        await agent.run(task="Call %d: it is down again, what now? " % call + "log line; " * 1000)


def main():
    agent = AssistantAgent("helper", LocalModel(answer, cache_bytes=512),
                           model_context=LastMessages(buffer_size=8))
    asyncio.run(support_line(agent))


main()
