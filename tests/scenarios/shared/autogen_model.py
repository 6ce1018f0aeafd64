"""A stand-in for a local language model under AutoGen: no weights and no thoughts, but the memory
of a request. It renders the messages into one prompt, and holds keys and values for each of its
characters until it has answered."""
import asyncio

from autogen_core.models import ChatCompletionClient, CreateResult, RequestUsage

INFO = {"vision": False, "function_calling": True, "json_output": False, "structured_output": False,
        "family": "unknown"}


class LocalModel(ChatCompletionClient):
    """`answer`: called with the messages, gives the text or the tool calls; `cache_bytes`: for each
    character; `seconds`: that an answer takes."""

    def __init__(self, answer, cache_bytes=256, seconds=0):
        self.answer, self.cache_bytes, self.seconds = answer, cache_bytes, seconds

    def render(self, messages):
        return "\n".join("<|%s|>%s" % (m.type, m.content) for m in messages)

    def prefill(self, prompt):
        return bytearray(self.cache_bytes * len(prompt))

    async def create(self, messages, *, tools=(), tool_choice="auto", json_output=None,
                     extra_create_args=None, cancellation_token=None):
        prompt = self.render(messages)
        cache = self.prefill(prompt)
        await asyncio.sleep(self.seconds)
        content = self.answer(messages)
        usage = RequestUsage(prompt_tokens=len(cache) // self.cache_bytes, completion_tokens=1)
        finished = "stop" if isinstance(content, str) else "function_calls"
        return CreateResult(finish_reason=finished, content=content, usage=usage, cached=False)

    async def create_stream(self, messages, **options):
        yield await self.create(messages, **options)

    async def close(self):
        pass

    def actual_usage(self):
        return RequestUsage(prompt_tokens=0, completion_tokens=0)

    total_usage = actual_usage

    def count_tokens(self, messages, *, tools=()):
        return len(self.render(messages)) // 4

    def remaining_tokens(self, messages, *, tools=()):
        return 1000000

    @property
    def model_info(self):
        return INFO

    capabilities = model_info
