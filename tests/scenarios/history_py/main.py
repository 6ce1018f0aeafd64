"""A chat loop: every turn is kept, the prompt is joined from all of them."""
import os

SCALE = int(os.environ.get("SCALE", "1"))


class Chat:
    def __init__(self):
        self.messages = []

    def remember(self, role, text):
        self.messages.append({"role": role, "text": text})

    def build_prompt(self):
        return "\n".join(m["role"] + ": " + m["text"] for m in self.messages)


def model(prompt):
    return f"answer {len(prompt)} " + "word " * 2000 * SCALE


def main():
    chat = Chat()
    for turn in range(100000):
        chat.remember("user", f"question {turn} " + "x" * 2000000 * SCALE)
        chat.remember("assistant", model(chat.build_prompt()))


main()
