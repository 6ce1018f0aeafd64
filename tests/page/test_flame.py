"""The flame graph of a report's page in Chromium: what it says is what the data holds, and it
follows mouse, keys, search, the selected range and the fragment; large and hostile trees, too."""
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

NODES = 20000
FRAME_MS = 50


def flame(driver, path, more=""):
    show(driver, path, "#view=flame" + more)
    settled(driver)
    return driver.find_element(By.ID, "flame")


def picture(driver, canvas="flame"):
    return driver.execute_script("return document.getElementById(arguments[0]).toDataURL()", canvas)


def rows(driver):
    """The table of functions: name and file to the bytes that it has itself and with its calls."""
    while driver.find_element(By.CSS_SELECTOR, "#panel-flame .more").is_displayed():
        driver.find_element(By.CSS_SELECTOR, "#panel-flame .more").click()
    found = driver.execute_script("""
        return [...document.querySelectorAll(".functions tbody tr")].map((row) => [
          row.querySelector(".name").textContent, row.querySelector(".where").title,
          ...[...row.querySelectorAll("td.n")].map((cell) => cell.title)])""")
    return {(name, file): tuple(int(t.replace(",", "")) for t in sums)
            for name, file, *sums in found}


def functions_of(data, space, measure):
    """The same from the data, by another way: for each function, who is on the way to a stack."""
    tree, out = space["tree"], {}
    own = list(tree[measure])
    for i, parent in enumerate(tree["parent"]):
        if parent >= 0:
            own[parent] -= tree[measure][i]

    def name(i):
        frame = data["frames"][tree["frame"][i] - 1]
        return frame[0], frame[1] or frame[4]

    for i in range(len(own)):
        at, seen = i, set()
        while at > 0:
            if tree["frame"][at]:
                key = name(at)
                sums = out.setdefault(key, [0, 0])
                sums[0] += own[i] if at == i else 0
                sums[1] += own[i] if key not in seen else 0
                seen.add(key)
            at = tree["parent"][at]
    return out


@pytest.mark.parametrize("layout", ["down", "up", "both"])
def test_each_page(browser, pages, hostile, layout):
    for name, path in [*pages.items(), ("hostile", hostile)]:
        flame(browser, path, f"&flame={layout}")
        assert pixels(browser, "flame") > 3, name
        assert browser.get_log("browser") == [], name


def test_is_what_the_data_holds(browser, pages):
    data = block.read(pages["recorded"].read_text())
    space = data["spaces"][data["run"]["primary"]]
    for measure in ("moment", "total"):
        flame(browser, pages["recorded"], f"&frames=all&measure={measure}")
        want = functions_of(data, space, measure)
        seen = rows(browser)
        for (name, file), sums in seen.items():
            if name != "<module>" and want.get((name, file)):
                assert list(sums) == want[name, file], name
        assert len(seen) == min(500, len([1 for v in want.values() if v[1]]))
        assert any(name == "remember" and whole > 1 << 20 for (name, _), (_, whole) in seen.items())


def test_frames_on_request(browser, pages):
    """Without native frames their bytes are their callers'."""
    flame(browser, pages["recorded"], "&frames=all")
    whole = rows(browser)
    flame(browser, pages["recorded"])
    python = rows(browser)
    flame(browser, pages["recorded"], "&frames=own")
    own = rows(browser)
    assert len(own) < len(python) < len(whole)
    remember, = (key for key in own if key[0] == "remember")
    assert own[remember] == python[remember]
    assert python[remember][1] == whole[remember][1]
    # What it calls is native, but for what is too small to be told.
    assert python[remember][0] >= 0.999 * python[remember][1]


