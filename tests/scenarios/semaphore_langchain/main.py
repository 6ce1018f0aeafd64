"""The same queue behind a semaphore of five."""
import asyncio
import os

from langchain_core.output_parsers import StrOutputParser
from langchain_core.prompts import ChatPromptTemplate

from stand_ins import LocalChat, text

SCALE = int(os.environ.get("SCALE", "1"))


def questions(many):
    return [{"question": f"{i}: " + text(14000, i)} for i in range(many)]


async def ask(chain, question):
    return await chain.ainvoke(question)


async def bounded(gate, chain, question):
    async with gate:
        return await ask(chain, question)


async def serve(chain):
    gate = asyncio.Semaphore(5)
    for many in (1, 2, 1, 3, 2, 90):
        answers = await asyncio.gather(*(bounded(gate, chain, q) for q in questions(many)))
        print(len(answers), answers[0][:40])


def main():
    prompt = ChatPromptTemplate.from_template("Answer briefly: {question}")
    asyncio.run(serve(prompt | LocalChat(seconds=0.3, width=128 * SCALE) | StrOutputParser()))


main()
