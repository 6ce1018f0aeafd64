"""A stand-in for a language model: no weights, but the memory of one. For each request it keeps
keys and values for every token of the prompt, as a transformer does, and lets go of them when it
has answered. Its answers are long."""

from array import array

from langchain_core.language_models.chat_models import SimpleChatModel

FLOATS_PER_TOKEN = 2 * 8 * 64  # keys and values, 8 layers of 64
SENTENCE = "Then look at the log of the service, restart what has stopped, and wait a minute. "


class StandIn(SimpleChatModel):
    @property
    def _llm_type(self):
        return "stand-in"

    def _call(self, messages, stop=None, run_manager=None, **kwargs):
        tokens = [word for m in messages for word in m.content.split()]
        cache = self.prefill(tokens)
        return (f"({len(tokens)} tokens read, {len(cache) * cache.itemsize >> 20} MiB) "
                + SENTENCE * 60)

    def prefill(self, tokens):
        return array("f", bytes(4 * FLOATS_PER_TOKEN * len(tokens)))
