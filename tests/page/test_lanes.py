"""Requests, stages and threads as lanes of a report's page: what the data says of each adds up, and
in Chromium a lane selects what the flame graph and the call sites show."""
import os
import pathlib
import subprocess
import sys

import pytest
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import block  # noqa: E402
from sample import WHYOOM, hostile, pages, recorded, server, write  # noqa: E402,F401
from test_browser import browser, chromium, fragment, pixels  # noqa: E402,F401
from test_browser import settled, show, text_of  # noqa: E402

MANY = """
import ctypes
marks = ctypes.CDLL(None)
marks.whyoom_request_begin.restype = ctypes.c_uint64
marks.whyoom_request_begin.argtypes = [ctypes.c_char_p]
marks.whyoom_request_end.argtypes = [ctypes.c_uint64]
kept = []
for i in range(100000):
    request = marks.whyoom_request_begin(b"GET /")
    data = bytearray(600 + i % 1000)
    if i % 1000 == 900:
        kept.append(data)
    marks.whyoom_request_end(request)
"""


def lanes_of(data, kind):
    return [(i, lane) for i, lane in enumerate(data["lanes"]["list"]) if lane["kind"] == kind]


def held(space, index):
    """What it held there; nothing, if it allocated nothing."""
    return space["groups"]["by_lane"].get(index, {"peak": 0, "moment": 0, "total": 0, "count": 0})


def check_sums(space):
    """What each lane held is where its stacks and its call sites are."""
    for one in space["groups"]["by_lane"].values():
        assert one["peak"] >= one["moment"] >= 0 and one["total"] >= one["peak"]
        for sums in (one[k] for k in ("nodes", "places") if k in one):
            for k, measure in enumerate(block.MEASURES):
                if measure in one:
                    assert sum(row[k] for row in sums.values()) == one[measure], measure
        if "nodes" in one:
            assert max(one["nodes"]) < len(space["tree"]["depth"])
            assert max(one["places"]) <= len(space["places"]["list"])


def test_each_page_adds_up(pages, hostile, server):
    for path in [*pages.values(), hostile, server]:
        for space in block.read(path.read_text())["spaces"]:
            if "groups" in space:
                check_sums(space)


def test_threads_made_everything(server):
    data = block.read(server.read_text())
    host = data["spaces"][0]
    threads = lanes_of(data, "thread")
    assert len(threads) == 4
    for measure in ("moment", "total", "count"):
        assert sum(held(host, i)[measure] for i, _ in threads) == host["tree"][measure][0]
    temporary = [row[4] for i, _ in threads for row in held(host, i)["nodes"].values()]
    assert sum(temporary) == host["tree"]["temporary"][0] > 0


def test_requests_are_what_the_program_did(server):
    data = block.read(server.read_text())
    host, requests = data["spaces"][0], lanes_of(data, "request")
    assert data["lanes"]["begun"] == len(requests) == 123 and data["lanes"]["more"] == 0
    assert 1 <= data["lanes"]["at_once"] <= 3
    last = [(i, lane) for i, lane in requests if lane["name"] == "POST /v1/completions/last"]
    assert [lane["flags"] for _, lane in last] == [1, 1, 1]  # refused, and finished
    by_thread = {}
    for i, lane in requests:
        if lane["name"] == "POST /v1/completions/last":
            continue
        assert lane["flags"] == 0
        by_thread.setdefault(lane["tid"], []).append((i, lane))
    assert len(by_thread) == 3
    for list_ in by_thread.values():
        for n, (i, lane) in enumerate(list_):
            size, one = 100000 * (1 + n % 9), held(host, i)
            assert lane["length"] >= 1000000  # it slept for a millisecond
            assert n == 0 or list_[n - 1][1]["from"] + list_[n - 1][1]["length"] <= lane["from"]
            # Its scores, and 40 tokens of 1 kB; the interpreter's own blocks beside them.
            assert size + 40000 <= one["peak"] <= size + 400000
            if lane["from"] + lane["length"] < data["run"]["moment"]:
                assert (one["moment"] >= size) == (n % 5 == 0), (n, one)


def test_request_at_its_stacks(server):
    """The largest ones have their stacks: attend()'s bytes are at attend()."""
    data = block.read(server.read_text())
    host = data["spaces"][0]
    size = {i: held(host, i)["peak"] + held(host, i)["moment"]
            for i, _ in lanes_of(data, "request")}
    with_stacks = {i for i in size if "nodes" in held(host, i)}
    assert len(with_stacks) == 48
    assert min(size[i] for i in with_stacks) >= max(size[i] for i in size.keys() - with_stacks)
    for i in with_stacks:
        places = {host["places"]["list"][p]["function"]: row
                  for p, row in held(host, i)["places"].items()
                  if p < len(host["places"]["list"])}
        assert places["attend"][2] % 100000 == 1 and places["attend"][3] == 1
        assert 0 < held(host, i)["total"] - places["attend"][2] < 400000


