"""The same worker with the weights in 8 bits and half as many layers: it fits."""
import os
import tempfile

import numpy as np
from langchain_core.prompts import ChatPromptTemplate
from safetensors.numpy import load_file, save_file

from stand_ins import LocalChat

SCALE = int(os.environ.get("SCALE", "1"))
SHARDS = 9


def write_shard(path):
    save_file({"mlp.up": np.ones((2048, 4096), np.int8), "mlp.down": np.ones((4096, 2048), np.int8),
               "attention": np.ones((1024, 1024), np.int8)}, path)


class Transformer:
    def __init__(self, path):
        self.layers = [self.load_layer(path) for _ in range(SHARDS * SCALE)]

    def load_layer(self, path):
        return load_file(path)


class WorkerChat(LocalChat):
    transformer: object

    @classmethod
    def from_pretrained(cls, path):
        return cls(transformer=Transformer(path))


def main():
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "model.safetensors")  # every layer is alike
        write_shard(path)
        chat = ChatPromptTemplate.from_template(
            "Be brief: {question}") | WorkerChat.from_pretrained(path)
    for number in range(40):
        print(chat.invoke({"question": f"number {number}?"}).content[:40])


main()
