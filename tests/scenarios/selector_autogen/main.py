"""A selector's chat on AutoGen's own replay client, which splits every prompt into words to count
them: the selector is asked who is next with the whole of the chat before it."""
import asyncio
import os

from autogen_agentchat.agents import AssistantAgent
from autogen_agentchat.teams import SelectorGroupChat
from autogen_ext.models.replay import ReplayChatCompletionClient

SCALE = int(os.environ.get("SCALE", "1"))
TURNS = 40


def speech(turn):
    return ("In round %d there is little to be said, and so I say it at length. "
            % turn) * 1200 * SCALE


async def debate():
    names = ["left", "right"]
    speakers = [AssistantAgent(name, ReplayChatCompletionClient([speech(t) for t in range(TURNS)]),
                               description="Speaks from the " + name)
                for name in names]
    chair = ReplayChatCompletionClient([names[turn % 2] for turn in range(TURNS)])
    team = SelectorGroupChat(speakers, model_client=chair, max_turns=TURNS)
    await team.run(task="Shall we adjourn?")


asyncio.run(debate())
