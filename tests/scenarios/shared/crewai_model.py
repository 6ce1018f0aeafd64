"""A stand-in for a local language model under CrewAI: no weights and no thoughts, but the memory of
a request. It renders the messages into one prompt, and holds keys and values for each of its
characters until it has answered. Import it before CrewAI, which then keeps its files beside it."""
import os
import time
from typing import Any, Callable

os.environ["CREWAI_STORAGE_DIR"] = os.path.join(os.path.dirname(os.path.abspath(__file__)),
                                                "storage")

from crewai import BaseLLM  # noqa: E402
from crewai.events.types.llm_events import LLMCallType  # noqa: E402
from crewai.llms.base_llm import llm_call_context  # noqa: E402


class LocalModel(BaseLLM):
    """`answer`: called with the messages, gives the text; `cache_bytes`: for each character;
    `seconds`: that an answer takes."""
    answer: Callable[[Any], str]
    cache_bytes: int = 256
    seconds: float = 0

    def __init__(self, **fields):
        super().__init__(model="local", **fields)

    def render(self, messages):
        if isinstance(messages, str):
            return messages
        return "\n".join("<|%s|>%s" % (m["role"], m["content"]) for m in messages)

    def prefill(self, prompt):
        return bytearray(self.cache_bytes * len(prompt))

    def call(self, messages, tools=None, callbacks=None, available_functions=None, from_task=None,
             from_agent=None, response_model=None):
        whose = {"from_task": from_task, "from_agent": from_agent}
        with llm_call_context():
            self._emit_call_started_event(messages, **whose)
            cache = self.prefill(self.render(messages))
            time.sleep(self.seconds)
            text = self.answer(messages) if cache else ""
            self._emit_call_completed_event(text, LLMCallType.LLM_CALL, **whose)
        return text

    def supports_function_calling(self):
        return False

    def get_context_window_size(self):
        return 1 << 30


def final(text):
    """An answer, as CrewAI's prompt asks for it."""
    return "Thought: I now can give a great answer\nFinal Answer: " + text


def use_tool(name, arguments):
    return "Thought: I need to look it up\nAction: %s\nAction Input: %s" % (name, arguments)


def looked_up(messages):
    """Has a tool been used in this conversation?"""
    return any(m["role"] == "assistant" for m in messages)


def between(messages, left, right):
    """What the task names between two marks."""
    text = "".join(m["content"] for m in messages)
    return text.partition(left)[2].partition(right)[0]
