"""Pages with data that no short run has: a page's block with some of its sections written anew."""
import base64
import gzip
import random

import block


def number(value):
    out = bytearray()
    while True:
        out.append(value & 127 | (128 if value > 127 else 0))
        value >>= 7
        if not value:
            return bytes(out)


def signed(value):
    return number(2 * value if value >= 0 else -2 * value - 1)


def column(values):
    return b"".join(map(number, values))


def differences(values):
    return b"".join(signed(b - a) for a, b in zip([0, *values], values))


def tree(parents, frames, sums):
    """A tree's section: parents and 1 + frames in preorder, by measure the sums with all below."""
    depth = [0] * len(parents)
    for i, parent in enumerate(parents[1:], 1):
        depth[i] = depth[parent] + 1
    less = [column([s[0], *(s[p] - v for p, v in zip(parents[1:], s[1:]))]) for s in sums]
    return number(len(parents)) + differences(depth) + column(frames) + \
        column(1 for f in frames if not f) + b"".join(less)


def large_tree(frames, nodes, seed=1):
    """A tree of that many nodes with branches and depths as a server's stacks have them."""
    chance = random.Random(seed)
    parents, kinds, own = [-1], [1], [0]
    while len(parents) < nodes:  # one more stack, which leaves another one somewhere
        at = chance.randrange(len(parents)) if chance.random() < 0.9 else 0
        for _ in range(min(chance.randint(1, 30), nodes - len(parents))):
            parents.append(at)
            kinds.append(1 + chance.randrange(frames))
            own.append(chance.randint(1, 1 << 20))
            at = len(parents) - 1
    children = [[] for _ in parents]
    for i, parent in enumerate(parents[1:], 1):
        children[parent].append(i)
    order, todo = [], [0]
    while todo:
        at = todo.pop()
        order.append(at)
        todo.extend(reversed(children[at]))
    new = {old: i for i, old in enumerate(order)}
    parents = [new.get(parents[old], -1) for old in order]
    kinds = [kinds[old] for old in order]
    sums = [own[old] for old in order]
    for i in range(len(parents) - 1, 0, -1):
        sums[parents[i]] += sums[i]
    return tree(parents, kinds, [sums] * 5)


def large_map(sites, segments, pieces):
    """A map of that many pieces: a block and a hole in turn. The refused request would fit where
    the second segment begins."""
    one = pieces // segments
    sizes = [4096 * (1 + i % 7) for i in range(one)]
    size, free = sum(sizes), sum(sizes[1::2])
    starts = [(1 << 40) + 2 * i * size for i in range(segments)]
    kinds = [0 if i % 2 else 3 + i % sites for _ in range(segments) for i in range(one)]
    ask = sum(sizes[:51])
    out = column([size * segments, (size - free) * segments, pieces // 2, pieces // 2,
                  free * segments, 4096 * 7, 0, ask])
    out += column([1, starts[1], ask, sum(sizes[:51:2]), 26, sites])
    for i in range(sites):
        out += column([1, 0, i, (size - free) * segments // sites, pieces // 2 // sites])
    out += column([segments, 0, 0])
    at = before = 0
    for start in starts:
        out += signed(start - at) + signed(size - before) + column([0, 1, one])
        at, before = start, size
    all_sizes = sizes * segments
    blocks = [1 if k else 0 for k in kinds]
    out += number(len(kinds)) + column(kinds) + column(all_sizes)
    out += column(0 if k else s for k, s in zip(kinds, all_sizes)) + column(blocks)
    out += column(1 - b for b in blocks) + differences([1000 + i for i in range(sum(blocks))])
    return out


def replace(page, space, section, body):
    """The page's text with one section of the space of that number written anew, or added."""
    text = block.blocks(page)[0]
    r, out, at, done = block.Reader(gzip.decompress(base64.b64decode(text))), bytearray(), -1, False

    def add(number_of, data):
        out.extend(number(number_of) + number(len(data)) + data)

    while r.at < len(r.data):
        kind = r.number()
        data = r.bytes(r.number())
        if at == space and not done and kind in (block.SPACE, block.FRAMES):
            add(section, body)
            done = True
        at += kind == block.SPACE
        if at == space and kind == section:
            data, done = body, True
        add(kind, data)
    return page.replace(text, base64.b64encode(gzip.compress(bytes(out), mtime=0)).decode())