def lanes(driver, path, more=""):
    show(driver, path, "#view=lanes" + more)
    settled(driver)
    return driver.find_element(By.ID, "lanes")


def first_row(driver):
    return driver.find_element(By.CSS_SELECTOR, ".lane-table tbody tr")


def test_lane_filters_the_other_views(browser, server):
    data = block.read(server.read_text())
    host = data["spaces"][0]
    requests = lanes_of(data, "request")
    best = max((i for i, _ in requests), key=lambda i: held(host, i)["peak"])
    lanes(browser, server)
    assert pixels(browser, "lanes") > 5
    assert "123 requests" in text_of(browser, "#panel-lanes .hint")
    first_row(browser).find_element(By.CSS_SELECTOR, "button").click()
    settled(browser)
    chosen = int(fragment(browser).split("only=")[1].split("&")[0])
    assert held(host, chosen)["peak"] == held(host, best)["peak"]
    assert "Selected: POST /chat" in text_of(browser, "#panel-lanes .hint")
    browser.find_element(By.ID, "view-flame").click()
    settled(browser)
    label = browser.find_element(By.ID, "flame").get_attribute("aria-label")
    assert "attend" in label
    browser.find_element(By.ID, "view-places").click()
    settled(browser)
    row = next(r for r in browser.find_elements(By.CSS_SELECTOR, ".places tbody tr")
               if "attend" in r.text)
    cells = [c.get_attribute("title") for c in row.find_elements(By.CSS_SELECTOR, "td.n")]
    want = {host["places"]["list"][p]["function"]: row
            for p, row in held(host, chosen)["places"].items()
            if p < len(host["places"]["list"])}["attend"]
    assert [int(c.replace(",", "")) for c in cells] == list(want)
    browser.back()
    browser.back()
    browser.back()
    assert "only=" not in fragment(browser)


def test_choice_and_range(browser, server):
    """The same by the choice of a view; the brush narrows the lanes, and does not apply to one."""
    lanes(browser, server, "&from=60&to=62")
    few = text_of(browser, "#lanes") + browser.find_element(By.ID, "lanes").get_attribute(
        "aria-label")
    lanes(browser, server)
    assert browser.find_element(By.ID, "lanes").get_attribute("aria-label") not in few
    show(browser, server, "#view=flame&from=10&to=60")
    choice = browser.find_element(By.CSS_SELECTOR, "#panel-flame .whose")
    titles = [o.text for o in choice.find_elements(By.TAG_NAME, "option")]
    assert len(titles) == 1 + 48 + 4 and "thread" in titles[-1]
    choice.find_elements(By.TAG_NAME, "option")[1].click()
    settled(browser)
    assert "only=" in fragment(browser)
    assert "does not apply" in text_of(browser, "#panel-flame > .hint")
    choice.find_elements(By.TAG_NAME, "option")[0].click()
    assert "only=" not in fragment(browser)


def test_keyboard(browser, server):
    canvas = lanes(browser, server)
    canvas.send_keys(Keys.ARROW_RIGHT)
    canvas.send_keys(Keys.ARROW_RIGHT)
    tip = browser.find_element(By.ID, "tip")
    first = tip.text
    assert "POST /chat" in first and "held at most" in first
    canvas.send_keys(Keys.ARROW_DOWN)
    assert tip.text != first
    canvas.send_keys(Keys.ENTER)
    assert "only=" in fragment(browser)
    canvas.send_keys(Keys.ESCAPE)
    assert "only=" not in fragment(browser)


@pytest.mark.parametrize("wrong", ["#only=99999&view=flame", "#only=-1&view=lanes",
                                   "#only=x&view=places", "#only=1.5&view=lanes&lanes=no"])
def test_wrong_fragments(browser, server, wrong):
    show(browser, server, wrong)
    settled(browser)
    if "lanes" in wrong:
        assert "Select a lane" in text_of(browser, "#panel-lanes .hint")
    else:
        assert "All work" in text_of(browser, "[role=tabpanel]:not([hidden]) .whose option")


def test_narrow_dark_and_print(browser, server):
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", {
        "width": 400, "height": 800, "deviceScaleFactor": 2, "mobile": True})
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {
        "features": [{"name": "prefers-color-scheme", "value": "dark"}]})
    lanes(browser, server)
    assert browser.execute_script("return document.documentElement.scrollWidth") <= 400
    assert pixels(browser, "lanes") > 5
    printed = browser.execute_cdp_cmd("Page.printToPDF", {"printBackground": True})["data"]
    assert len(printed) > 20000


def test_without_scripts(browser, server):
    browser.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": True})
    try:
        browser.get(f"file://{server}")
        said = browser.find_element(By.ID, "requests").text
    finally:
        browser.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": False})
    assert "123 requests" in said and "refused" in said
    assert said.count("POST /v1/completions/last") == 3
    assert said.count("POST /") == 8


