"""A search over an index that grows a little for each question, by a matrix of all vectors against
all: one temporary is larger than everything else together."""
import os

import numpy as np
from langchain_core.documents import Document
from langchain_core.runnables import RunnableLambda
from langchain_core.vectorstores import InMemoryVectorStore

from stand_ins import HashEmbeddings, text

SCALE = int(os.environ.get("SCALE", "1"))


def similar_pairs(store):
    vectors = np.array([entry["vector"] for entry in store.store.values()])
    distances = np.linalg.norm(vectors[:, None, :] - vectors[None, :, :], axis=2)
    return int((distances < 0.5).sum())


def main():
    store = InMemoryVectorStore(HashEmbeddings(64 * SCALE))
    add = RunnableLambda(lambda texts: store.add_documents([Document(t) for t in texts]))
    for day in range(10):
        add.invoke([text(400, day * 20 + i) for i in range(20)])
        print(len(store.similarity_search(text(50, day), k=4)))
    add.invoke([text(400, 10000 + i) for i in range(450)])
    print(similar_pairs(store))


main()
