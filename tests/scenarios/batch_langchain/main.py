"""A nightly batch on a pool as large as the list: every thread holds the keys and values of its own
prompt."""
import os

from langchain_core.output_parsers import StrOutputParser
from langchain_core.prompts import ChatPromptTemplate

from stand_ins import LocalChat, text

SCALE = int(os.environ.get("SCALE", "1"))


def tickets(many):
    return [{"ticket": text(20000, i)} for i in range(many)]


def main():
    prompt = ChatPromptTemplate.from_template("Sort this ticket: {ticket}")
    chain = prompt | LocalChat(seconds=1.0, width=128 * SCALE) | StrOutputParser()
    for ticket in tickets(4):
        print(chain.invoke(ticket)[:40])
    answers = chain.batch(tickets(40), config={"max_concurrency": 40})
    print(len(answers))


main()
