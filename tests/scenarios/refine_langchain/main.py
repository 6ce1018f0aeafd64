"""A report refined from one page after the other: nobody tells the model to keep the draft short,
and the draft so far is part of every prompt."""
import os

from langchain_core.output_parsers import StrOutputParser
from langchain_core.prompts import PromptTemplate
from langchain_core.runnables import RunnableLambda

from stand_ins import RemoteChat, text

SCALE = int(os.environ.get("SCALE", "1"))


class Writer(RemoteChat):
    """Gives back the draft with a section more."""
    def answer(self, messages):
        draft = messages[-1].content.partition("DRAFT:\n")[2]
        answer = super().answer(messages)
        answer.generations[0].message.content = draft + answer.generations[0].message.content
        return answer


def pages():
    for number in range(30):
        yield text(40000 * SCALE, number)


def shorten(page):
    return page.strip()


def extend(refine, page, draft):
    return refine.invoke({"page": page, "draft": draft})


def main():
    prompt = PromptTemplate.from_template("Extend the draft by this page:\n{page}\nDRAFT:\n{draft}")
    model = Writer(answer_bytes=800000 * SCALE)
    refine = {"page": lambda x: shorten(x["page"]),
              "draft": RunnableLambda(lambda x: x["draft"])} | prompt \
        | model | StrOutputParser()
    draft = ""
    for page in pages():
        draft = extend(refine, page, draft)
        print(len(draft))


main()
