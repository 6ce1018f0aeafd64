"""The workshop, mended: one model for all, and each job's handler goes when the job is done."""
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


async def workshop():
    events, model = logging.getLogger(EVENT_LOGGER_NAME), WarmModel(answer)
    for job in range(300):
        team = RoundRobinGroupChat([AssistantAgent(name, model) for name in ("smith", "joiner")],
                                   max_turns=2)
        log = JobLog(team)
        events.addHandler(log)
        await team.run(task="Mend chair %d." % job)
        events.removeHandler(log)


asyncio.run(workshop())
