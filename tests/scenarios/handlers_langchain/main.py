"""A service that adds a callback handler to its model for each request, to time it, and never takes
it away."""
import os

from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.prompts import ChatPromptTemplate

from stand_ins import RemoteChat, text

SCALE = int(os.environ.get("SCALE", "1"))
EVENTS = 20000
timers = []


class Timer(BaseCallbackHandler):
    def __init__(self, number):
        self.number = number
        self.samples = bytearray(64 * EVENTS * SCALE)

    def on_chat_model_start(self, serialized, messages, **kwargs):
        self.samples[0] = 1


def handle(chain, number):
    timer = Timer(number)
    timers.append(timer)
    return chain.invoke({"question": text(3000, number)}, config={"callbacks": [timer]})


def main():
    chain = ChatPromptTemplate.from_template("Answer: {question}") | RemoteChat()
    for number in range(250):
        print(handle(chain, number).content[:40])


main()
