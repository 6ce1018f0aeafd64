"""A team whose state is saved after each task, so that a user may go back to any of them. Each is a
copy of all that was said until then; the model itself is given the last four messages only."""
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

    async def save(self, task, team):
        self.saved[task] = json.dumps(await team.save_state())


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
        await points.save(task, team)


asyncio.run(novel())