def test_click_back_and_link(browser, pages):
    canvas = flame(browser, pages["recorded"])
    before = text_of(browser, ".functions")
    height = canvas.size["height"]
    ActionChains(browser).move_to_element_with_offset(canvas, -200, 40 - height // 2).perform()
    tip = browser.find_element(By.ID, "tip")
    assert "iB, " in tip.text and "%" in tip.text and "Blocks in all" in tip.text
    ActionChains(browser).click().perform()
    settled(browser)
    chosen = fragment(browser)
    assert "node=" in chosen
    crumbs = browser.find_element(By.CSS_SELECTOR, "#panel-flame .crumbs")
    assert "all of host" in crumbs.text
    zoomed = text_of(browser, ".functions")
    assert zoomed != before
    browser.back()
    settled(browser)
    assert "node=" not in fragment(browser) and text_of(browser, ".functions") == before
    show(browser, pages["v1/spaces"])
    show(browser, pages["recorded"], chosen)
    assert text_of(browser, ".functions") == zoomed
    browser.find_element(By.CSS_SELECTOR, "#panel-flame .crumb").click()
    assert "node=" not in fragment(browser)


def test_keys(browser, pages):
    canvas = flame(browser, pages["recorded"])
    tip = browser.find_element(By.ID, "tip")
    seen = []
    for _ in range(4):
        canvas.send_keys(Keys.ARROW_DOWN)
        settled(browser)
        seen.append(tip.text.splitlines()[0])
    assert seen[0] == "all of host" and len(set(seen)) == 4
    canvas.send_keys(Keys.ARROW_UP)
    assert tip.text.splitlines()[0] == seen[2]
    canvas.send_keys(Keys.ARROW_RIGHT)
    sibling = tip.text.splitlines()[0]
    canvas.send_keys(Keys.ARROW_LEFT)
    assert tip.text.splitlines()[0] == seen[2] or sibling == seen[2]
    canvas.send_keys(Keys.ENTER)
    settled(browser)
    assert "node=" in fragment(browser)
    assert seen[2] in text_of(browser, "#panel-flame .crumbs b")
    canvas.send_keys(Keys.ESCAPE)
    assert "node=" not in fragment(browser)
    canvas.send_keys("s")
    settled(browser)
    assert "flame=both" in fragment(browser)


def test_search(browser, pages):
    data = block.read(pages["recorded"].read_text())
    tree = data["spaces"][0]["tree"]

    def matches(i):
        name, file, line, _, module = data["frames"][tree["frame"][i] - 1]
        return i > 0 and tree["frame"][i] > 0 and "remember" in \
            f"{name} {file or module}:{line}".lower()

    want, inside = 0, set()
    for i, parent in enumerate(tree["parent"]):
        if parent in inside or matches(i):
            want += 0 if parent in inside else tree["moment"][i]
            inside.add(i)
    flame(browser, pages["recorded"], "&frames=all")
    browser.find_element(By.TAG_NAME, "body").send_keys("/")
    box = browser.switch_to.active_element
    assert box.get_attribute("id") == "flame-find"
    before = picture(browser)
    box.send_keys("REMEMBER")
    settled(browser)
    found = browser.find_element(By.ID, "flame-found")
    assert int(found.get_attribute("title").replace(",", "")) == want > 0
    assert "box" in found.text and "%" in found.text
    assert picture(browser) != before
    box.send_keys(Keys.ENTER)
    settled(browser)
    tip = browser.find_element(By.ID, "tip")
    assert tip.text.startswith("remember")
    body = browser.find_element(By.TAG_NAME, "body")
    browser.execute_script("document.activeElement.blur()")
    body.send_keys("n")
    body.send_keys("N")
    assert tip.text.startswith("remember")
    box.send_keys(Keys.ESCAPE)
    assert "find" not in fragment(browser) and found.text == ""


def test_sandwich(browser, pages):
    flame(browser, pages["recorded"])
    for button in browser.find_elements(By.CSS_SELECTOR, ".functions button.open"):
        if button.text == "remember":
            button.click()
            break
    settled(browser)
    assert "flame=both" in fragment(browser) and "function=" in fragment(browser)
    assert text_of(browser, "#panel-flame .crumbs").endswith("remember")
    canvas = browser.find_element(By.ID, "flame")
    tip = browser.find_element(By.ID, "tip")
    for key in (Keys.ARROW_DOWN, Keys.ARROW_UP):
        canvas.send_keys(key)
        settled(browser)
    assert tip.text.startswith("serve")  # its caller, above it
    canvas.send_keys(Keys.ENTER)
    settled(browser)
    assert text_of(browser, "#panel-flame .crumbs").endswith("serve")
    browser.find_element(By.ID, "flame").send_keys("/")
    browser.switch_to.active_element.send_keys("<module>" + Keys.ENTER)
    settled(browser)
    assert tip.text.startswith("server.py:")  # among the callers


def test_range(browser, pages):
    """Born in the range and alive at its end, as the slices have it."""
    data = block.read(pages["recorded"].read_text())
    space = data["spaces"][0]
    slices, places = space["slices"], space["places"]["list"]
    number, = (i for i, p in enumerate(places) if p["function"] == "remember")
    count, start, end = slices["count"], 10, 40
    kept = sum(cell[0] for (born, further), cell in slices["sites"][number].items()
               if start <= born < end and (further == count or born + further >= end))
    flame(browser, pages["recorded"], f"&from={start}&to={end}")
    own, = (sums[0] for (name, _), sums in rows(browser).items() if name == "remember")
    assert own == kept > 0
    assert "Born in the range" in browser.find_element(By.ID, "choose-measure").text
    assert "by call site" in text_of(browser, "#panel-flame")


def test_measures(browser, pages):
    flame(browser, pages["recorded"])
    texts = set()
    for measure in block.MEASURES:
        browser.execute_script("""
            const c = document.getElementById("choose-measure");
            c.value = arguments[0];
            c.dispatchEvent(new Event("change"))""", measure)
        settled(browser)
        assert f"measure={measure}" in fragment(browser) or measure == "moment"
        texts.add(text_of(browser, ".functions"))
    assert len(texts) >= 4


@pytest.mark.parametrize("wrong", [
    "&node=99999.x&measure=zz&frames=q", "&node=-1.&flame=up", "&flame=both&function=1e9",
    "&flame=both&function=-3", "&flame=%00&node=1.5", "&find=%F0&flame=both", "&from=1&to=2"])
def test_wrong_fragments(browser, pages, wrong):
    flame(browser, pages["v1/spaces"], wrong)
    assert pixels(browser, "flame") >= 1


def test_names_stay_text(browser, hostile):
    canvas = flame(browser, hostile, "&frames=all")
    seen = ""
    for _ in range(12):
        canvas.send_keys(Keys.ARROW_DOWN)
        seen += browser.find_element(By.ID, "tip").text
    canvas.send_keys(Keys.ENTER)
    assert "onmouseover" in seen + text_of(browser, "#panel-flame")
    assert browser.find_elements(By.CSS_SELECTOR, "[onmouseover]") == []
    assert browser.find_elements(By.CSS_SELECTOR, "#tip b, .functions b") == []


def test_narrow_and_screen_reader(browser, pages, hostile):
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", {
        "width": 400, "height": 800, "deviceScaleFactor": 2, "mobile": True})
    for path in (pages["recorded"], hostile):
        flame(browser, path)
        wide = browser.execute_script("return document.documentElement.scrollWidth")
        assert wide <= 400, (path, wide)
    flame(browser, pages["recorded"])
    nodes = browser.execute_cdp_cmd("Accessibility.getFullAXTree", {})["nodes"]
    said = [(n.get("role", {}).get("value"), n.get("name", {}).get("value", "")) for n in nodes]
    assert [name for role, name in said if role in ("image", "img") and
            "Flame graph of host" in name and "remember" in name]
    assert [name for role, name in said if role == "columnheader" and "Itself" in name]


