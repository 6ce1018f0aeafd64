"""The team, mended: the last state alone is kept, and each task begins with a clean slate."""
import asyncio
import json
import os

from autogen_agentchat.agents import AssistantAgent
from autogen_agentchat.teams import RoundRobinGroupChat
from autogen_core.model_context import BufferedChatCompletionContext
from autogen_model import LocalModel

SCALE = int(os.environ.get("SCALE", "1"))


class RestorePoints:
    def __init__(self):
        self.saved = {}

    async def save(self, team):
        self.saved["last"] = json.dumps(await team.save_state())


def answer(messages):
    return "Another paragraph of the novel that we are writing together. " * 200 * SCALE


async def novel():
    model = LocalModel(answer, cache_bytes=16)
    writers = [AssistantAgent(name, model,
                              model_context=BufferedChatCompletionContext(buffer_size=4))
               for name in ("first", "second")]
    team = RoundRobinGroupChat(writers, max_turns=2)
    points = RestorePoints()
    for task in range(70):
        await team.run(task="Go on with chapter %d." % task)
        await points.save(team)
        await team.reset()


asyncio.run(novel())
