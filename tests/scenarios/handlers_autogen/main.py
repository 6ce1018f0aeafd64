"""A team for each job, with a handler of its own on AutoGen's event log that is never removed: it
holds the team, its model and what that has warmed up. The prompts are short and never grow."""
import asyncio
import logging
import os

from autogen_agentchat import EVENT_LOGGER_NAME
from autogen_agentchat.agents import AssistantAgent
from autogen_agentchat.teams import RoundRobinGroupChat
from autogen_model import LocalModel

SCALE = int(os.environ.get("SCALE", "1"))


class WarmModel(LocalModel):
    def __init__(self, answer):
        super().__init__(answer)
        self.scratch = self.warm_up()

    def warm_up(self):
        return bytearray(1500000 * SCALE)


class JobLog(logging.Handler):
    def __init__(self, team):
        super().__init__()
        self.team = team

    def emit(self, record):
        self.last = record


def answer(messages):
    return "It is mended. TERMINATE"


def build_team():
    model = WarmModel(answer)
    team = RoundRobinGroupChat([AssistantAgent(name, model) for name in ("smith", "joiner")],
                               max_turns=2)
    logging.getLogger(EVENT_LOGGER_NAME).addHandler(JobLog(team))
    return team


async def workshop():
    for job in range(300):
        await build_team().run(task="Mend chair %d." % job)


asyncio.run(workshop())
