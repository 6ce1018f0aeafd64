"""What would need a network or gigabytes of weights, stood in for: chat models and an embedder with
the interfaces of the real ones."""
import asyncio
import json
import time
import zlib

import numpy as np
from langchain_core.embeddings import Embeddings
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage
from langchain_core.outputs import ChatGeneration, ChatResult

WORDS = "restart the service that has stopped then read its log and wait a minute ".split()


def text(bytes_long, seed=0):
    """That much prose, of which no two are the same object."""
    line = f"{seed} " + " ".join(WORDS[(seed + i) % len(WORDS)] for i in range(40)) + "\n"
    return (line * (bytes_long // len(line) + 1))[:bytes_long]


def result(content, **fields):
    return ChatResult(generations=[ChatGeneration(message=AIMessage(content=content, **fields))])


class RemoteChat(BaseChatModel):
    """The client of a model elsewhere: encodes the request as it would be sent."""
    answer_bytes: int = 400
    seconds: float = 0.0
    served: int = 0

    @property
    def _llm_type(self):
        return "remote"

    def to_wire(self, messages):
        return json.dumps({"messages": [{"role": m.type, "content": m.content}
                                        for m in messages]}).encode()

    def answer(self, messages):
        request = self.to_wire(messages)
        self.served += 1
        return result(f"{len(request)} bytes read. " + text(self.answer_bytes, self.served))

    def _generate(self, messages, stop=None, run_manager=None, **kwargs):
        time.sleep(self.seconds)
        return self.answer(messages)

    async def _agenerate(self, messages, stop=None, run_manager=None, **kwargs):
        await asyncio.sleep(self.seconds)
        return self.answer(messages)


class LocalChat(RemoteChat):
    """A transformer in this process: keys and values for each token while it answers."""
    layers: int = 4
    width: int = 128

    def prefill(self, messages):
        tokens = sum(len(m.content.split()) for m in messages)
        return [np.ones((2, tokens, self.width), np.float32) for _ in range(self.layers)]

    def decode(self, cache):
        self.served += 1
        return result(f"{cache[0].shape[1]} tokens read. " + text(self.answer_bytes, self.served))

    def _generate(self, messages, stop=None, run_manager=None, **kwargs):
        cache = self.prefill(messages)
        time.sleep(self.seconds)
        return self.decode(cache)

    async def _agenerate(self, messages, stop=None, run_manager=None, **kwargs):
        cache = self.prefill(messages)
        await asyncio.sleep(self.seconds)
        return self.decode(cache)


class ToolUser(RemoteChat):
    """Calls the tool `tool` with what it was asked, once for each question, and then answers."""
    tool: str

    def bind_tools(self, tools, **kwargs):
        return self

    def answer(self, messages):
        if messages[-1].type != "human":
            return super().answer(messages)
        call = {"name": self.tool, "args": {"query": messages[-1].content},
                "id": f"call-{self.served}"}
        return result("", tool_calls=[call])


class HashEmbeddings(Embeddings):
    """Vectors of numpy, as lists of floats, as the interface asks."""
    def __init__(self, width):
        self.width = width

    def embed_query(self, query):
        return np.random.default_rng(zlib.crc32(query.encode())).random(self.width).tolist()

    def embed_documents(self, texts):
        return [self.embed_query(one) for one in texts]
