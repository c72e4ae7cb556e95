"""Sites of the collection: commits of public repositories, and the conversion of their files to pages.

Every page has its public address with ``http`` instead of ``https``. Links keep their targets, except that a link to a
page in another language leads to the Chinese page if the collection has it, as the sites redirect Chinese readers.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator, Sequence
from functools import cached_property, partial
from html import escape
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote, unquote, urlsplit

from bench.ranking.collection import HALVES, Collection, Render
from bench.ranking.markdown import rendered, rewritten, title_of, value_of
from bench.repositories import checked_out
from nutch2py.errors import InputError
from nutch2py.search.evaluation.ranking_metrics import Judgement, read_judgements, read_queries


class Source(NamedTuple):
    """A repository at a commit, and its site.

    ``files``: pattern of the files that are pages; ``path`` forms a page's path from group 1 ("{}"). ``also``: other
    hosts of the site. ``below``: subfolder of the checkouts with the repository.
    """

    host: str
    name: str
    repository: str
    commit: str
    folder: str
    files: str
    path: str
    also: tuple[str, ...] = ()
    below: str = ""


MDN = "developer.mozilla.org"
SOURCES = (
    Source(
        MDN, "MDN", "fiji-flo/translated-content-rendered", "c6abcb9dd17cee7e77c4cc17d905f39a71660414", "/files/zh-cn/",
        r"files/zh-cn/((?:glossary|learn/(?!server-side)|web/(?:javascript|http|security|web_components)|"
        r"web/api(?:/[^/]+)?/index\.html).*)", "",
    ),
    Source(
        "zh.javascript.info", "现代 JavaScript 教程", "javascript-tutorial/zh.javascript.info",
        "4ae3116347a56fcfed6bbdeb30b76f802c0511a2", "*.md", r"\d-.*?(?:\d+-)?([^/]+)/(?:article|index)\.md", "/{}",
        ("javascript.info", "learn.javascript.ru"),
    ),
    Source(
        "zh-hans.react.dev", "React 中文文档", "reactjs/zh-hans.react.dev", "f6cda05526ceff44b24588e9e0c2e2106d4588d4",
        "/src/content/", r"src/content/((?:learn|reference|community|warnings)/.*)\.md", "/{}",
        ("react.dev", "zh-hans.reactjs.org", "reactjs.org", "legacy.reactjs.org", "beta.reactjs.org"),
    ),
    Source(
        "cn.vuejs.org", "Vue.js", "vuejs-translations/docs-zh-cn", "c2715ff75bae5376bc5bf212280ae76e30089fbd",
        "/src/", r"src/((?:guide|api|about|style-guide|tutorial|glossary)/.*)\.md", "/{}.html",
        ("vuejs.org", "v3.cn.vuejs.org", "staging-cn.vuejs.org", "v3.vuejs.org"),
    ),
    Source(
        "cn.vite.dev", "Vite 官方中文文档", "vitejs/docs-cn", "e2456079a4d366282206969b7dd819e2139d2035",
        "*.md", r"((?:guide|config|blog|changes|plugins)/.*)\.md", "/{}",
        ("cn.vitejs.dev", "vite.dev", "vitejs.dev", "v3.vitejs.dev"),
    ),
    Source(
        "wangdoc.com", "JavaScript 教程 - 网道", "wangdoc/javascript-tutorial",
        "84d50bb63511427d8e3c15e642ba456917e9649e",
        "/docs/", r"docs/(.*)\.md", "/javascript/{}.html", ("javascript.ruanyifeng.com",),
    ),
    Source(
        "es6.ruanyifeng.com", "ES6 入门教程", "ruanyf/es6tutorial", "fc58b0c1505654bde876ace4f8f1f7f5882876fa",
        "/docs/", r"docs/(.*)\.md", "/docs/{}",
    ),
    Source(
        "webpack.docschina.org", "webpack 中文文档", "docschina/webpack.js.org",
        "0f7e0aba2abf56a8f576b40e98cb18ef56986c73",
        "/src/content/", r"src/content/((?:concepts|guides|api|configuration|loaders|plugins|migrate)/.*)\.mdx?",
        "/{}/",
        ("webpack.js.org", "webpack.github.io", "doc.webpack-china.org"),
    ),
    Source(
        "zhongsp.gitbook.io", "TypeScript 使用指南手册", "zhongsp/TypeScript",
        "79d8a679ef6f0531b4f340e0abcb0056424c0221",
        "/zh/", r"zh/((?:handbook|handbook-v2|reference|declaration-files|project-config|javascript)/.*)\.md",
        "/typescript-handbook/{}",
    ),
)  # fmt: skip


def all_checked_out(folder: Path) -> Path:
    """Fetch missing repositories at their commits; return their parent folder."""
    for source in SOURCES:
        checked_out(source.repository, source.commit, [source.folder], folder)
    return folder


class Page(NamedTuple):
    """A page of a site: its public path and its file."""

    source: Source
    path: str
    file: Path
    title: str

    @property
    def url(self) -> str:
        """The address, percent-encoded."""
        return f"http://{self.source.host}{quote(self.path, safe='/@*()!:~$&+,;=')}"


def _pages_of(source: Source, root: Path) -> Iterator[Page]:
    pattern = re.compile(source.files)
    for file in sorted(root.rglob("*")):
        found = pattern.fullmatch(file.relative_to(root).as_posix())
        if not found or not file.is_file():
            continue
        text = file.read_text(encoding="utf-8")
        if source.host == MDN:
            slug = value_of("slug", text)
            if slug and file.name == "index.html":
                yield Page(source, f"/zh-CN/docs/{slug}", file, title_of(text))
        elif title_of(text):
            name = re.sub(r"(?:^|/)(?:index|README)$", "", found[1])
            path = source.path.format(name).replace("/.html", "/index.html")
            yield Page(source, re.sub("//+", "/", path), file, title_of(text))


class Sites:
    """All pages, and the resolution of links to them."""

    def __init__(self, checkouts: Path, sources: Sequence[Source] = SOURCES) -> None:
        self.sources = {source.host: source for source in sources}
        self.pages: dict[str, Page] = {}
        self._known: dict[tuple[str, str], str] = {}
        self._hosts = {host: source.host for source in sources for host in (source.host, *source.also)}
        for source in sources:
            for page in _pages_of(source, checkouts / source.below / source.repository.replace("/", "+")):
                self.pages.setdefault(page.url, page)
                self._known.setdefault((source.host, _plain(page.path)), page.url)
        moved = checkouts / SOURCES[0].repository.replace("/", "+") / "files/zh-cn/_redirects.txt"
        for line in moved.read_text(encoding="utf-8").splitlines() if MDN in self.sources else ():
            before, _, after = line.partition("\t")
            if (MDN, _plain(after)) in self._known:
                self._known.setdefault((MDN, _plain(before)), self._known[MDN, _plain(after)])

    def resolve(self, page: Page, target: str) -> str:
        """Return the target of a link: a page of the collection, or the URL as written."""
        if page.source.repository.endswith("/zh.javascript.info") and (found := re.match(r"(info|mdn):/?(.*)", target)):
            if found[1] == "info":
                target = f"/{found[2]}"
            else:
                path = re.sub(r"^js/", "JavaScript/Reference/Global_Objects/", found[2])
                target = f"https://{MDN}/docs/Web/{re.sub('^api/', 'API/', path)}"
        try:
            parts = urlsplit(target)
        except ValueError:
            return target
        if parts.scheme not in ("", "http", "https") or (not parts.netloc and not parts.path and not parts.fragment):
            return target
        host = self._hosts.get(parts.netloc) if parts.netloc else page.source.host
        path = parts.path
        if (
            host and self.sources[host].repository.endswith("/es6tutorial") and parts.fragment.startswith("docs/")
        ):  # its pages are fragments of one
            path = f"/{parts.fragment.partition('#')[0]}"
        elif not parts.netloc and not path:
            return target
        if host is None:
            return target
        if not parts.netloc and not path.startswith("/"):
            path = posixpath.join(posixpath.dirname(page.path), path)
        known = self._known.get((host, _plain(path)))
        return known or (target if parts.netloc else f"https://{host}{path}")

    def html(self, page: Page) -> str:
        """Return the HTML of a page: its text, links to its site's start and section, and to its neighbours."""
        text = page.file.read_text(encoding="utf-8")

        def resolve(target: str) -> str:
            return self.resolve(page, target)

        if page.source.host == MDN:
            body = rewritten(re.sub(r"\A---\n.*?\n---\n", "", text, flags=re.DOTALL), resolve)
        else:
            body = rendered(text, resolve)
        above = [f'<a href="http://{page.source.host}/">{escape(page.source.name)}</a>']
        parent = posixpath.dirname(page.path.rstrip("/"))
        while len(parent) > 1:
            found = self._known.get((page.source.host, _plain(parent)))
            if found and found != page.url:
                above.insert(1, f'<a href="{escape(found)}">{escape(self.pages[found].title)}</a>')
            parent = posixpath.dirname(parent)
        heading = "" if "<h1" in body else f"<h1>{escape(page.title)}</h1>"
        below = self._below(page)
        return _document(f"{page.title} - {page.source.name}", f"<nav>{' › '.join(above)}</nav>{heading}{body}{below}")

    def _below(self, page: Page) -> str:
        """Return links to the pages below this one, as sites list them, and to the previous and next page."""
        siblings = self._children.get((page.source.host, posixpath.dirname(page.path.rstrip("/"))), [])
        at = next((i for i, each in enumerate(siblings) if each.url == page.url), 0)
        near = [siblings[i] for i in (at - 1, at + 1) if 0 <= i < len(siblings)] if page.source.host != MDN else []
        children = self._children.get((page.source.host, page.path.rstrip("/")), [])
        return _list(children) + _list(near)

    @cached_property
    def _children(self) -> dict[tuple[str, str], list[Page]]:
        grouped: dict[tuple[str, str], list[Page]] = {}
        for page in self.pages.values():
            grouped.setdefault((page.source.host, posixpath.dirname(page.path.rstrip("/"))), []).append(page)
        return grouped

    def home(self, source: Source) -> str:
        """Return the start page of a site: links to its top folders and to folders without a page."""
        mine = [page for page in self.pages.values() if page.source.host == source.host]
        tops: list[Page] = []
        for page in mine:
            parent = posixpath.dirname(page.path.rstrip("/"))
            while len(parent) > 1 and (source.host, _plain(parent)) not in self._known:
                parent = posixpath.dirname(parent)
            if len(parent) <= 1:
                tops.append(page)
        return _document(source.name, f"<h1>{escape(source.name)}</h1>{_list(tops)}")


