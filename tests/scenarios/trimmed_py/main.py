"""A history of the last twenty messages."""
history = []


def build_prompt():
    return "\n".join(history)


def main():
    global history
    for turn in range(3000):
        history.append(f"turn {turn} " + "x" * 30000)
        history = history[-20:]
        build_prompt()


main()
