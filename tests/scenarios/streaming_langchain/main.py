"""A chain that streams, to one client after the other; each answer is large and is let go of. A
sawtooth."""
import os

from langchain_core.language_models import GenericFakeChatModel
from langchain_core.messages import AIMessage
from langchain_core.output_parsers import StrOutputParser
from langchain_core.prompts import ChatPromptTemplate

from stand_ins import text

SCALE = int(os.environ.get("SCALE", "1"))


def answers():
    number = 0
    while True:
        number += 1
        yield AIMessage(text(2000 * (1 + number % 4), number))


def page(chunks):
    return "".join(chunks) * (2000 * SCALE)


def main():
    chain = ChatPromptTemplate.from_template("Write about {subject}") | GenericFakeChatModel(
        messages=answers()) \
        | StrOutputParser()
    for number in range(16):
        print(len(page(chain.stream({"subject": f"number {number}"}))))


main()
