"""A report's page as a file: what it says without scripts, that it loads nothing and runs no name,
that its data adds up, and how large it is."""
import html.parser
import json
import pathlib
import subprocess
import sys
import unicodedata

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import block  # noqa: E402
from sample import GOLDEN, TESTS, WHYOOM, hostile, pages, recorded, write  # noqa: E402,F401

ALL = ["recorded", *GOLDEN]
SMALL = 300 << 10
TAGS = set("html head meta title link style body header b div main section h1 h2 p strong span "
           "meter code small table thead tbody tr th td ol li ul i em pre details summary dl dt dd "
           "noscript script".split())


def json_of(command, trace, *more):
    return json.loads(subprocess.run([WHYOOM, command, "--format", "json", *more, trace],
                                     capture_output=True, check=True, timeout=120).stdout)


def trace_of(name, recorded):
    return recorded if name == "recorded" else TESTS / "golden" / name


class Seen(html.parser.HTMLParser):
    """The text that is shown without scripts, and all tags with their attributes."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.words, self.hidden = [], [], 0
        self.feed(text)
        self.text = " ".join("".join(self.words).split())

    def handle_starttag(self, tag, attributes):
        self.tags.append((tag, dict(attributes)))
        self.hidden += tag in ("script", "style")

    def handle_endtag(self, tag):
        self.hidden -= tag in ("script", "style")
        self.words.append(" ")

    def handle_data(self, data):
        if not self.hidden:
            self.words.append(data)


def squeeze(text):
    return " ".join(text.split())


@pytest.mark.parametrize("name", ALL)
def test_says_the_verdict_without_scripts(name, pages, recorded):
    seen, said = Seen(pages[name].read_text()), json_of("report", trace_of(name, recorded))
    verdict = said["verdict"]
    assert squeeze(verdict["summary"]) in seen.text
    assert verdict["cause"] in seen.text
    assert not verdict["confidence"] or f"{verdict['confidence'] * 100:.0f} % sure" in seen.text
    if verdict["blame"]:
        assert verdict["blame"]["function"] in seen.text
    for fix in verdict["fixes"]:
        assert squeeze(fix["text"]) in seen.text
    for what_if in said["what_if"]:
        assert squeeze(what_if["change"]) in seen.text
    for row in said["ledger"][0]["rows"] if said["ledger"][0]["limit_bytes"] else []:
        assert row["class"] in seen.text
    if said["damage"]:
        assert "Damaged trace" in seen.text


@pytest.mark.parametrize("name", ALL)
def test_loads_nothing(name, pages):
    text = pages[name].read_text()
    seen = Seen(text)
    policy, = (a["content"] for tag, a in seen.tags if a.get("http-equiv"))
    assert policy == ("default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; "
                      "img-src data:")
    for tag, attributes in seen.tags:
        assert tag in TAGS, tag
        for key, value in attributes.items():
            assert not key.startswith("on")
            assert key not in ("src", "href") or value.startswith("data:")
    assert "http://" not in text and "https://" not in text and "@import" not in text


@pytest.mark.parametrize("name", ALL)
def test_same_bytes_and_small(name, pages, recorded, tmp_path):
    again = write(trace_of(name, recorded), tmp_path / "again.html").read_bytes()
    assert again == pages[name].read_bytes()
    assert len(again) <= SMALL


def test_names_are_never_markup(hostile):
    text = hostile.read_text()
    seen = Seen(text)
    assert [tag for tag, _ in seen.tags].count("script") == 1 + len(block.blocks(text))
    for tag, attributes in seen.tags:
        assert tag in TAGS
        assert not [key for key in attributes if key.startswith("on")]
    assert "onmouseover" in seen.text  # it is there, as text
    for shown in (text, *filter(None, block.read(text)["texts"])):
        assert not [c for c in shown if c != "\n" and
                    unicodedata.category(c) in ("Cc", "Cf", "Co", "Cs", "Zl", "Zp")]


@pytest.mark.parametrize("name", ALL)
def test_data_adds_up(name, pages):
    data = block.read(pages[name].read_text())
    assert len(data["spaces"]) == data["run"]["spaces"] > data["run"]["primary"]
    for space in data["spaces"]:
        places, tree = space["places"], space["tree"]
        for m in block.MEASURES:
            assert sum(p[m] for p in places["list"]) + places["rest"][m] == tree[m][0]
        assert tree["moment"][0] == space["moment"]
        assert tree["peak"][0] == space["peak"]
        below = [0] * len(tree["depth"])
        for i, parent in enumerate(tree["parent"]):
            if parent >= 0:
                below[parent] += tree["total"][i]
        assert all(b <= t for b, t in zip(below, tree["total"]))
        assert all(0 <= f <= len(data["frames"]) for f in tree["frame"])
        check_curves(data, space)
        check_slices(space)
        if "map" in space:
            check_map(space["map"])
        times = [m["ns"] for m in space["moments"]]
        assert times == sorted(set(times)) and len(times) <= 12
        for moment in space["moments"]:
            check_map(moment["map"])
            assert len(moment["map"]["pieces"]) <= 3000


@pytest.mark.parametrize("name", ALL)
def test_temporary_means_the_same_everywhere(name, pages, recorded):
    """The page's sums of temporary blocks are the exports'."""
    exported = {}
    done = subprocess.run([WHYOOM, "export", "--format", "jsonl", "--at", "end",
                           trace_of(name, recorded)],
                          capture_output=True, check=True, timeout=120)
    for line in map(json.loads, done.stdout.splitlines()):
        if line["type"] == "sum":
            space = line["space"]
            exported[space] = exported.get(space, 0) + line["temporary_bytes"]
    for space in block.read(pages[name].read_text())["spaces"]:
        assert space["tree"]["temporary"][0] == exported.get(space["name"], 0), space["name"]


@pytest.mark.parametrize("name", ALL)
def test_moments_are_what_map_says(name, pages, recorded):
    """Each further moment's map is that of `whyoom map` at that second; the peak's has the peak."""
    data = block.read(pages[name].read_text())
    for space in data["spaces"]:
        if name == "recorded":
            said = json_of("map", trace_of(name, recorded), "--space", space["name"])
            assert space["map"]["live"] == said["live_bytes"] == space["moment"]
        for moment in space["moments"]:
            if moment["kind"] == "peak":
                assert moment["ns"] == space["peak_ns"]
                at = "peak"
                live = moment["map"]["live"] + moment["map"]["hidden"]
                assert live <= space["peak"]  # less where blocks overlap each other
                assert name != "recorded" or live == space["peak"]
            elif moment["ns"] < 10 ** 6:
                continue  # no second names it exactly
            else:
                at = f"{moment['ns'] / 1e9:.9f}"
            said = json_of("map", trace_of(name, recorded), "--space", space["name"], "--at", at)
            for key, of in (("live", "live_bytes"), ("blocks", "live_blocks"), ("bytes", "bytes"),
                            ("largest_hole", "largest_hole_bytes")):
                assert moment["map"][key] == said[of], (space["name"], at, key)
    if name == "recorded":
        kinds = [m["kind"] for m in data["spaces"][0]["moments"]]
        assert kinds.count("step") >= 5, kinds


def check_curves(data, space):
    for curve in (space["curve"], space["late"]):
        for i, last in enumerate(curve["last"]):
            assert curve["least"][i] <= last <= curve["most"][i]
            assert sum(group[i] for group in curve["groups"][:13]) == last
            assert sum(group[i] for group in curve["groups"][13:]) == last
    assert max(space["curve"]["most"]) == space["peak"]
    assert max(space["late"]["most"]) <= space["peak"]


def check_slices(space):
    """What the slices say of any moment on their borders lies in the curve's next bucket."""
    slices, curve = space["slices"], space["curve"]
    n = slices["count"]
    alive = sum(cell[0] for cells in slices["sites"].values()
                for (born, further), cell in cells.items() if further == n)
    assert alive == curve["last"][-1]
    for border in range(1, n):
        live = sum(cell[0] for cells in slices["sites"].values()
                   for (born, further), cell in cells.items()
                   if born < border and (further == n or born + further >= border))
        at = border * len(curve["last"]) // n
        near = curve["least"][at - 1:at + 1], curve["most"][at - 1:at + 1]
        assert min(near[0]) <= live <= max(near[1])


