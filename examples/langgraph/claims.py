"""What comes in, and what a language model would make of it."""

PAGE = ("On the night of the {day}th the storm took {count} tiles off the roof, and Mr Smith saw "
        "it. ")


def claims(count):
    """(number, the text of all its documents): some 600 KB each."""
    for number in range(1, count + 1):
        yield number, "".join(PAGE.format(day=number % 28 + 1, count=i) for i in range(6500))


def redacted(documents):
    return documents.replace("Mr Smith", "a neighbour")


def summary(documents):
    return documents[:200]
