"""broken.py TICKETS - a help desk on AutoGen: one assistant works through the tickets of the night,
and may read a ticket's log. It is never told to forget: each ticket is put before the model with
all the tickets before it, their logs and their answers, until one prompt is too long."""

import asyncio
import sys

from autogen_agentchat.agents import AssistantAgent

from standin import StandIn


def read_log(ticket: int) -> str:
    """The log that came with a ticket."""
    lines = [f"{ticket:05}-{line:03} worker: heartbeat missed, retrying" for line in range(240)]
    return "\n".join(lines)


desk = AssistantAgent(
    "desk",
    model_client=StandIn(),
    tools=[read_log],
    reflect_on_tool_use=True,
    system_message="You help people who keep servers alive.",
)


async def night(tickets):
    for ticket in range(1, tickets + 1):
        result = await desk.run(task=f"Ticket {ticket}: it is down again, what now?")
        if ticket % 10 == 0:
            print(f"ticket {ticket}: {result.messages[-1].content.partition(')')[0]})", flush=True)


asyncio.run(night(int(sys.argv[1])))
