"""The map of a report's page in Chromium: segments, blocks and holes are what the data holds, and
it follows mouse, keys, search and the fragment; with as many pieces as a page may have, too."""
import html
import json
import pathlib
import resource
import subprocess
import sys

import pytest
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import block  # noqa: E402
import forge  # noqa: E402
from sample import TESTS, WHYOOM, hostile, pages, recorded  # noqa: E402,F401
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


def write_map(trace, to, *more):
    done = subprocess.run([WHYOOM, "map", trace, "--format", "html", "-o", to, *more],
                          capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return to


@pytest.mark.parametrize("asked", [(), ("--at", "peak"), ("--at", "end"), ("--at", "0.2")])
def test_a_page_of_the_map(browser, recorded, asked, tmp_path):
    """It opens with the map at the moment that was asked for, and says it without scripts, too."""
    page = write_map(recorded, tmp_path / "map.html", *asked)
    said = json.loads(subprocess.run([WHYOOM, "map", recorded, "--format", "json", *asked],
                                     capture_output=True, check=True).stdout)
    text = page.read_text()
    plain = text[text.index('id="layout"'):text.index('id="verdict"')]
    for n, what in ((said["live_blocks"], "block"), (said["holes"], "hole")):
        assert (f"{n:,} {what}" + "s" * (n != 1) if n else f"no {what}") in plain
    assert plain.count("<tr>") == 2 + min(24, len(said["sites"])) + min(24, len(said["segments"]))
    for site in said["sites"][:24]:
        assert html.escape(site["function"], quote=True).replace("&lt;", "&#60;") \
            .replace("&gt;", "&#62;") in plain
    show(browser, page)
    settled(browser)
    assert browser.find_element(By.ID, "map").is_displayed()
    assert browser.execute_script("""
        const [first, second] = [document.getElementById("details"),
          document.getElementById("timeline")];
        return first.getBoundingClientRect().top < second.getBoundingClientRect().top""")
    assert f" in {said['live_blocks']:,} blocks" in text_of(browser, "#panel-map .says")
    assert said["at"] in text_of(browser, "#panel-map .at").lower() or asked[1:] == ("0.2",)


def test_a_page_of_a_space(browser, tmp_path):
    page = write_map(TESTS / "golden" / "v1" / "spaces", tmp_path / "map.html", "--space",
                     "torch:0", "--at", "peak")
    show(browser, page)
    settled(browser)
    assert "torch:0" in browser.find_element(By.ID, "map").get_attribute("aria-label")
    assert "20.0 MiB in 1 segment" in text_of(browser, "#panel-map .says")


@pytest.mark.parametrize("asked,why", [(("--space", "cuda:7"), "no space"),
                                       (("--at", "soon"), "--at is"), (("--pid", "1"), "process")])
def test_asked_for_what_is_not_there(recorded, asked, why, tmp_path):
    done = subprocess.run([WHYOOM, "map", recorded, "--format", "html", "-o", tmp_path / "x",
                           *asked], capture_output=True, text=True)
    assert done.returncode in (1, 2) and why in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_a_full_disk_leaves_the_old_page(recorded, tmp_path):
    page = tmp_path / "map.html"
    page.write_text("old")
    done = subprocess.run([WHYOOM, "map", recorded, "--format", "html", "-o", page],
                          capture_output=True, text=True, preexec_fn=lambda:
                          resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096)))
    assert done.returncode != 0
    assert [p.name for p in tmp_path.iterdir()] == ["map.html"]
    assert page.read_text() == "old"


def test_steps_through_time(browser, pages):
    """By slider, keys and links; call sites keep their letters, the scale stays."""
    space = block.read(pages["recorded"].read_text())["spaces"][0]
    at = {m["ns"]: m["map"] for m in space["moments"]}
    open_map(browser, pages["recorded"], "host")
    slider = browser.find_element(By.ID, "map-at")
    assert int(slider.get_attribute("max")) == len(at) and slider.get_attribute("aria-valuetext")
    letters, heights, seen = {}, set(), 0
    slider.send_keys(Keys.HOME)
    while True:
        settled(browser)
        link = fragment(browser)
        ns = int(link.split("at=")[1]) if "at=" in link else None
        m = at.get(ns, space["map"])
        says = text_of(browser, "#panel-map .says")
        assert f" live in {m['blocks']:,} blocks" in says
        for row in browser.find_elements(By.CSS_SELECTOR, "#panel-map .sites tbody th button"):
            letter = row.find_element(By.CLASS_NAME, "letter").text
            where = row.find_element(By.XPATH, "..").text.replace(letter, "", 1).split()
            assert letters.setdefault(letter, where) == where
        heights.add(browser.find_element(By.ID, "map").size["height"])
        seen += 1
        if slider.get_attribute("value") == slider.get_attribute("max"):
            break
        slider.send_keys(Keys.ARROW_RIGHT)
    assert seen == len(at) + 1 and len(heights) == 1
    first = min(at)
    open_map(browser, pages["recorded"], "host", f"&at={first}")
    assert f" live in {at[first]['blocks']:,} blocks" in text_of(browser, "#panel-map .says")
    browser.find_element(By.TAG_NAME, "body").send_keys("]")
    settled(browser)
    assert f"at={sorted(at)[1]}" in fragment(browser)
    browser.find_element(By.TAG_NAME, "body").send_keys("[")
    settled(browser)
    assert f"at={first}" in fragment(browser)
    for wrong in ("&at=nan", "&at=-5", "&at=1e99"):
        open_map(browser, pages["recorded"], "host", wrong)
        assert "live" in text_of(browser, "#panel-map .at")


@pytest.mark.parametrize("width", [400, 560, 800, 1200])
def test_words_of_the_curves_never_overlap(browser, pages, width):
    seen = 0
    for name, path in pages.items():
        browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", {
            "width": width, "height": 800, "deviceScaleFactor": 1, "mobile": False})
        show(browser, path, "#view=map&at=0")
        settled(browser)
        for canvas in ("whole", "late"):
            words, room = browser.execute_script("""
                const c = document.getElementById(arguments[0]);
                return [c.words.map((w) => ({...w})), c.clientWidth]""", canvas)
            for i, a in enumerate(words):
                assert a["x"] >= 0 and a["x"] + a["width"] <= room, (name, a)
                for b in words[:i]:
                    assert a["x"] >= b["x"] + b["width"] or b["x"] >= a["x"] + a["width"] or \
                        a["y"] >= b["y"] + b["height"] or b["y"] >= a["y"] + a["height"], (a, b)
            texts = [w["text"] for w in words]
            if name == "recorded":
                assert any(t.startswith("limit") for t in texts), texts
                assert any("refused" in t for t in texts), texts
                seen += 1
    assert seen == 2
