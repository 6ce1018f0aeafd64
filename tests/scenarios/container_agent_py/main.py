"""In a container: an agent that sends the whole conversation as JSON with each step, on disk a
log."""
import json
import os
import tempfile

SCALE = int(os.environ.get("SCALE", "1"))


class Conversation:
    def __init__(self):
        self.steps = []

    def add(self, role, content):
        self.steps.append({"role": role, "content": content})

    def serialise(self):
        return json.dumps({"model": "local", "messages": self.steps})


def complete(body):
    return "answer " * (400 + len(body) % 7)


def main():
    conversation = Conversation()
    with tempfile.TemporaryFile(dir=os.environ.get("TMPDIR", "/var/tmp")) as log:
        for step in range(100000):
            conversation.add("tool", f"result {step} " + "row " * 300000 * SCALE)
            answer = complete(conversation.serialise())
            conversation.add("assistant", answer)
            log.write(answer.encode() * 50)


main()
