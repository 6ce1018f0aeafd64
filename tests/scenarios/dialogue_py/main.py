"""An asyncio chat room: the answer to each message is made of everything that was said before."""
import asyncio
import os

SCALE = int(os.environ.get("SCALE", "1"))


class Room:
    def __init__(self):
        self.said = []

    def prompt(self):
        return "".join(f"<{who}>{text}" for who, text in self.said)

    async def ask(self, text):
        self.said.append(("user", text))
        prompt = self.prompt()
        await asyncio.sleep(0)  # the model
        self.said.append(("model", prompt[-1000:]))


async def main():
    room = Room()
    for number in range(100000):
        await room.ask(f"{number} " * (200000 * SCALE))


asyncio.run(main())
