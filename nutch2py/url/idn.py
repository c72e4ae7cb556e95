"""Internationalized host names: conversion between Unicode and ``xn--`` labels by IDNA 2008 (UTS 46) and IDNA 2003.

Browsers and registries use IDNA 2008, which is the default here. ``urlnormalizer.basic.host.idna2008 = false`` selects
IDNA 2003 (RFC 3490), which maps ``ß`` to ``ss`` and supports Unicode 3.2 only.

The library is url-py, Servo's host parser. It parses names as browsers do: UTS 46 with the exceptions of the WHATWG URL
standard, such as ``_`` and emoji, which the package idna rejects although such hosts exist. It runs in linear time and
has current Unicode tables, while Python's codec implements IDNA 2003. It is used for hosts only, since row keys need
URLs as ``java.net.URL`` parses them.
"""

from __future__ import annotations

import encodings.idna
import re
import stringprep

from nutch2py.support.bounded_cache import bounded_cache
from nutch2py.url.java_url import compose_url, parse_url

_DOTS = re.compile("[.\u3002\uff0e\uff61]")
_MAX_LABEL, _MAX_NAME = 63, 253  # octets, RFC 1035
_MAX_CHARACTERS = 1024  # of a name before mapping, which may remove characters


def host_to_ascii(host: str) -> str:
    """Return the ``xn--`` form of a host by IDNA 2008; raise ValueError for an invalid host name."""
    return convert_host_by_uts46(host)


def host_to_unicode(host: str) -> str:
    """Return the Unicode form of a host by IDNA 2008; raise ValueError for a label that cannot be decoded."""
    ascii_host = convert_host_by_uts46(host)
    return ".".join(_decode_label(label) for label in ascii_host.split("."))


def _check_characters(host: str) -> None:
    if len(host) > _MAX_CHARACTERS:
        raise ValueError(f"Invalid IDN {host[:_MAX_NAME]}: it has {len(host)} characters")


@bounded_cache(4096)
def convert_host_by_uts46(host: str) -> str:
    """Map, validate and encode with the WHATWG host parser (UTS 46, non-transitional), then check the lengths."""
    import url as whatwg

    _check_characters(host)
    if any(character in host for character in ":/?#@%[]\\ "):
        raise ValueError(f"Invalid IDNA2008 host {host}: DISALLOWED")
    try:
        found = whatwg.URL.parse(f"http://{host}/").host_str or ""
    except whatwg.URLError as error:
        raise ValueError(f"Invalid IDNA2008 host {host}: {error}") from None
    _check_lengths(host, found)
    return found


def _check_lengths(host: str, ascii_host: str) -> None:
    labels = ascii_host.removesuffix(".").split(".")
    if not all(labels) or any(len(label) > _MAX_LABEL for label in labels) or sum(map(len, labels)) > _MAX_NAME:
        raise ValueError(f"Invalid IDN {host[:_MAX_NAME]}: a label is empty or longer than {_MAX_LABEL} octets")


def _decode_label(label: str) -> str:
    if not label.startswith("xn--"):
        return label
    decoded = label[4:].encode("ascii").decode("punycode")
    if decoded[2:4] == "--":  # UTS 46, CheckHyphens: such a label would look like a prefix again
        raise ValueError(f"Invalid IDNA2008 host label {label}: HYPHEN_3_4")
    return decoded


def host_to_ascii_2003(host: str, *, strict: bool = False) -> str:
    """Return the ``xn--`` form by IDNA 2003; ``strict`` rejects characters that Unicode 3.2 does not assign."""
    _check_characters(host)
    labels = [_label_to_ascii_2003(host, label, strict) if label else "" for label in _DOTS.split(host)]
    ascii_host = ".".join(labels)
    if any(len(label) > _MAX_LABEL for label in labels):
        raise ValueError(f"Invalid IDN {host[:_MAX_NAME]}: a label is longer than {_MAX_LABEL} octets")
    return ascii_host


def _label_to_ascii_2003(host: str, label: str, strict: bool) -> str:
    if label.isascii():
        return label
    if strict and any(stringprep.in_table_a1(character) for character in label):
        raise ValueError(f"Invalid IDN {host}: a character is not assigned in Unicode 3.2")
    try:
        return encodings.idna.ToASCII(label).decode("ascii")
    except UnicodeError as error:
        raise ValueError(f"Invalid IDN {host[:_MAX_NAME]}: {error}") from None


def host_to_unicode_2003(host: str, *, strict: bool = False) -> str:
    """Return the Unicode form by IDNA 2003; labels that cannot be decoded are unchanged (RFC 3490 4.2)."""
    if len(host) > _MAX_CHARACTERS:
        return host
    return ".".join(_label_to_unicode_2003(label, strict) for label in _DOTS.split(host))


def _label_to_unicode_2003(label: str, strict: bool) -> str:
    try:
        found = encodings.idna.ToUnicode(label)
    except UnicodeError:
        return label
    if strict and any(stringprep.in_table_a1(character) for character in found):
        return label
    return found


def url_to_ascii(url: str) -> str | None:
    """Return the URL with an ``xn--`` host in lower case, None if it is malformed (``URLUtil.toASCII``)."""
    try:
        parsed = parse_url(url)
        if not parsed.host or (parsed.host.isascii() and parsed.host == parsed.host.lower()):
            return url
        host = parsed.host.lower()
        return _replace_host(url, host if host.isascii() else host_to_ascii(host))
    except ValueError:
        return None


def url_to_unicode(url: str) -> str | None:
    """Return the URL with a Unicode host in lower case, None if it is malformed (``URLUtil.toUNICODE``)."""
    try:
        parsed = parse_url(url)
        host = parsed.host.lower()
        if not host or ("xn--" not in host and parsed.host == host):
            return url
        return _replace_host(url, host_to_unicode(host))
    except ValueError:
        return None


def _replace_host(url: str, host: str) -> str:
    parsed = parse_url(url)
    userinfo = "" if parsed.userinfo is None else f"{parsed.userinfo}@"
    ref = "" if parsed.ref is None else f"#{parsed.ref}"
    return compose_url(parsed.protocol, userinfo + host, parsed.port, parsed.file) + ref
