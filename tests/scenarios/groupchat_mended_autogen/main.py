"""The meeting, mended: three agents, a dozen turns, and each reads the last few remarks only."""
import asyncio
import os

from autogen_agentchat.agents import AssistantAgent
from autogen_agentchat.teams import RoundRobinGroupChat
from autogen_core.model_context import BufferedChatCompletionContext
from autogen_model import LocalModel

SCALE = int(os.environ.get("SCALE", "1"))
ROLES = ["planner", "critic", "chair"]


class Session(LocalModel):
    cache = b""

    def prefill(self, prompt):
        self.cache = b""
        self.cache = super().prefill(prompt)
        return self.cache


def remark(messages):
    return "I agree with the last speaker, but would like to add a word. " * 40 * SCALE


async def meeting(topic):
    agents = [AssistantAgent(role, Session(remark),
                             model_context=BufferedChatCompletionContext(buffer_size=6))
              for role in ROLES]
    team = RoundRobinGroupChat(agents, max_turns=12)
    await team.run(task="Agree on a plan for %s." % topic)


async def year():
    for month in range(12):
        await meeting("month %d" % month)


asyncio.run(year())
