"""Parses unsupported formats with the operator's Tika server (plug-in parse-tika-server)."""

from __future__ import annotations

import urllib.error
import urllib.request

import orjson

from nutch2py.conf.configuration import Configuration
from nutch2py.interfaces import Parse, Parser
from nutch2py.parser.formats.document_parser import DEFAULT_MAX_CHARACTERS, ParsedDocument, failed_parse
from nutch2py.records.record import RecordField
from nutch2py.records.webpage import ParseStatusCode, WebPage

_MAX_RESPONSE_BYTES = 64 << 20
_EXCEPTION_KEY = "X-TIKA:EXCEPTION:container_exception"
"""Tika's key, in a response with status 200, for an error that stopped the read of the document."""
_MAX_ERROR_CHARS = 500  # of its message
_METADATA_KEYS = ("dc:creator", "dc:subject", "dc:description", "dcterms:created", "dcterms:modified", "xmpTPg:NPages")


class TikaServerParser(Parser):
    """Sends content to ``tika.server.url`` (PUT ``rmeta/text``) and uses title, text and metadata of the response.

    It claims no content type: ``parse-plugins.xml`` lists it last under ``*``. Content is sent to the configured server
    only; without one nothing is sent.
    """

    content_types = "(?!)"
    fields: frozenset[RecordField] = frozenset({WebPage.content, WebPage.content_type, WebPage.base_url})

    def __init__(self, conf: Configuration) -> None:
        self._url = conf.get_trimmed("tika.server.url").rstrip("/")
        self._max_characters = conf.get_int("parser.document.max.characters", DEFAULT_MAX_CHARACTERS)
        self._timeout = conf.get_float("parser.timeout", 30.0)

    def parse(self, url: str, page: WebPage) -> Parse:
        """Parse ``page.content`` on the server; an unreachable server or an error response fails the parse."""
        if not self._url.startswith(("http://", "https://")):
            return failed_parse(ParseStatusCode.EXCEPTION, "tika.server.url is not an http or https URL")
        request = urllib.request.Request(  # noqa: S310 - the scheme is checked above
            f"{self._url}/rmeta/text",
            data=page.content or b"",
            method="PUT",
            headers={"Accept": "application/json", "Content-Type": page.content_type or "application/octet-stream"},
        )
        try:
            timeout = self._timeout if self._timeout > 0 else None
            with urllib.request.urlopen(request, timeout=timeout) as response:  # noqa: S310 - the scheme is checked above
                raw = response.read(_MAX_RESPONSE_BYTES + 1)
            parts = orjson.loads(raw[:_MAX_RESPONSE_BYTES])
        except (OSError, ValueError) as error:
            return failed_parse(ParseStatusCode.EXCEPTION, f"Tika server {self._url}: {error}")
        if not isinstance(parts, list) or not parts:
            return failed_parse(
                ParseStatusCode.EXCEPTION, f"Tika server {self._url}: the response is not a list of parts"
            )
        document = ParsedDocument(page.base_url or url, self._max_characters)
        broken = str(_first_value(parts[0].get(_EXCEPTION_KEY)) or "").strip()
        if broken and not any(str(part.get("X-TIKA:content") or "").strip() for part in parts):
            return failed_parse(
                ParseStatusCode.EXCEPTION, f"Tika server {self._url}: {broken.splitlines()[0][:_MAX_ERROR_CHARS]}"
            )
        for part in parts:
            document.set_metadata("title", _first_value(part.get("dc:title")))
            document.add_text(str(part.get("X-TIKA:content") or ""))
        for name in _METADATA_KEYS:
            document.set_metadata(name, _first_value(parts[0].get(name)))
        return document.to_parse()


def _first_value(value: object) -> object:
    return value[0] if isinstance(value, list) and value else value
