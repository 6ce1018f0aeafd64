"""Nine agents in one chat, who talk for a long while. Each has a session of its own with the model,
and the session keeps what it computed of the prompt until its next turn."""
import asyncio
import os

from autogen_agentchat.agents import AssistantAgent
from autogen_agentchat.teams import RoundRobinGroupChat
from autogen_model import LocalModel

SCALE = int(os.environ.get("SCALE", "1"))
ROLES = ["planner", "coder", "tester", "critic", "writer", "lawyer", "buyer", "seller", "chair"]


class Session(LocalModel):
    cache = b""

    def prefill(self, prompt):
        self.cache = b""
        self.cache = super().prefill(prompt)
        return self.cache


def remark(messages):
    return "I agree with the last speaker, but would like to add a word. " * 60 * SCALE


async def meeting():
    agents = [AssistantAgent(role, Session(remark)) for role in ROLES]
    team = RoundRobinGroupChat(agents, max_turns=99)
    await team.run(task="Agree on a plan for the year.")


asyncio.run(meeting())