@pytest.fixture(scope="module")
def large(tmp_path_factory, pages):
    """20,000 nodes, as many as a page may have; and a chain of them."""
    folder = tmp_path_factory.mktemp("large")
    text = pages["recorded"].read_text()
    frames = len(block.read(text)["frames"])
    sums = list(range(NODES, 0, -1))
    chain = forge.tree([-1, *range(NODES - 1)], [1 + i % frames for i in range(NODES)], [sums] * 5)
    out = {}
    for name, body in (("wide", forge.large_tree(frames, NODES)), ("chain", chain)):
        out[name] = folder / f"{name}.html"
        out[name].write_text(forge.replace(text, 0, block.TREE, body))
    return out


def work(driver, action, undo=""):
    """Milliseconds that the page works for an action: its event and the frame that is drawn for it.
    The least of some, for other programs run beside this one."""
    return min(driver.execute_async_script(f"""
        const done = arguments[0], c = document.getElementById("flame");
        const own = window.requestAnimationFrame;
        let spent = 0;
        window.requestAnimationFrame = (f) => own((t) => {{
          const start = performance.now();
          f(t);
          spent += performance.now() - start;
        }});
        const start = performance.now();
        {{ {action} }}
        spent += performance.now() - start;
        window.requestAnimationFrame = own;
        own(() => own(() => {{
          {{ {undo} }}
          own(() => own(() => done(spent)));
        }}))""") for _ in range(5))


CLICK = """
const r = c.getBoundingClientRect();
c.dispatchEvent(new MouseEvent("click", {clientX: r.left + 60, clientY: r.top + %d}))"""
ESCAPE = 'c.dispatchEvent(new KeyboardEvent("keydown", {key: "Escape"}))'
FIND = """
const i = document.getElementById("flame-find");
i.value = "%s";
i.dispatchEvent(new Event("input"))"""


def test_fast_with_many_nodes(browser, large):
    flame(browser, large["wide"], "&frames=all")
    assert pixels(browser, "flame") > 8
    zoom = CLICK % 48
    spent = {"zoom": work(browser, zoom, ESCAPE), "search": work(browser, FIND % "e", FIND % "")}
    browser.execute_script(f'const c = document.getElementById("flame");{zoom}')
    assert "node=" in fragment(browser)
    spent["out"] = work(browser, ESCAPE, zoom)
    browser.execute_script(f'const c = document.getElementById("flame");{ESCAPE}')
    print(spent)
    assert "node=" not in fragment(browser)
    assert max(spent.values()) <= FRAME_MS, spent


@pytest.mark.parametrize("layout", ["down", "up", "both"])
def test_deep(browser, large, layout):
    """A canvas is as large as its window, not as the data; the innermost frame can be reached."""
    canvas = flame(browser, large["chain"], f"&frames=all&flame={layout}")
    assert canvas.size["height"] <= 900
    tall, = browser.execute_script("""
        const pane = document.querySelector("#panel-flame .pane");
        pane.scrollTop = pane.scrollHeight;
        return [pane.scrollHeight]""")
    settled(browser)
    assert tall > 3000 and pixels(browser, "flame") > 3
