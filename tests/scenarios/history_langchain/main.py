"""A chat with a memory: RunnableWithMessageHistory puts the whole session before the model at every
turn."""
import os

from langchain_core.chat_history import InMemoryChatMessageHistory
from langchain_core.prompts import ChatPromptTemplate, MessagesPlaceholder
from langchain_core.runnables.history import RunnableWithMessageHistory

from stand_ins import LocalChat, text

SCALE = int(os.environ.get("SCALE", "1"))
sessions = {}


def session(session_id):
    return sessions.setdefault(session_id, InMemoryChatMessageHistory())


def main():
    prompt = ChatPromptTemplate.from_messages(
        [("system", "You keep servers alive."), MessagesPlaceholder("history"),
         ("human", "{question}")])
    chat = RunnableWithMessageHistory(prompt | LocalChat(answer_bytes=6000 * SCALE), session,
                                      input_messages_key="question", history_messages_key="history")
    for turn in range(45):
        answer = chat.invoke({"question": f"{turn}: and now? " + text(1000 * SCALE, turn)},
                             config={"configurable": {"session_id": "night-shift"}})
        print(answer.content[:40])


main()
