"""A report's page in Chromium: it shows its pictures without a complaint, by mouse and by keyboard,
light, dark, narrow, printed, without scripts and to a screen reader."""
import json
import pathlib
import sys
import time

import pytest
from selenium import webdriver
from selenium.webdriver.chrome.options import Options
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from sample import hostile, pages, recorded  # noqa: E402,F401


@pytest.fixture(scope="module")
def chromium():
    options = Options()
    options.binary_location = "/usr/bin/chromium"
    for word in ("--headless=new", "--no-sandbox", "--disable-dev-shm-usage",
                 "--window-size=1200,900"):
        options.add_argument(word)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    driver = webdriver.Chrome(options=options, service=Service("/usr/bin/chromedriver"))
    yield driver
    driver.quit()


@pytest.fixture
def browser(chromium):
    """As new; a test that leaves a message on the console fails."""
    chromium.get("about:blank")
    chromium.get_log("browser")
    yield chromium
    assert chromium.get_log("browser") == []
    for command in ("Emulation.clearDeviceMetricsOverride", "Emulation.setEmulatedMedia"):
        chromium.execute_cdp_cmd(command, {})


def until(true, what="it did not come"):
    end = time.monotonic() + 10
    while time.monotonic() < end:
        if true():
            return
        time.sleep(0.02)
    raise AssertionError(what)


def ready(driver):
    return driver.execute_script("return document.documentElement.dataset.ready") == "yes"


def show(driver, path, fragment=""):
    driver.get(f"file://{path}{fragment}")
    until(lambda: ready(driver), "the pictures did not come")


def text_of(driver, selector):
    return driver.execute_script("return document.querySelector(arguments[0]).textContent",
                                 selector)


def fragment(driver):
    return driver.execute_script("return location.hash")


def pixels(driver, canvas):
    """How many different colours it has."""
    return driver.execute_script("""
        const c = document.getElementById(arguments[0]);
        const d = new Uint32Array(c.getContext("2d").getImageData(0, 0, c.width, c.height).data.buffer);
        return new Set(d).size""", canvas)


def settled(driver):
    """After the next frame, in which what was asked for is drawn."""
    driver.execute_async_script("""
        const done = arguments[0];
        requestAnimationFrame(() => requestAnimationFrame(done))""")


def test_each_page(browser, pages, hostile):
    for name, path in [*pages.items(), ("hostile", hostile)]:
        show(browser, path)
        settled(browser)
        assert pixels(browser, "whole") > 3, name
        assert browser.find_elements(By.CSS_SELECTOR, ".places tbody tr"), name
        assert browser.get_log("browser") == [], name


def test_names_stay_text(browser, hostile):
    show(browser, hostile)
    for button in browser.find_elements(By.CSS_SELECTOR, ".places .open")[:3]:
        button.click()
        break
    assert browser.find_elements(By.CSS_SELECTOR, "[onmouseover]") == []
    assert "onmouseover" in text_of(browser, ".places")
    assert browser.find_elements(By.CSS_SELECTOR, ".places b") == []


def drag(driver, canvas, start, by):
    driver.execute_script("arguments[0].scrollIntoView({block: 'center'})", canvas)
    ActionChains(driver, duration=50).move_to_element_with_offset(canvas, start, 0) \
        .click_and_hold().move_by_offset(by, 5).release().perform()
    settled(driver)


def test_brush_fragment_and_back(browser, pages):
    show(browser, pages["recorded"])
    before = text_of(browser, ".places thead")
    drag(browser, browser.find_element(By.ID, "whole"), -100, 150)
    chosen = fragment(browser)
    assert "from=" in chosen and "to=" in chosen
    assert "born in it and alive at its end" in text_of(browser, ".range")
    selected = text_of(browser, ".places thead"), text_of(browser, ".places tbody")
    assert "Born in the range" in selected[0]
    browser.back()
    until(lambda: "from=" not in fragment(browser))
    assert text_of(browser, ".places thead") == before
    show(browser, pages["v1/spaces"])
    show(browser, pages["recorded"], chosen)
    assert (text_of(browser, ".places thead"), text_of(browser, ".places tbody")) == selected
    browser.find_element(By.CSS_SELECTOR, ".range button").click()
    assert "from=" not in fragment(browser)


@pytest.mark.parametrize("wrong", ["#from=9&to=3", "#from=-1&to=1e9", "#space=%00&view=no",
                                   "#from=a", "#sort=x&open=99999&find=%F0", "#&&==&"])
def test_wrong_fragments(browser, pages, wrong):
    show(browser, pages["v1/spaces"], wrong)
    until(lambda: text_of(browser, ".range"))


def test_spaces(browser, pages):
    show(browser, pages["v1/spaces"])
    for tab in browser.find_elements(By.CSS_SELECTOR, "[aria-label=Space] button"):
        tab.click()
        settled(browser)
        name = tab.get_attribute("data-id")
        assert tab.get_attribute("aria-selected") == "true"
        label = browser.find_element(By.ID, "whole").get_attribute("aria-label")
        assert f"{name}: at most" in label


