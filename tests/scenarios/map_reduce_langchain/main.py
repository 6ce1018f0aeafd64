"""A summary by map and reduce: of fifty chapters at a time, on a pool of four. As much at the end
as at the start."""
import os

from langchain_core.documents import Document
from langchain_core.output_parsers import StrOutputParser
from langchain_core.prompts import PromptTemplate
from langchain_core.runnables import RunnableLambda
from langchain_text_splitters import RecursiveCharacterTextSplitter

from stand_ins import LocalChat, text

SCALE = int(os.environ.get("SCALE", "1"))
splitter = RecursiveCharacterTextSplitter(chunk_size=8000, chunk_overlap=200)


def chapters(book):
    return splitter.split_documents(
        [Document("\n\n".join(text(2000, book + i) for i in range(100)))])


def main():
    model = LocalChat(width=256 * SCALE)
    summarise = PromptTemplate.from_template(
        "Summarise: {page_content}") | model | StrOutputParser()
    combine = PromptTemplate.from_template("Combine: {summaries}") | model | StrOutputParser()
    chain = RunnableLambda(chapters) | RunnableLambda(
        lambda docs: [dict(page_content=d.page_content) for d in docs]) \
        | summarise.map() | (lambda found: {"summaries": "\n".join(found)}) | combine
    for book in range(6):
        print(chain.invoke(book, config={"max_concurrency": 4})[:40])


main()
