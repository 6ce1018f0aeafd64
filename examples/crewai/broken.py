"""broken.py CUSTOMERS - letters to customers, written by a crew: one task a customer, all in one
crew. CrewAI gives each task the outputs of all tasks before it as context, as nothing else is said;
so each prompt holds all the letters written so far, until one is too long."""

import sys

from crewai import Agent, Crew, Task

from standin import StandIn


def record(customer):
    return "; ".join(f"visit {n}: a question about lamp {customer}" for n in range(40))


writer = Agent(role="writer", goal="write letters", backstory="You write to customers.",
               llm=StandIn(model="stand-in"))
letters = [Task(description=f"Write to customer {customer}. The record: {record(customer)}",
                expected_output="a letter", agent=writer,
                callback=lambda output: print(output.raw.partition(")")[0] + ")", flush=True))
           for customer in range(1, int(sys.argv[1]) + 1)]
Crew(agents=[writer], tasks=letters).kickoff()
