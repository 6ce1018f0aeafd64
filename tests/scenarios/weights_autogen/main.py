"""A service that holds its model itself: sixty layers of weights in half precision, before the
first question is asked."""
import asyncio
import os

import numpy as np
from autogen_agentchat.agents import AssistantAgent
from autogen_model import LocalModel

SCALE = int(os.environ.get("SCALE", "1"))
LAYERS, WIDTH = 24, 1024


class InProcess(LocalModel):
    def __init__(self, answer):
        super().__init__(answer)
        self.layers = [self.load_layer(n) for n in range(LAYERS)]

    def load_layer(self, number):
        wide = WIDTH * 4 * SCALE
        return {"attention": np.full((4, WIDTH, WIDTH), number, np.float16),
                "up": np.full((WIDTH, wide), number, np.float16),
                "gate": np.full((WIDTH, wide), number, np.float16),
                "down": np.full((wide, WIDTH), number, np.float16)}


def answer(messages):
    return "Forty-two. TERMINATE"


async def serve(model):
    for question in range(30):
        await AssistantAgent("sage", model).run(task="What is the answer to question %d?"
                                                % question)


asyncio.run(serve(InProcess(answer)))