def _list(pages: list[Page]) -> str:
    items = "".join(f'<li><a href="{escape(page.url)}">{escape(page.title)}</a>' for page in pages)
    return f"<ul>{items}</ul>" if items else ""


def _document(title: str, body: str) -> str:
    head = f'<meta charset="utf-8"><title>{escape(title)}</title>'
    return f'<!doctype html><html lang="zh-CN"><head>{head}</head><body>{body}</body></html>'


def _plain(path: str) -> str:
    """Return the canonical form of a page's path."""
    path = unquote(path).lower()
    path = _LANGUAGE.sub("/docs/", path)
    path = re.sub(r"\.(?:html|mdx?)$", "", path.rstrip("/"))
    return re.sub(r"/(?:index|readme)$", "", path) or "/"


_LANGUAGE = re.compile(
    r"^/(?:[a-z]{2}(?:-[a-z]{2,4})?/)?docs/(?=web|glossary|learn|javascript|mozilla|ajax|html|css|dom)"
)


def documents(collection: Sites) -> dict[str, Render]:
    """Return the renderers of all pages of the collection, by URL."""
    found: dict[str, Render] = {
        f"http://{source.host}/": partial(collection.home, source) for source in collection.sources.values()
    }
    for url, page in collection.pages.items():
        found.setdefault(url, partial(collection.html, page))
    return found


DATA = Path(__file__).parent


def judged(judges: Sequence[Path] = ()) -> dict[str, dict[str, Judgement]]:
    """Return the judgements of the nine sites; ``judges``: files of further judges."""
    known = read_judgements(DATA / "judgements.tsv", *judges)
    unknown = known.keys() - {query for half in HALVES for query in read_queries(DATA / f"queries-{half}.txt")}
    if unknown:
        raise InputError(f"unknown queries {', '.join(sorted(unknown))}: judge the queries of {DATA}/queries-*.txt")
    return known


def nine_sites(checkouts: Path, judges: Sequence[Path] = ()) -> Collection:
    """Return the collection of the nine sites; fetch missing repositories."""
    return Collection(
        "nine sites",
        ", ".join(f"{source.repository} {source.commit[:9]}" for source in SOURCES),
        False,  # judgements have authorities, but hardly any page has links from another site
        [f"http://{source.host}/" for source in SOURCES],
        documents(Sites(all_checked_out(checkouts))),
        {half: read_queries(DATA / f"queries-{half}.txt") for half in HALVES},
        judged(judges),
    )
