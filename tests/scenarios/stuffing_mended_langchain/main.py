"""Answers from a manual: four pieces for each question, whatever is asked."""
import os

from langchain_classic.chains.combine_documents import create_stuff_documents_chain
from langchain_core.documents import Document
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.vectorstores import InMemoryVectorStore

from stand_ins import HashEmbeddings, RemoteChat, text

SCALE = int(os.environ.get("SCALE", "1"))


def index():
    store = InMemoryVectorStore(HashEmbeddings(64))
    for chapter in range(500):
        store.add_documents([Document(text(80000 * SCALE, chapter), metadata={"chapter": chapter})])
    return store


def answer(chain, found):
    return chain.invoke({"context": found, "question": "why is it down?"})


def main():
    store = index()
    prompt = ChatPromptTemplate.from_template("Answer from this:\n{context}\n\nQuestion: "
                                              "{question}")
    chain = create_stuff_documents_chain(RemoteChat(), prompt)
    for turn in range(20):
        found = store.as_retriever(search_kwargs={"k": 4}).invoke(f"why is it down, {turn}?")
        print(answer(chain, found)[:40])


main()
