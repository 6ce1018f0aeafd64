"""set_llm_cache(InMemoryCache()) in front of tickets that never repeat: each prompt and its answer
stay for good."""
import os

from langchain_core.caches import InMemoryCache
from langchain_core.globals import set_llm_cache
from langchain_core.output_parsers import StrOutputParser
from langchain_core.prompts import ChatPromptTemplate

from stand_ins import RemoteChat, text

SCALE = int(os.environ.get("SCALE", "1"))


def ticket(number):
    return text(1000000 * SCALE, number)


def sort(chain, number):
    return chain.invoke({"ticket": ticket(number)})


def main():
    set_llm_cache(InMemoryCache())
    chain = ChatPromptTemplate.from_template(
        "Sort this: {ticket}") | RemoteChat() | StrOutputParser()
    for number in range(120):
        print(sort(chain, number)[:40])


main()
