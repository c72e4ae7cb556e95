"""Markdown to HTML for a crawler: headings, text, code and links, without the layout of tables and lists."""

from __future__ import annotations

import re
from collections.abc import Callable
from html import escape

Resolve = Callable[[str], str]
"""Target of a link as written → its href."""

_FRONT = re.compile(r"\A\s*---\n(.*?)\n---\n", re.DOTALL)
_FENCE = re.compile(r"\s*(?:[-*+>]\s+|\d+\.\s+)?(`{3,}|~{3,})\s*([\w-]*)(.*)")
_HEADING = re.compile(r"(#{1,6})\s+(.*?)\s*#*\s*$")
_ANCHOR = re.compile(r"\s*(?:\{#[^}]*\}|\{/\*.*?\*/\}|\[#[^\]]*\])\s*$")
_INLINE = re.compile(
    r"""(?P<ticks>`+)(?P<code>.+?)(?P=ticks)(?!`)
    | !\[(?P<alt>[^\]]*)\]\([^)]*\)
    | \[(?P<text>(?:[^\[\]]|\[[^\]]*\]|`[^`]*`)*)\](?:
        \(\s*<?(?P<target>(?:[^\s()>]|\([^\s()]*\))*)>?(?:\s+["'][^)]*)?\)
        |\[(?P<label>[^\]]*)\])
    | <(?P<auto>(?:https?|info|mdn):[^>\s]+)>
    | (?P<tag></?[A-Za-z][\w.-]*(?:\s[^<>]*)?/?>)""",
    re.VERBOSE,
)
_DEFINITION = re.compile(r"^\s{0,3}\[([^\]]+)\]:\s*<?(\S+?)>?(?:\s+[\"'(].*)?$")
_CONTAINER = re.compile(r"\s*(?::::\s*\w*|</?(?:Intro|InlineToc|Sandpack|YouWillLearn|DeepDive)\b[^>]*>)")
_HREF = re.compile(r"""(<a\b[^>]*?\bhref\s*=\s*)(["'])(.*?)\2""", re.IGNORECASE | re.DOTALL)
_TEXT_FENCES = ("smart", "warn", "compare")  # javascript.info: notes with Markdown text


def value_of(name: str, text: str) -> str:
    """Return a value of the front matter, which may be quoted or folded; empty when absent."""
    front = _FRONT.match(text)
    found = re.search(rf"^{name}:[ \t]*(.*(?:\n[ \t]+.*)*)", front[1], re.MULTILINE) if front else None
    value = " ".join(re.sub(r"^>-?(?=\s)", "", found[1]).split()) if found else ""
    quoted = re.fullmatch(r"([\"'])(.*)\1", value)
    return quoted[2].replace(quoted[1] * 2, quoted[1]) if quoted else value


def title_of(text: str) -> str:
    """Return the title of the front matter, or of the first heading; empty when there is none."""
    named = value_of("title", text)
    if named:
        return named
    for line in _FRONT.sub("", text).splitlines():
        heading = _HEADING.match(line)
        if heading:
            return re.sub(r"[`*]|<[^>]*>|\[|\]\([^)]*\)", "", _ANCHOR.sub("", heading[2])).strip()
    return ""


def rewritten(html: str, resolve: Resolve) -> str:
    """Return HTML with the targets of its links replaced."""
    return _HREF.sub(lambda match: f'{match[1]}"{escape(resolve(match[3]))}"', html)


def rendered(text: str, resolve: Resolve) -> str:
    """Return the body of a page."""
    lines = _FRONT.sub("", text).splitlines()
    known = {found[1].lower(): found[2] for line in lines if (found := _DEFINITION.match(line))}
    return "\n".join(_blocks(lines, resolve, known))


def _blocks(lines: list[str], resolve: Resolve, known: dict[str, str]) -> list[str]:
    out: list[str] = []
    at = 0
    while at < len(lines):
        line = lines[at]
        at += 1
        fence = _FENCE.match(line)
        if fence:
            inside: list[str] = []
            while at < len(lines) and not _closes(lines[at], fence[1]):
                inside.append(lines[at])
                at += 1
            at += 1
            if fence[2] in _TEXT_FENCES:
                header = re.search(r'header="([^"]*)"', fence[3])
                out += [f"<p><b>{_inline(header[1], resolve, known)}</b>"] if header else []
                out += _blocks(inside, resolve, known)
            else:
                out.append(f"<pre>{escape(chr(10).join(inside))}</pre>")
            continue
        heading = _HEADING.match(line)
        if heading:
            level = len(heading[1])
            out.append(f"<h{level}>{_inline(_ANCHOR.sub('', heading[2]), resolve, known)}</h{level}>")
        elif not _DEFINITION.match(line):
            line = _CONTAINER.sub("", line)
            item = re.match(r"\s*(?:[-*+]|\d+\.)\s+", line)
            body = _inline(line[item.end() :] if item else line.strip("| ").replace(" | ", " "), resolve, known)
            out.append(f"<p>{body}" if item or not line.strip() else body)
    return out


def _closes(line: str, fence: str) -> bool:
    """Return whether a line ends a block of code: only the fence's character, at least as often."""
    return line.strip().startswith(fence) and not line.strip().strip(fence[0])


def _inline(text: str, resolve: Resolve, known: dict[str, str]) -> str:
    parts: list[str] = []
    at = 0
    for match in _INLINE.finditer(text):
        parts.append(_plain(text[at : match.start()]))
        at = match.end()
        if match["code"] is not None:
            parts.append(f"<code>{escape(match['code'].strip())}</code>")
        elif match["alt"] is not None:
            parts.append(escape(match["alt"]))
        elif match["tag"] is not None:
            parts.append(rewritten(match["tag"], resolve))
        elif match["auto"] is not None:
            parts.append(_link(resolve(match["auto"]), escape(match["auto"].partition(":")[2])))
        else:
            label = (match["label"] or match["text"]).lower()
            target = match["target"] if match["target"] is not None else known.get(label)
            inner = _inline(match["text"], resolve, known)
            parts.append(_link(resolve(target), inner) if target else inner)
    return "".join([*parts, _plain(text[at:])])


def _link(href: str, inner: str) -> str:
    return f'<a href="{escape(href)}">{inner}</a>'


def _plain(text: str) -> str:
    return escape(re.sub(r"\*\*|__", "", text), quote=False)
