"""A stand-in for a language model: no weights, but the memory of one. For each request it keeps
keys and values for every token of the prompt, as a transformer does, and lets go of them when it
has answered."""

from array import array

from crewai import BaseLLM
from crewai.events.types.llm_events import LLMCallType
from crewai.llms.base_llm import llm_call_context

FLOATS_PER_TOKEN = 2 * 8 * 64  # keys and values, 8 layers of 64
SENTENCE = "The lamp was bought, brought back and mended, and the customer is fond of it. "


class StandIn(BaseLLM):
    def call(self, messages, tools=None, callbacks=None, available_functions=None, from_task=None,
             from_agent=None, response_model=None):
        whose = {"from_task": from_task, "from_agent": from_agent}
        with llm_call_context():
            self._emit_call_started_event(messages, **whose)
            tokens = " ".join(m["content"] for m in messages).split()
            cache = self.prefill(tokens)
            answer = (f"Thought: I now can give a great answer\nFinal Answer: ({len(tokens)} "
                      f"tokens read, "
                      f"{len(cache) * 4 >> 20} MiB) " + SENTENCE * 120)
            self._emit_call_completed_event(answer, LLMCallType.LLM_CALL, **whose)
        return answer

    def prefill(self, tokens):
        return array("f", bytes(4 * FLOATS_PER_TOKEN * len(tokens)))

    def supports_function_calling(self):
        return False

    def get_context_window_size(self):
        return 1 << 30
