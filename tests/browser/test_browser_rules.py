"""browser-rules.txt, and the signs of an app shell."""

from __future__ import annotations

from pathlib import Path

import pytest

from nutch2py.browser.app_shell import detect_shell_signs
from nutch2py.browser.browser_rules import DEFAULT_WAITS, BrowserRules, RenderDecision, RenderMode, WaitCondition
from nutch2py.conf.configuration import Configuration
from nutch2py.errors import ConfigurationError
from tests.growth import assert_linear, repetitions

RULES = r"""
# the first that matches decides
host   www.example.org        plain
domain example.org            render idle scroll=10 delay=0.5
url    ^https?://[^/]++/shop/ render load selector=div%20.price
all    auto
"""


def rules_of(text: str, **properties: str) -> BrowserRules:
    conf = Configuration.load(overrides={"browser.rules": text})
    for name, value in properties.items():
        conf.set(name.replace("_", "."), value)
    return BrowserRules(conf)


@pytest.mark.parametrize(
    ("url", "choice"),
    [
        ("http://www.example.org/shop/1", RenderDecision(RenderMode.PLAIN, DEFAULT_WAITS)),
        ("http://WWW.Example.org:8080/", RenderDecision(RenderMode.PLAIN, DEFAULT_WAITS)),
        (
            "https://a.example.org/",
            RenderDecision(
                RenderMode.RENDER,
                (WaitCondition("idle"), WaitCondition("scroll", value=10), WaitCondition("delay", value=0.5)),
            ),
        ),
        ("https://notexample.org/", RenderDecision(RenderMode.AUTO, DEFAULT_WAITS)),
        (
            "https://b.test/shop/1",
            RenderDecision(RenderMode.RENDER, (WaitCondition("load"), WaitCondition("selector", "div .price"))),
        ),
        ("https://b.test/a/shop/", RenderDecision(RenderMode.AUTO, DEFAULT_WAITS)),
    ],
)
def test_first_matching_rule_applies(url: str, choice: RenderDecision) -> None:
    assert rules_of(RULES).decide(url) == choice


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("host a.test", "is not host, domain, url or all"),
        ("hosts a.test render", "is not host, domain, url or all"),
        ("all sometimes", "is not host, domain, url or all"),
        ("all render wait", "'wait' is not load"),
        ("all render scroll=-1", "'scroll=-1' is not load"),
        ("all render scroll=1.5", "'scroll=1.5' is not load"),
        ("all render delay=nan", "'delay=nan' is not load"),
        ("all render selector=", "'selector=' is not load"),
        ("url ( render", "is not a usable regular expression"),
    ],
)
def test_invalid_rule_is_named_in_error(line: str, said: str) -> None:
    with pytest.raises(ConfigurationError, match=r"property browser\.rules, line 2: .*") as caught:
        rules_of(f"all auto\n{line}")
    assert said in str(caught.value)


def test_shipped_rules_use_detection() -> None:
    assert BrowserRules(Configuration.load()).decide("http://a.test/").mode == RenderMode.AUTO


def test_selenium_of_nutch_renders_every_page() -> None:
    assert (
        rules_of("host b.test plain", plugin_includes="protocol-selenium").decide("http://a.test/").mode
        == RenderMode.RENDER
    )
    assert (
        rules_of("host b.test plain", plugin_includes="protocol-http").decide("http://a.test/").mode == RenderMode.AUTO
    )


def test_rules_file_is_read(tmp_path: Path) -> None:
    file = tmp_path / "rules.txt"
    file.write_text("all plain\n", encoding="utf-8")
    conf = Configuration.load(overrides={"browser.rules.file": str(file)})
    assert BrowserRules(conf).decide("http://a.test/").mode == RenderMode.PLAIN


WORDS = "words that a reader sees without any script at all " * 6
SHELLS = {
    "create-react-app": """<!doctype html><html lang=en><head><title>React App</title>
        <script defer src=/static/js/main.js></script></head><body>
        <noscript>You need to enable JavaScript to run this app.</noscript><div id=root></div></body></html>""",
    "vite": """<!doctype html><html><head><script type=module crossorigin src=/assets/index-Dq.js></script></head><body>
        <div id=app></div></body></html>""",
    "angular": "<body><app-root></app-root><script src=main.js type=module></script></body>",
    "an unknown framework": "<body><div class=stage></div><script src=x.js></script></body>",
    "a script in the page": "<body><div id=here></div><script>document.body.append('x'.repeat(9))</script></body>",
    "loading": "<body><div id=root></div><p>Loading, please wait …</p><a href=/>home</a><script src=x.js></script>",
}
PLAIN = {
    "text": f"<body><div id=root></div><p>{WORDS}</p><script src=x.js></script></body>",
    "rendered on the server": f"<body><div id=__next><h1>A</h1><p>{WORDS}</p></div><script src=x.js></script></body>",
    "links": "<body>" + "".join(f"<a href=/{n}>page {n}</a>" for n in range(5)) + "<script src=x.js></script></body>",
    "short and without scripts": "<body><p>It works!</p></body>",
    "data in a script": "<body><p>It works!</p><script type=application/ld+json>{}</script></body>",
    "a frameset": "<frameset><frame src=a.html><script src=x.js></script></frameset>",
    "short text and a counter": f"<body><p>{WORDS[:100]}</p><script src=count.js></script></body>",
}  # fmt: skip


@pytest.mark.parametrize("name", SHELLS)
def test_app_shell_is_detected(name: str) -> None:
    assert detect_shell_signs(SHELLS[name]).is_shell


@pytest.mark.parametrize("name", PLAIN)
def test_page_not_needing_scripts_is_detected(name: str) -> None:
    assert not detect_shell_signs(PLAIN[name]).is_shell


def test_detection_time_is_linear() -> None:
    pieces = ["<script src=x>", "<div id=root>", "<noscript>", "<a href=x>y</a>", "<p>", "<!--", "<iframe>", "x "]
    assert_linear(detect_shell_signs, repetitions(pieces, ["", "<body>"], [""]))