def check_map(m):
    assert sum(size for _, size, *_ in m["segments"]) + m["more_bytes"] == m["bytes"]
    assert sum(count for *_, count in m["segments"]) == len(m["pieces"])
    assert sum(size for _, size, *_ in m["pieces"]) == m["bytes"] - m["more_bytes"]
    if not m["more"]:
        assert sum(free for _, _, free, _, _ in m["pieces"]) == m["hole_bytes"]
        assert sum(blocks for *_, blocks, _ in m["pieces"]) == m["blocks"]


@pytest.mark.parametrize("name", ["recorded", "v1/marks", "v1/arenas"])
def test_is_what_sites_says(name, pages, recorded):
    """The places are the call sites of `whyoom sites`."""
    data = block.read(pages[name].read_text())
    said = json_of("sites", trace_of(name, recorded), "--space", "host", "-n", "0")
    space = data["spaces"][0]
    seen = {}
    for p in space["places"]["list"]:
        key = p["function"], p["file"], p["line"]
        seen[key] = seen.get(key, 0) + p["moment"]
    told = {}
    for site in said["sites"]:
        key = site["function"], site["file"], site["line"] or 0
        told[key] = told.get(key, 0) + site["live_bytes"]
    assert {k: v for k, v in seen.items() if v} == {k: v for k, v in told.items() if v}
