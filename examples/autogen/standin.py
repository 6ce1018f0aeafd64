"""A stand-in for a language model: no weights, but the memory of one. For each request it keeps
keys and values for every token of the prompt, as a transformer does, and lets go of them when it
has answered. It looks up a ticket's log by the tool that it is given, and then answers at
length."""

import json
from array import array

from autogen_core import FunctionCall
from autogen_core.models import (
    ChatCompletionClient, CreateResult, FunctionExecutionResultMessage, RequestUsage, UserMessage,
)

FLOATS_PER_TOKEN = 2 * 4 * 64  # keys and values, 4 layers of 64
SENTENCE = "Then look at the log of the service, restart what has stopped, and wait a minute. "


class StandIn(ChatCompletionClient):
    async def create(self, messages, *, tools=(), **options):
        tokens = [word for m in messages for word in str(m.content).split()]
        cache = self.prefill(tokens)
        if tools and not isinstance(messages[-1], FunctionExecutionResultMessage):
            ticket = [m.content for m in messages if isinstance(m, UserMessage)][-1]
            number = int("".join(c for c in ticket.partition(":")[0] if c.isdigit()))
            content = [FunctionCall(id="1", name="read_log",
                                    arguments=json.dumps({"ticket": number}))]
        else:
            content = f"({len(tokens)} tokens read, {len(cache) * 4 >> 20} MiB) " + SENTENCE * 20
        return CreateResult(finish_reason="stop" if isinstance(content, str) else "function_calls",
                            content=content, cached=False,
                            usage=RequestUsage(prompt_tokens=len(tokens), completion_tokens=1))

    def prefill(self, tokens):
        return array("f", bytes(4 * FLOATS_PER_TOKEN * len(tokens)))

    async def create_stream(self, messages, **options):
        yield await self.create(messages, **options)

    async def close(self):
        pass

    def actual_usage(self):
        return RequestUsage(prompt_tokens=0, completion_tokens=0)

    total_usage = actual_usage

    def count_tokens(self, messages, *, tools=()):
        return sum(len(str(m.content).split()) for m in messages)

    def remaining_tokens(self, messages, *, tools=()):
        return 1_000_000

    @property
    def model_info(self):
        return {"vision": False, "function_calling": True, "json_output": False,
                "structured_output": False, "family": "unknown"}

    capabilities = model_info
