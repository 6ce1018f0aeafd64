"""A help desk with a memory: every turn of a conversation is put before the model again. Nothing
ever leaves the history, so each prompt is longer than the last, and at some turn one is too
long."""

import sys

from langchain_core.chat_history import InMemoryChatMessageHistory
from langchain_core.prompts import ChatPromptTemplate, MessagesPlaceholder
from langchain_core.runnables.history import RunnableWithMessageHistory

from standin import StandIn

prompt = ChatPromptTemplate.from_messages(
    [("system", "You help people who keep servers alive."),
     MessagesPlaceholder("history"),
     ("human", "{question}")]
)
sessions = {}


def history_of(session_id):
    return sessions.setdefault(session_id, InMemoryChatMessageHistory())


chat = RunnableWithMessageHistory(
    prompt | StandIn(), history_of, input_messages_key="question", history_messages_key="history"
)

for turn in range(1, int(sys.argv[1]) + 1):
    answer = chat.invoke(
        {"question": f"Question {turn}: it is down again, what now?"},
        config={"configurable": {"session_id": "night-shift"}},
    )
    if turn % 10 == 0:
        print(f"turn {turn}: {answer.content.partition(')')[0]})", flush=True)
