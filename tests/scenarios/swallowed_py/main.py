"""An agent that swallows the MemoryError of its turn, gives up and exits 0."""
import os

SCALE = int(os.environ.get("SCALE", "1"))


def replay(history):
    return "".join(history)


def agent():
    history = []
    while True:
        history.append("tool output " + "y" * 1500000 * SCALE)
        try:
            replay(history)
        except MemoryError:
            return "I could not answer."


print(agent())