def test_keyboard(browser, pages):
    show(browser, pages["recorded"])
    canvas = browser.find_element(By.ID, "whole")
    canvas.send_keys(Keys.SHIFT + Keys.ARROW_LEFT)
    assert fragment(browser) == "#from=62&to=64"
    canvas.send_keys(Keys.SHIFT + Keys.ARROW_LEFT)
    assert fragment(browser) == "#from=61&to=64"
    canvas.send_keys(Keys.NULL + Keys.ARROW_LEFT)
    assert not browser.find_element(By.ID, "tip").get_attribute("hidden")
    canvas.send_keys(Keys.ESCAPE)
    assert "from" not in fragment(browser)
    body = browser.find_element(By.TAG_NAME, "body")
    body.send_keys("/")
    filter_ = browser.switch_to.active_element
    assert filter_.get_attribute("id") == "filter"
    filter_.send_keys("remember")
    rows = browser.find_elements(By.CSS_SELECTOR, ".places tbody tr")
    assert len(rows) == 1 and "remember" in rows[0].text
    browser.find_element(By.CSS_SELECTOR, ".places .open").send_keys(Keys.ENTER)
    assert "serve" in text_of(browser, ".opened pre") and "open=" in fragment(browser)
    body.send_keys("?")
    assert "search" in browser.find_element(By.ID, "help").text
    browser.find_element(By.CSS_SELECTOR, "#help button").click()


def test_sorting(browser, pages):
    show(browser, pages["recorded"])

    def first():
        return browser.find_element(By.CSS_SELECTOR, ".places tbody tr th").text

    assert "remember" in first()
    for button in browser.find_elements(By.CSS_SELECTOR, ".places thead button"):
        if "Freed" in button.text:
            button.click()
            break
    assert "work" in first() and "sort=temporary" in fragment(browser)


def background(driver):
    return driver.execute_script("return getComputedStyle(document.body).backgroundColor")


def test_light_and_dark(browser, pages):
    show(browser, pages["v1/marks"])
    light = background(browser)
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {
        "features": [{"name": "prefers-color-scheme", "value": "dark"}]})
    dark = background(browser)
    assert dark != light
    theme = browser.find_element(By.ID, "theme")
    theme.click()
    assert background(browser) == light and "theme=light" in fragment(browser)
    theme.click()
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {})
    assert background(browser) == dark
    theme.click()
    assert background(browser) == light


def test_narrow(browser, pages, hostile):
    for path in (pages["recorded"], pages["v1/spaces"], hostile):
        browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", {
            "width": 400, "height": 800, "deviceScaleFactor": 2, "mobile": True})
        show(browser, path)
        settled(browser)
        wide = browser.execute_script("return document.documentElement.scrollWidth")
        assert wide <= 400, (path, wide)


def test_print(browser, pages):
    show(browser, pages["recorded"])
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print"})
    assert not browser.find_element(By.ID, "theme").is_displayed()
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {})
    printed = browser.execute_cdp_cmd("Page.printToPDF", {"printBackground": True})["data"]
    assert len(printed) > 20000


def test_without_scripts(browser, pages):
    browser.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": True})
    try:
        browser.get(f"file://{pages['recorded']}")
        title = browser.find_element(By.TAG_NAME, "h1")
        assert "remember" in title.text
        assert "need scripts" in browser.find_element(By.TAG_NAME, "noscript").text
        for part in ("ledger", "blame", "change", "what-if", "evidence", "unknown"):
            assert browser.find_element(By.ID, part).text
    finally:
        browser.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": False})


def test_old_browser(browser, pages):
    mark = browser.execute_cdp_cmd("Page.addScriptToEvaluateOnNewDocument", {
        "source": "delete window.DecompressionStream"})["identifier"]
    try:
        browser.get(f"file://{pages['v1/marks']}")
        assert "too old" in text_of(browser, "#views")
    finally:
        browser.execute_cdp_cmd("Page.removeScriptToEvaluateOnNewDocument", {"identifier": mark})


def test_damaged_data(browser, pages, tmp_path):
    text = pages["v1/marks"].read_text()
    at = text.index('id="d">') + 200
    path = tmp_path / "damaged.html"
    path.write_text(text[:at] + "AAAA" + text[at + 4:])
    browser.get(f"file://{path}")
    until(lambda: "damaged" in text_of(browser, "#views") or ready(browser))


def test_screen_reader(browser, pages):
    show(browser, pages["recorded"])
    nodes = browser.execute_cdp_cmd("Accessibility.getFullAXTree", {})["nodes"]
    said = [(n.get("role", {}).get("value"), n.get("name", {}).get("value", "")) for n in nodes]
    assert [name for role, name in said if role == "heading" and "remember" in name]
    # The curve's canvas: what it shows, in words.
    assert [name for role, name in said if role in ("image", "img") and "at most" in name], \
        json.dumps([s for s in said if s[0] in ("image", "img")])
    assert [name for role, name in said if role == "columnheader" and "Live at" in name]
