"""The map of a report's page in Chromium: segments, blocks and holes are what the data holds, and
it follows mouse, keys, search and the fragment; with as many pieces as a page may have, too."""
import pathlib
import sys

import pytest
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import block  # noqa: E402
import forge  # noqa: E402
from sample import hostile, pages, recorded  # noqa: E402,F401
from test_browser import browser, chromium, fragment, pixels  # noqa: E402,F401
from test_browser import settled, show, text_of  # noqa: E402
from test_flame import FRAME_MS, work  # noqa: E402

PIECES = 50000


def mapped(pages):
    """The pages with a map: name, space, and its map."""
    for name, path in pages.items():
        for space in block.read(path.read_text())["spaces"]:
            if space.get("map", {}).get("segments"):
                yield name, space["name"], space["map"]


def open_map(driver, path, space, more=""):
    show(driver, path, f"#view=map&space={space}{more}")
    settled(driver)
    return driver.find_element(By.ID, "map")


def cells(driver, table):
    more = driver.find_element(By.CSS_SELECTOR, "#panel-map .more")
    if more.is_displayed():
        more.click()
    return driver.execute_script("""
        return [...document.querySelectorAll(`#panel-map .${arguments[0]} tbody tr`)].map((row) =>
          [row.querySelector(".name").textContent,
           ...[...row.querySelectorAll("td")].map((c) => c.title || c.textContent)])""", table)


def number(text):
    return int(text.replace(",", ""))


def pieces_of(m):
    """By segment its pieces: (offset, kind, size, free, blocks, holes)."""
    out, at = [], 0
    for *_, count in m["segments"]:
        offset, list_ = 0, []
        for kind, size, *rest in m["pieces"][at:at + count]:
            list_.append((offset, kind, size, *rest))
            offset += size
        out.append(list_)
        at += count
    return out


def test_is_what_the_data_holds(browser, pages):
    seen = 0
    for name, space, m in mapped(pages):
        open_map(browser, pages[name], space)
        assert pixels(browser, "map") > 3, name
        sites = cells(browser, "sites")
        assert [(s[0], number(s[1]), number(s[2])) for s in sites] == \
            [(s["function"], s["bytes"], s["blocks"]) for s in m["sites"]], name
        segments = cells(browser, "segments")
        assert [s[0] for s in segments] == [hex(start) for start, *_ in m["segments"]]
        for row, pieces in zip(segments, pieces_of(m)):
            assert number(row[3]) == sum(p[4] for p in pieces)
            assert number(row[4]) == sum(p[5] for p in pieces)
        assert browser.get_log("browser") == [], name
        seen += 1
    assert seen >= 3


def test_keys_step_and_zoom(browser, pages):
    name, space, m = max(mapped(pages), key=lambda one: len(one[2]["pieces"]))
    canvas = open_map(browser, pages[name], space)
    tip = browser.find_element(By.ID, "tip")
    start = m["segments"][0][0]
    for offset, kind, *_ in pieces_of(m)[0][:5]:
        canvas.send_keys(Keys.ARROW_RIGHT)
        settled(browser)
        assert hex(start + offset) in tip.text.split("\n")
        assert (tip.text.split("\n")[0] == "a hole") == (kind == 0)
        if kind >= 3:
            assert m["sites"][kind - 3]["function"] in tip.text
    canvas.send_keys(Keys.ENTER)
    settled(browser)
    assert fragment(browser).endswith(f"segment={start:x}")
    canvas.send_keys(Keys.ENTER)
    settled(browser)
    assert "bytes=" in fragment(browser)
    link, said = fragment(browser), text_of(browser, "#panel-map .crumbs")
    for _ in range(8):  # the part that is looked at follows the block
        canvas.send_keys(Keys.ARROW_RIGHT)
        settled(browser)
    assert browser.find_element(By.CSS_SELECTOR, "#panel-map .selected").is_displayed()
    canvas.send_keys(Keys.ESCAPE)
    assert "bytes=" not in fragment(browser) and "segment=" in fragment(browser)
    canvas.send_keys(Keys.ESCAPE)
    assert "segment=" not in fragment(browser)
    show(browser, pages[name], link)
    assert text_of(browser, "#panel-map .crumbs") == said


def test_click_and_back(browser, pages):
    name, space, m = max(mapped(pages), key=lambda one: one[2]["bytes"])
    canvas = open_map(browser, pages[name], space)
    widest = max(range(len(m["segments"])), key=lambda i: m["segments"][i][1])
    browser.find_elements(By.CSS_SELECTOR, "#panel-map .segments button")[widest].click()
    settled(browser)
    assert f"segment={m['segments'][widest][0]:x}" in fragment(browser)
    ActionChains(browser).move_to_element(canvas).perform()
    assert browser.find_element(By.ID, "tip").is_displayed()
    ActionChains(browser).click().perform()
    settled(browser)
    zoomed = fragment(browser)
    browser.back()
    settled(browser)
    assert fragment(browser) != zoomed or len(m["pieces"]) == 1
    browser.back()
    settled(browser)
    assert "segment=" not in fragment(browser)


