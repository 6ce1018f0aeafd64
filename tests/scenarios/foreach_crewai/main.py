"""kickoff_for_each_async over all applications of the day: CrewAI copies the crew for each, and
runs them all at once in threads."""
import asyncio
import os
from concurrent.futures import ThreadPoolExecutor

from crewai_model import LocalModel, final
from crewai import Agent, Crew, Task

SCALE = int(os.environ.get("SCALE", "1"))


def answer(messages):
    return final("invite")


async def screening(crew):
    asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(32))
    for count in (1, 2, 24):
        applications = [{"letter": "I am the best. " * 120} for _ in range(count)]
        await crew.kickoff_for_each_async(inputs=applications)


def main():
    reader = Agent(role="reader", goal="read letters", backstory="You read.",
                   llm=LocalModel(answer=answer, cache_bytes=8192 * SCALE, seconds=1.5))
    task = Task(description="Read this: {letter}", expected_output="invite or not", agent=reader)
    asyncio.run(screening(Crew(agents=[reader], tasks=[task])))


main()
