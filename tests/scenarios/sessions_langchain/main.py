"""A session for each visitor, each of a few turns and of the same length, in a dictionary that
forgets nobody."""
import os

from langchain_core.chat_history import InMemoryChatMessageHistory
from langchain_core.prompts import ChatPromptTemplate, MessagesPlaceholder
from langchain_core.runnables.history import RunnableWithMessageHistory

from stand_ins import RemoteChat, text

SCALE = int(os.environ.get("SCALE", "1"))


class Sessions:
    def __init__(self):
        self.by_visitor = {}

    def of(self, visitor):
        return self.by_visitor.setdefault(visitor, InMemoryChatMessageHistory())


def read_upload(visitor, turn):
    return text(700000 * SCALE, visitor * 2 + turn)


def main():
    sessions = Sessions()
    prompt = ChatPromptTemplate.from_messages([MessagesPlaceholder("history"),
                                               ("human", "{question}")])
    chat = RunnableWithMessageHistory(prompt | RemoteChat(), sessions.of,
                                      input_messages_key="question",
                                      history_messages_key="history")
    for visitor in range(80):
        for turn in range(2):
            answer = chat.invoke({"question": read_upload(visitor, turn)},
                                 config={"configurable": {"session_id": visitor}})
        print(answer.content[:40])


main()
