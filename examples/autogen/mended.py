"""mended.py TICKETS - the same help desk, mended: the model is given the last few messages, the
tool returns the end of the log, and after each ticket the assistant forgets it (a buffered context
bounds what is sent, not what it keeps)."""

import asyncio
import sys

from autogen_agentchat.agents import AssistantAgent
from autogen_core import CancellationToken
from autogen_core.model_context import BufferedChatCompletionContext

from standin import StandIn


def read_log(ticket: int) -> str:
    """The last twenty lines of the log that came with a ticket."""
    lines = [f"{ticket:05}-{line:03} worker: heartbeat missed, retrying" for line in range(240)]
    return "\n".join(lines[-20:])


desk = AssistantAgent(
    "desk",
    model_client=StandIn(),
    tools=[read_log],
    reflect_on_tool_use=True,
    system_message="You help people who keep servers alive.",
    model_context=BufferedChatCompletionContext(buffer_size=10),
)


async def night(tickets):
    for ticket in range(1, tickets + 1):
        result = await desk.run(task=f"Ticket {ticket}: it is down again, what now?")
        await desk.on_reset(CancellationToken())
        if ticket % 10 == 0:
            print(f"ticket {ticket}: {result.messages[-1].content.partition(')')[0]})", flush=True)


asyncio.run(night(int(sys.argv[1])))
