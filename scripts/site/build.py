"""Build the documentation site: python scripts/site/build.py OUTPUT_DIR.

The pages of docs/ are copied to a temporary folder, with what only the site needs: navigation, the Python API from
docstrings, and the REST operations from the OpenAPI document. Sphinx reports a broken link, a missing anchor or a page
outside of the navigation as a warning, and every warning fails the build.

The navigation follows the links of docs/index.md and of the pages of parts that it names. So GitHub and the site have
the same order, and no second list can differ from it.
"""

from __future__ import annotations

import inspect
import json
import re
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

from sphinx.cmd.build import build_main

ROOT = Path(__file__).resolve().parent.parent.parent
SITE = Path(__file__).resolve().parent
PARTS = ("tutorial/index.md", "how-to.md", "reference.md", "explanation.md")
"""The pages of the four parts; each lists the pages of its part."""
_LINK = re.compile(r"\]\(([^)#:]+\.md)\)")
_GENERATED = "<!-- site: generated pages -->"
_SUMMARY = "A web crawler with a search, the successor of Apache Nutch 2 in Python."

PYTHON_API = """# Python API

Signatures and docstrings of the interfaces that stay stable within a major version. [Python](python.md) describes
them in context; [plug-ins](plugins/index.md) has a page for each extension point.

## Crawl

```{eval-rst}
.. autoclass:: nutch2py.crawl.Crawl
   :members:
   :inherited-members:
```

## Search client

```{eval-rst}
.. automodule:: nutch2py.search_client
   :members: SearchClient, AsyncSearchClient, SearchError
```

## Types of the search API

```{eval-rst}
.. automodule:: nutch2py.search.search_schemas
   :members:
```

## Extension points

```{eval-rst}
.. automodule:: nutch2py.interfaces
   :members:
```

## Errors

```{eval-rst}
.. automodule:: nutch2py.errors
   :members:
```
"""


def links_of(page: Path) -> list[str]:
    """Return the pages that a page links to, relative to docs/, in order and each once."""
    docs = ROOT / "docs"
    found = dict.fromkeys(_LINK.findall(page.read_text(encoding="utf-8")))
    targets = [(page.parent / target).resolve() for target in found]
    return [target.relative_to(docs).as_posix() for target in targets if target.is_relative_to(docs)]


def pages_of_parts() -> dict[str, list[str]]:
    """Return the pages of each part; a page belongs to the first part that links to it."""
    taken = {"index.md", "install.md", *PARTS}
    parts: dict[str, list[str]] = {}
    for part in PARTS:
        parts[part] = [page for page in links_of(ROOT / "docs" / part) if page not in taken]
        taken.update(parts[part])
    return parts


def python_api_markdown() -> str:
    """Return the page of the Python API as Markdown, with what the HTML has from docstrings."""
    from nutch2py import errors, interfaces, search_client
    from nutch2py.crawl import Crawl
    from nutch2py.search import search_schemas

    lines = ["# Python API", "", "Signatures and docstrings of the interfaces that stay stable within a major version."]
    client = [search_client.SearchClient, search_client.AsyncSearchClient, search_client.SearchError]
    parts = {"Crawl": [Crawl], "Search client": client, "Types of the search API": _classes_of(search_schemas)}
    parts |= {"Extension points": _classes_of(interfaces), "Errors": _classes_of(errors)}
    for title, classes in parts.items():
        lines += ["", f"## {title}"]
        for each in classes:
            lines += [
                "",
                f"### {each.__module__}.{each.__qualname__}{_signature(each)}",
                "",
                inspect.getdoc(each) or "",
            ]
            for name, member in inspect.getmembers(each):
                if name.startswith("_") or not (inspect.isroutine(member) or isinstance(member, property)):
                    continue
                if not (getattr(member, "__module__", None) or each.__module__).startswith("nutch2py"):
                    continue
                text = inspect.getdoc(member) or ""
                lines += ["", f"#### {name}{'' if isinstance(member, property) else _signature(member)}", "", text]
    return "\n".join(lines).rstrip() + "\n"


def _classes_of(module: ModuleType) -> list[type]:
    """Return the public classes that a module defines, in its order."""
    found = [each for each in vars(module).values() if inspect.isclass(each) and each.__module__ == module.__name__]
    return [each for each in found if not each.__name__.startswith("_")]


def _signature(function: Callable[..., object]) -> str:
    """Return a signature without ``self``, "" for one that is unknown."""
    try:
        text = str(inspect.signature(function))
    except (TypeError, ValueError):
        return ""
    return re.sub(r"^\((self|cls)(, |(?=\)))", "(", text)