def test_search_and_one_site(browser, pages):
    name, space, m = max(mapped(pages), key=lambda one: len(one[2]["sites"]))
    open_map(browser, pages[name], space)
    browser.find_element(By.TAG_NAME, "body").send_keys("/")
    box = browser.switch_to.active_element
    assert box.get_attribute("id") == "map-find"
    function = m["sites"][0]["function"]
    box.send_keys(function)
    settled(browser)
    listed = [row[0] for row in cells(browser, "sites")]
    assert function in listed
    assert len(listed) == sum(
        function.lower() in f"{s['function']} {s['file'] or ''}:{s['line']}".lower()
        for s in m["sites"])
    box.send_keys(Keys.ENTER)
    settled(browser)
    assert function in browser.find_element(By.ID, "tip").text
    box.send_keys(Keys.ESCAPE)
    browser.find_element(By.CSS_SELECTOR, "#panel-map .sites button").click()
    assert "site=0" in fragment(browser)
    assert browser.find_element(By.CSS_SELECTOR, "#panel-map .sites button") \
        .get_attribute("aria-pressed") == "true"


@pytest.mark.parametrize("wrong", ["&segment=zz&bytes=9-1", "&segment=0", "&site=77&bytes=0-0",
                                   "&segment=%00&site=-1", "&find=%F0&site=1e9"])
def test_wrong_fragments(browser, pages, wrong):
    name, space, _ = next(mapped(pages))
    open_map(browser, pages[name], space, wrong)
    assert pixels(browser, "map") > 3


def test_names_stay_text(browser, hostile):
    for space in block.read(hostile.read_text())["spaces"]:
        if space.get("map", {}).get("segments"):
            canvas = open_map(browser, hostile, space["name"])
            for _ in range(3):
                canvas.send_keys(Keys.ARROW_RIGHT)
            assert browser.find_elements(By.CSS_SELECTOR, "[onmouseover]") == []
            assert browser.find_elements(By.CSS_SELECTOR, "#tip b, .sites b") == []


def test_narrow(browser, pages):
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", {
        "width": 400, "height": 800, "deviceScaleFactor": 2, "mobile": True})
    for name, space, _ in mapped(pages):
        open_map(browser, pages[name], space)
        assert browser.execute_script("return document.documentElement.scrollWidth") <= 400, name


@pytest.fixture(scope="module")
def large(tmp_path_factory, pages):
    path = tmp_path_factory.mktemp("large-map") / "page.html"
    path.write_text(forge.replace(pages["recorded"].read_text(), 0, block.MAP,
                                  forge.large_map(20, 50, PIECES)))
    return path


def test_room_and_largest_hole(browser, large):
    """What would be in the way of the request, and what pins the largest hole, each with a button
    that leads there."""
    m = block.read(large.read_text())["spaces"][0]["map"]
    open_map(browser, large, "host")
    says = text_of(browser, "#panel-map .says")
    first, size, _, blocks = m["room"]
    assert f"with {blocks} blocks" in says and "No hole is that large" in says
    assert "is pinned between" in says
    inside = {}
    for (start, *_), pieces in zip(m["segments"], pieces_of(m)):
        for offset, kind, length, free, count, _ in pieces:
            if count and first <= start + offset < first + size:
                inside[kind - 3] = inside.get(kind - 3, 0) + length - free
    most = max(inside, key=lambda site: (inside[site], -site))
    assert f"out of the way: {chr(65 + most)} " in says
    for i, there in enumerate((first, None)):
        open_map(browser, large, "host")
        browser.find_elements(By.CSS_SELECTOR, "#panel-map .says button")[i].click()
        settled(browser)
        assert "segment=" in fragment(browser) and "bytes=" in fragment(browser)
        assert there is None or f"segment={there:x}" in fragment(browser)


def test_fast_with_many_pieces(browser, large):
    open_map(browser, large, "host")
    assert pixels(browser, "map") > 3
    find = """
        const i = document.getElementById("map-find");
        i.value = i.value ? "" : "a";
        i.dispatchEvent(new Event("input"))"""
    click = """
        const m = document.getElementById("map"), r = m.getBoundingClientRect();
        m.dispatchEvent(new MouseEvent("click", {clientX: r.left + 60, clientY: r.top + 70}))"""
    out = """
        document.getElementById("map").dispatchEvent(new KeyboardEvent("keydown", {key: "Escape"}))"""
    spent = {"search": work(browser, find, find), "zoom": work(browser, click, out)}
    browser.execute_script(click)
    assert "segment=" in fragment(browser)
    spent["out"] = work(browser, out, click)
    print(spent)
    assert max(spent.values()) <= FRAME_MS, spent
