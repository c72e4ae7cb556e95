"""The search page in a real browser: it works without scripts, and a malicious page does nothing in its cached view."""

import shutil

import pytest

from nutch2py.url.keys import reverse_url

BROWSER = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
DRIVER = shutil.which("chromedriver")
SCRIPTS_OFF = 2


@pytest.fixture(params=["with scripts", "without scripts"])
def browser(request, tmp_path):
    if BROWSER is None or DRIVER is None:
        pytest.skip("no browser: install chromium and chromium-driver")
    from selenium import webdriver
    from selenium.webdriver.chrome.service import Service

    options = webdriver.ChromeOptions()
    options.binary_location = BROWSER
    for argument in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
                     "--window-size=1200,900", f"--user-data-dir={tmp_path / 'profile'}"):  # fmt: skip
        options.add_argument(argument)
    if request.param == "without scripts":
        setting = {"profile.managed_default_content_settings.javascript": SCRIPTS_OFF}
        options.add_experimental_option("prefs", setting)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    driver = webdriver.Chrome(options=options, service=Service(DRIVER))
    driver.set_page_load_timeout(30)
    yield driver
    driver.quit()


def text_of(browser, selector):
    return [each.text for each in browser.find_elements("css selector", selector)]


def test_a_person_searches_narrows_turns_pages_and_asks_why(server, browser):
    browser.get(server.url)
    box = browser.find_element("css selector", "input[type=search]")
    box.send_keys("hay\n")
    assert text_of(browser, ".count")[0].startswith("30 documents · 1–10")
    assert len(text_of(browser, "ol.hits li")) == 10
    assert text_of(browser, "ol.hits li:first-child em")
    browser.find_element("link text", "Next").click()
    assert "11–20" in text_of(browser, ".count")[0]
    box = browser.find_element("css selector", "input[type=search]")
    assert box.get_attribute("value") == "hay"
    box.clear()
    box.send_keys("needle\n")
    browser.find_element("link text", "a.org").click()
    assert text_of(browser, ".count")[0].startswith("2 documents")
    assert text_of(browser, ".chosen") == ["a.org"]
    browser.find_element("link text", "all").click()
    assert text_of(browser, ".count")[0].startswith("4 documents")
    browser.find_element("link text", "why?").click()
    assert "score = relevance × weight" in text_of(browser, "pre")[0]
    assert browser.get_cookies() == []


def test_the_page_is_laid_out(server, browser):
    browser.get(f"{server.url}?q=needle")
    hits = browser.find_element("css selector", "ol.hits").rect
    aside = browser.find_element("css selector", "aside").rect
    assert aside["x"] > hits["x"] + hits["width"]  # beside, so the style sheet was taken
    assert hits["width"] > 500
    browser.set_window_size(500, 900)
    hits = browser.find_element("css selector", "ol.hits").rect
    assert browser.find_element("css selector", "aside").rect["y"] >= hits["y"] + hits["height"]


@pytest.mark.parametrize("framed", [True, False])
def test_a_malicious_page_does_nothing(server, browser, framed):
    path = "cached" if framed else "cached/view"
    browser.get(f"{server.url}{path}?id={reverse_url('http://a.org/evil')}")
    if framed:
        browser.switch_to.frame(browser.find_element("css selector", "iframe"))
    assert text_of(browser, "#text") == ["needle in a trap"]  # neither script nor onerror ran, nor the refresh
    assert browser.title != "ran"
    browser.switch_to.default_content()
    assert browser.get_cookies() == []
    assert browser.current_url.startswith(server.url)
    browser.get(server.url)
    assert browser.get_cookies() == []


def test_nothing_of_ours_breaks_its_own_policy(server, browser):
    for path in ("", "?q=needle", f"cached?id={reverse_url('http://b.org/plain')}"):
        browser.get(server.url + path)
    complaints = [entry["message"] for entry in browser.get_log("browser") if "favicon" not in entry["message"]]
    assert complaints == []