def _toctree(pages: list[str], folder: str) -> str:
    depth = "../" * len(Path(folder).parent.parts)
    return "\n```{toctree}\n:hidden:\n\n" + "".join(f"{depth}{page.removesuffix('.md')}\n" for page in pages) + "```\n"


def openapi_document() -> dict[str, Any]:
    """Return the OpenAPI document of the REST API, as a server sends it."""
    from nutch2py.rest.api_routes import OPERATIONS
    from nutch2py.rest.dispatch.openapi import build_document

    document: dict[str, Any] = json.loads(json.dumps(build_document(OPERATIONS)))
    return document


def _type_name(schema: dict[str, Any]) -> str:
    """Return a schema as the short text of a table cell."""
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        return f"[{name}](#{name.lower()})"
    for key in ("anyOf", "oneOf"):
        if key in schema:
            return " or ".join(_type_name(each) for each in schema[key])
    if schema.get("type") == "array":
        return f"array of {_type_name(schema.get('items', {}))}"
    if "enum" in schema:
        return ", ".join(f"`{value}`" for value in schema["enum"])
    bounds = [f"{word} {schema[key]}" for key, word in (("minimum", "from"), ("maximum", "to")) if key in schema]
    return " ".join([str(schema.get("type", "any")), *bounds])


def _cell(text: object) -> str:
    return " ".join(str(text).split()).replace("|", "\\|")


def _operation_lines(method: str, path: str, operation: dict[str, Any]) -> Iterator[str]:
    yield from (
        "",
        f"### {method.upper()} {path}",
        "",
        f"{operation['summary'].rstrip('.')}. Role: {operation['x-role']}.",
    )
    parameters = [
        (f"`{each['name']}`", each["in"], _type_name(each["schema"]), each["schema"].get("description", ""))
        for each in operation["parameters"]
    ]
    for media, content in operation.get("requestBody", {}).get("content", {}).items():
        parameters.append(("body", media, _type_name(content["schema"]), ""))
    if parameters:
        yield from ("", "| parameter | where | type | meaning |", "|---|---|---|---|")
        yield from (f"| {' | '.join(map(_cell, row))} |" for row in parameters)
    yield from ("", "| status | response |", "|---|---|")
    for status, response in sorted(operation["responses"].items()):
        bodies = [f"{media}: {_type_name(content['schema'])}" for media, content in response.get("content", {}).items()]
        yield f"| {status} | {_cell('; '.join([response['description'], *bodies]))} |"


def rest_operations(document: dict[str, Any]) -> str:
    """Return the page of the REST operations as Markdown."""
    lines = [
        "# REST operations",
        "",
        "Every operation of the REST API, from its [OpenAPI document](openapi.json). A server sends the same document",
        "at `/api/openapi.json`. [REST API](rest.md) explains roles, tokens, errors and rate limits.",
    ]
    by_tag: dict[str, list[str]] = {}
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            by_tag.setdefault(operation["tags"][0], []).extend(_operation_lines(method, path, operation))
    for tag, operations in sorted(by_tag.items()):
        lines += ["", f"## {tag}", *operations]
    lines += ["", "## Types"]
    for name, schema in sorted(document["components"]["schemas"].items()):
        lines += ["", f"### {name}", "", _cell(schema.get("description", "")) or "A JSON value."]
        if schema.get("properties"):
            required = schema.get("required", ())
            lines += ["", "| field | type | required | default |", "|---|---|---|---|"]
            for field, each in schema["properties"].items():
                default = f"`{json.dumps(each['default'])}`" if "default" in each else ""
                row = (f"`{field}`", _type_name(each), "yes" if field in required else "no", default)
                lines.append(f"| {' | '.join(map(_cell, row))} |")
        elif "enum" in schema or "type" in schema:
            lines += ["", _cell(_type_name(schema))]
    return "\n".join(lines) + "\n"


