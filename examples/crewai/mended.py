"""mended.py CUSTOMERS - the same letters, mended: one crew of one task, used again for each
customer by kickoff(inputs=...); no letter is put before the model with another."""

import sys

from crewai import Agent, Crew, Task

from standin import StandIn


def record(customer):
    return "; ".join(f"visit {n}: a question about lamp {customer}" for n in range(40))


writer = Agent(role="writer", goal="write letters", backstory="You write to customers.",
               llm=StandIn(model="stand-in"))
letter = Task(description="Write to customer {customer}. The record: {record}",
              expected_output="a letter", agent=writer,
              callback=lambda output: print(output.raw.partition(")")[0] + ")", flush=True))
crew = Crew(agents=[writer], tasks=[letter])
for customer in range(1, int(sys.argv[1]) + 1):
    crew.kickoff(inputs={"customer": customer, "record": record(customer)})
