"""Every turn keeps its whole prompt, which holds those before it."""
import os

SCALE = int(os.environ.get("SCALE", "1"))


def extend(context, turn):
    return context + f"turn {turn}: " + "z" * 20000 * SCALE


def main():
    log = []
    context = ""
    for turn in range(100000):
        context = extend(context, turn)
        log.append(context)


main()