def prepare(source: Path) -> None:
    """Copy docs/ to a folder, and add navigation and generated pages."""
    shutil.copytree(ROOT / "docs", source, dirs_exist_ok=True)
    shutil.copy(SITE / "conf.py", source)
    shutil.copytree(SITE / "static", source / "static")
    document = openapi_document()
    (source / "openapi.json").write_text(json.dumps(document, indent=1, ensure_ascii=False), encoding="utf-8")
    (source / "rest-operations.md").write_text(rest_operations(document), encoding="utf-8")
    (source / "python-api.md").write_text(PYTHON_API, encoding="utf-8")
    generated = {"python-api.md": "Python API", "rest-operations.md": "REST operations"}
    for part, pages in pages_of_parts().items():
        path = source / part
        text = path.read_text(encoding="utf-8")
        if _GENERATED in text:
            text = text.replace(_GENERATED, "\n".join(f"- [{title}]({page})" for page, title in generated.items()))
            pages = [*pages, *generated]
        path.write_text(text + _toctree(pages, part), encoding="utf-8")
    with (source / "index.md").open("a", encoding="utf-8") as file:
        file.write(_toctree(["install.md", *PARTS], "index.md"))


def _first_sentence(text: str) -> str:
    """Return the first sentence of a page's first paragraph without its marks of Markdown, "" for none."""
    body = re.sub(r"<!--.*?-->|```.*?```", "", text, flags=re.DOTALL)
    for paragraph in re.split(r"\n\s*\n", body):
        plain = " ".join(paragraph.split())
        if plain and not plain.startswith(("#", "|", "-", "!", "<")):
            plain = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", plain)
            return re.split(r"(?<=[.:]) ", plain)[0].rstrip(":")
    return ""


def write_markdown(source: Path, output: Path) -> None:
    """Write every page as Markdown next to its HTML, and llms.txt, which lists them by part."""
    lines = ["# nutch2py", "", f"> {_SUMMARY}", "", "- [Install](install.md)"]
    for part, pages in pages_of_parts().items():
        title = re.match(r"# (.*)", (source / part).read_text(encoding="utf-8"))
        lines += ["", f"## {title[1] if title else part}", ""]
        if part == "reference.md":
            pages = [*pages, "python-api.md", "rest-operations.md"]
        for page in pages:
            text = (source / page).read_text(encoding="utf-8")
            heading = re.match(r"# (.*)", text)
            sentence = _first_sentence(text)
            lines.append(f"- [{heading[1] if heading else page}]({page})" + (f": {sentence}" if sentence else ""))
    (output / "llms.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
    for page in source.rglob("*.md"):
        text = re.sub(r"\n```\{toctree\}\n.*?```\n", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
        if page.name == "python-api.md":  # its text is in the docstrings
            text = python_api_markdown()
        (output / page.relative_to(source)).write_text(text, encoding="utf-8")
    for path in source.rglob("*"):  # what the Markdown links to
        if path.is_file() and path.suffix not in (".md", ".py", ".css"):
            copy = output / path.relative_to(source)
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(path, copy)


def make_accessible(output: Path) -> None:
    """Let the keyboard scroll tables and code, name the landmarks, and omit headings and icons without content."""
    replacements = {
        '<div class="table-wrapper': '<div tabindex="0" class="table-wrapper',
        "<pre>": '<pre tabindex="0">',
        '<aside class="sidebar-drawer': '<aside aria-label="All pages" class="sidebar-drawer',
        '<aside class="toc-drawer': '<aside aria-label="On this page" class="toc-drawer',
        "</head>": '<link rel="icon" href="data:,"></head>',
        '<div id="search-results"': '<h1>Search</h1><div id="search-results"',
    }
    for page in output.rglob("*.html"):
        text = page.read_text(encoding="utf-8")
        for old, new in replacements.items():
            text = text.replace(old, new)
        text = re.sub(r'<th class="head[^"]*"><p></p></th>', "<td></td>", text)  # the corner of a table is no heading
        page.write_text(text, encoding="utf-8")


def main() -> int:
    """Build the site; return 1 for any warning."""
    output = Path(sys.argv[1]).absolute()
    if output.exists() and any(output.iterdir()) and not (output / "llms.txt").is_file():
        print(f"{output} contains other files: name an empty or new folder", file=sys.stderr)
        return 2
    with tempfile.TemporaryDirectory() as folder:
        source, built = Path(folder) / "docs", Path(folder) / "html"
        prepare(source)
        options = ["-b", "html", "-q", "-W", "--keep-going", "-E", "-d", str(Path(folder) / "doctrees")]
        if build_main([*options, str(source), str(built)]):
            return 1
        (built / ".buildinfo").unlink(missing_ok=True)
        (built / "objects.inv").unlink(missing_ok=True)
        shutil.rmtree(built / "_sources", ignore_errors=True)
        write_markdown(source, built)
        make_accessible(built)
        if output.exists():
            shutil.rmtree(output)
        shutil.copytree(built, output)
    print(f"{output}/index.html")
    return 0


if __name__ == "__main__":
    sys.exit(main())
