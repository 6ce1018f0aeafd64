"""Growth that ends: an index is built, then used."""
index = {}


def add(key):
    index[key] = f"{key}: " * 200


def look_up(key):
    return ("answer: " + index[key]) * 3


def main():
    for key in range(30000):
        add(f"key {key}")
    for i in range(100000):
        look_up(f"key {i % 30000}")


main()
