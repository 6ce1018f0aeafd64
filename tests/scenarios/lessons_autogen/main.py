"""Each job ends with a lesson, and each new assistant begins with all of them in its system
message."""
import asyncio
import json
import os

from autogen_agentchat.agents import AssistantAgent
from autogen_model import LocalModel

SCALE = int(os.environ.get("SCALE", "1"))


def as_request(messages):
    body = {"model": "local", "messages": [{"role": m.type, "content": m.content}
                                           for m in messages]}
    return json.dumps(body).encode()


class HostedModel(LocalModel):
    """Reads the prompt as it comes over the wire, as a client of a server on this host does."""

    def render(self, messages):
        return as_request(messages)

    def prefill(self, prompt):
        return json.loads(prompt)["messages"][0]["content"].encode("utf-16")


def lesson(messages):
    return "Never trust the second sensor, and check the first one twice. " * 20000 * SCALE


async def work():
    model = HostedModel(lesson, cache_bytes=1)
    lessons = []
    for job in range(24):
        agent = AssistantAgent("worker", model, system_message="Learned so far:\n"
                               + "\n".join(lessons))
        result = await agent.run(task="Job %d: mend the pump." % job)
        lessons.append(result.messages[-1].content)


asyncio.run(work())
