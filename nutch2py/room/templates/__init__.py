"""The templates of the pages. Whatever comes from a crawl is escaped, and its hidden characters are shown."""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from typing import Any
from urllib.parse import urlencode

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from nutch2py.pictures import words
from nutch2py.pictures.picture import Picture


@cache
def _environment() -> Environment:
    made = Environment(
        loader=PackageLoader("nutch2py.room"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_shown,
    )
    made.filters |= {
        "full": words.full,
        "short": words.short,
        "size": words.size,
        "span": words.span,
        "moment": words.moment,
        "share": words.share,
        "cut": words.cut,
        "named": _named,
        "picture": _picture,
    }
    made.globals["link"] = link
    return made


def _shown(value: Any) -> Any:
    """Return what is put into a page: all characters of text can be seen."""
    return words.legible(value) if isinstance(value, str) and not isinstance(value, Markup) else value


def _named(text: str, width: int) -> str:
    """Return what a link is called: something, even of a name that is empty."""
    return words.cut(text, width) if text.strip() else "(no name)"


def _picture(picture: Picture) -> Markup:
    return Markup(picture.html())


def link(path: str, **arguments: str | int) -> str:
    """Return the address of a page of the control room."""
    named = {name: value for name, value in arguments.items() if value != ""}
    return f"/crawl{path}" + (f"?{urlencode(named)}" if named else "")


def render(name: str, /, **values: Any) -> str:
    """Return a page."""
    return _environment().get_template(name).render(values)


def sheet(name: str) -> str:
    """Return a file of this folder: a style sheet or the script."""
    return files("nutch2py.room").joinpath("templates", name).read_text("utf-8")
