"""The same chat, mended: trim_messages leaves the model, and the session, the last of the
conversation."""
import os

from langchain_core.chat_history import InMemoryChatMessageHistory
from langchain_core.messages import trim_messages
from langchain_core.prompts import ChatPromptTemplate, MessagesPlaceholder
from langchain_core.runnables.history import RunnableWithMessageHistory

from stand_ins import LocalChat, text

SCALE = int(os.environ.get("SCALE", "1"))
sessions = {}


def count(messages):
    return sum(len(m.content.split()) for m in messages)


def session(session_id):
    history = sessions.setdefault(session_id, InMemoryChatMessageHistory())
    history.messages = trim_messages(history.messages, max_tokens=8000 * SCALE, token_counter=count,
                                     strategy="last", start_on="human")
    return history


def main():
    prompt = ChatPromptTemplate.from_messages(
        [("system", "You keep servers alive."), MessagesPlaceholder("history"),
         ("human", "{question}")])
    chat = RunnableWithMessageHistory(prompt | LocalChat(answer_bytes=6000 * SCALE), session,
                                      input_messages_key="question", history_messages_key="history")
    for turn in range(60):
        answer = chat.invoke({"question": f"{turn}: and now? " + text(1000 * SCALE, turn)},
                             config={"configurable": {"session_id": "night-shift"}})
        print(answer.content[:40])


main()