def test_other_pages_have_no_lanes(browser, pages):
    """One thread and no requests: there is nothing to tell apart."""
    data = block.read(pages["recorded"].read_text())
    assert data["lanes"]["list"] == [] and "groups" not in data["spaces"][0]
    show(browser, pages["recorded"], "#view=lanes&only=0")
    assert not browser.find_element(By.ID, "view-lanes").is_displayed()
    assert not browser.find_element(By.CSS_SELECTOR, "#panel-places .whose").is_displayed()


def test_many_requests(browser, tmp_path):
    (tmp_path / "many.py").write_text(MANY)
    subprocess.run([WHYOOM, "run", "-o", tmp_path / "trace", "--", sys.executable,
                    tmp_path / "many.py"], capture_output=True, timeout=120, check=True)
    page = write(tmp_path / "trace", tmp_path / "page.html")
    assert page.stat().st_size <= 400 << 10
    data = block.read(page.read_text())
    requests, host = lanes_of(data, "request"), data["spaces"][0]
    assert data["lanes"]["begun"] == 100000 == data["lanes"]["more"] + len(requests)
    assert len(requests) == 500
    more = host["groups"]["more"]
    total = more["total"] + sum(held(host, i)["total"] for i, _ in requests)
    assert total >= sum(600 + i % 1000 for i in range(100000))
    # Those that left something behind are among them.
    assert sum(held(host, i)["moment"] > 600 for i, _ in requests) >= 100
    lanes(browser, page)
    assert "the other 99,500" in text_of(browser, "#panel-lanes .hint")


LIBRARY = {
    "langgraph/pregel/main.py": """
class Pregel:
    def invoke(self, step, words):
        return step(words)
""",
    "langchain_core/embeddings/fake.py": """
def embed(words):
    return [bytearray(3000) for _ in range(words)]
""",
    "langchain_core/prompts/chat.py": """
def assemble(words):
    return bytearray(200000 + words)
""",
}
PIPELINE = """
from langchain_core.embeddings.fake import embed
from langchain_core.prompts.chat import assemble
from langgraph.pregel.main import Pregel
kept = []
def pipeline(words):
    kept.append(embed(words))
    return len(assemble(words))
def serve():
    graph = Pregel()
    for i in range(30):
        graph.invoke(pipeline, 20 + i)
        kept.append(bytearray(5000))
serve()
"""


def test_known_frameworks(browser, tmp_path):
    """Without marks, the entry functions of known frameworks show requests, and their parts are
    stages."""
    for name, text in LIBRARY.items():
        path = tmp_path / "lib" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    (tmp_path / "pipeline.py").write_text(PIPELINE)
    subprocess.run([WHYOOM, "run", "-o", tmp_path / "trace", "--", sys.executable,
                    tmp_path / "pipeline.py"], capture_output=True, timeout=120, check=True,
                   env={**os.environ, "PYTHONPATH": str(tmp_path / "lib")})
    page = write(tmp_path / "trace", tmp_path / "page.html")
    data = block.read(page.read_text())
    host, requests = data["spaces"][0], lanes_of(data, "request")
    check_sums(host)
    assert len(requests) == 30 and lanes_of(data, "thread") == []
    for n, (i, lane) in enumerate(requests):
        assert held(host, i)["total"] >= 3000 * (20 + n) + 200000
        left = held(host, i)["moment"]  # at the peak, which the last one made
        assert 3000 * (20 + n) <= left <= 3000 * (20 + n) + (20000 if n < 29 else 220000)
    stages = {lane["name"]: held(host, i) for i, lane in lanes_of(data, "stage")}
    words = sum(range(20, 50))
    assert 3000 * words <= stages["embedding"]["moment"] <= 3400 * words
    assert stages["prompt-assembly"]["peak"] < 300000 and \
        stages["prompt-assembly"]["total"] >= 30 * 200000
    lanes(browser, page)
    assert "stage embedding" in text_of(browser, ".lane-table")
    number = next(i for i, lane in lanes_of(data, "stage") if lane["name"] == "prompt-assembly")
    show(browser, page, f"#view=flame&only={number}&measure=total")
    label = browser.find_element(By.ID, "flame").get_attribute("aria-label")
    assert "stage prompt-assembly alone" in label and "assemble" in label
    small = next(i for i, _ in requests if "nodes" in held(host, i))
    show(browser, page, f"#view=flame&only={small}")
    assert "All work" not in text_of(browser, "#panel-flame > .hint")


def test_a_lane_without_call_sites(browser, server):
    data = block.read(server.read_text())
    host = data["spaces"][0]
    number = next(i for i, _ in lanes_of(data, "request") if "nodes" not in held(host, i))
    show(browser, server, f"#view=flame&only={number}")
    assert "is not in this page" in text_of(browser, "#panel-flame > .hint")
    assert "all work" in text_of(browser, "#panel-flame > .hint")
