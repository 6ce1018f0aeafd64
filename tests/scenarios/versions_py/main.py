"""A document service that keeps every version: each edit is stored as a pickle of the whole."""
import pickle
import os

SCALE = int(os.environ.get("SCALE", "1"))


class Versions:
    def __init__(self):
        self.by_number = {}

    def save(self, number, document):
        self.by_number[number] = pickle.dumps(document)


def edit(document, number):
    document["sections"][number % 40] = f"text {number} " * (2000 * SCALE)
    return document


def main():
    versions = Versions()
    document = {"title": "manual", "sections": ["empty " * 2000 * SCALE] * 40}
    for number in range(100000):
        edit(document, number)
        versions.save(number, document)


main()
