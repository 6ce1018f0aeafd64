"""The same help desk, mended: the model is given the last few thousand tokens of the conversation,
and what it is no longer given is not kept either."""

import sys

from langchain_core.chat_history import InMemoryChatMessageHistory
from langchain_core.messages import trim_messages
from langchain_core.prompts import ChatPromptTemplate, MessagesPlaceholder
from langchain_core.runnables.history import RunnableWithMessageHistory

from standin import StandIn

prompt = ChatPromptTemplate.from_messages(
    [("system", "You help people who keep servers alive."),
     MessagesPlaceholder("history"),
     ("human", "{question}")]
)
sessions = {}


def words(messages):
    return sum(len(m.content.split()) for m in messages)


def history_of(session_id):
    history = sessions.setdefault(session_id, InMemoryChatMessageHistory())
    history.messages = trim_messages(
        history.messages, max_tokens=8000, token_counter=words, strategy="last", start_on="human"
    )
    return history


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
