"""Theme of the search page: the properties ``search.page.*``."""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

from nutch2py.conf.configuration import Configuration
from nutch2py.errors import ConfigurationError
from nutch2py.search.cors import CorsPolicy
from nutch2py.server.translations import validate_language

DEFAULT_COLOUR = "#1546a8"
_COLOUR_PATTERN = re.compile("#[0-9a-fA-F]{6}")
_IMAGE_TYPES = {".svg": "image/svg+xml", ".png": "image/png", ".jpg": "image/jpeg", ".webp": "image/webp"}
_MIN_CONTRAST = 4.5  # WCAG 2 AA for text
# the variables --paper, --tint and --mark of style.css
_LIGHT, _DARK = ("#ffffff", "#f5f7fa", "#fff0b8"), ("#14181f", "#1c222c", "#3d3210")


class Theme(NamedTuple):
    """Settings of the search page.

    Attributes:
        name: title of the page.
        logo: image file, None for the name as text.
        colour: ``#rrggbb``.
        language: "" for the browser's.
        templates_dir: folder of the operator's templates, None for ours.
        origins: sites that may request suggestions and embed the search box.
        base_url: public URL without a trailing slash, "" for that of the request.
    """

    name: str
    logo: Path | None
    colour: str
    language: str
    templates_dir: Path | None
    origins: CorsPolicy
    base_url: str

    @classmethod
    def from_conf(cls, conf: Configuration) -> Theme:
        """Read the properties; raise ConfigurationError for an invalid one."""
        colour = conf.get_trimmed("search.page.colour") or DEFAULT_COLOUR
        if not _COLOUR_PATTERN.fullmatch(colour):
            raise ConfigurationError(
                f"search.page.colour is {colour!r}: use six hexadecimal digits as in {DEFAULT_COLOUR}"
            )
        return cls(
            conf.get_trimmed("search.page.name") or "nutch2py",
            _logo_path(conf),
            colour,
            validate_language(conf.get_trimmed("search.page.language").lower()),
            _templates_dir(conf),
            CorsPolicy.from_conf(conf),
            conf.get_trimmed("search.page.address").rstrip("/"),
        )

    @property
    def logo_media_type(self) -> str:
        """The media type of the logo."""
        return _IMAGE_TYPES[self.logo.suffix.lower()] if self.logo else ""

    def css(self) -> str:
        """Return CSS variables for the colours of buttons and links, with enough contrast in light and dark mode."""
        on_button = (
            "#ffffff" if contrast_ratio(self.colour, "#ffffff") >= contrast_ratio(self.colour, "#10141b") else "#10141b"
        )
        light, dark = (ensure_contrast(self.colour, backgrounds) for backgrounds in (_LIGHT, _DARK))
        return (
            f":root{{--button:{self.colour};--on-button:{on_button};--link:{light}}}\n"
            f"@media(prefers-color-scheme:dark){{:root{{--link:{dark}}}}}\n"
        )


def _logo_path(conf: Configuration) -> Path | None:
    name = conf.get_trimmed("search.page.logo")
    if not name:
        return None
    path = conf.resource(name) or conf.absolute(name)
    if not path.is_file() or path.suffix.lower() not in _IMAGE_TYPES:
        raise ConfigurationError(f"search.page.logo: image {name} not found ({', '.join(_IMAGE_TYPES)})")
    return path


def _templates_dir(conf: Configuration) -> Path | None:
    name = conf.get_trimmed("search.page.templates")
    if not name:
        return None
    folder = conf.absolute(name)
    if not folder.is_dir():
        raise ConfigurationError(f"search.page.templates: folder {folder} not found")
    return folder


def contrast_ratio(one: str, other: str) -> float:
    """Return the contrast ratio of two colours by WCAG 2, from 1 to 21.

    >>> round(contrast_ratio("#000000", "#ffffff"), 1)
    21.0
    """
    light, dark = sorted((_luminance(one), _luminance(other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


def ensure_contrast(colour: str, backgrounds: tuple[str, ...]) -> str:
    """Mix a colour with black or white until it is readable on all backgrounds."""
    target = 0 if _luminance(backgrounds[0]) > 0.5 else 255
    parts = [int(colour[at : at + 2], 16) for at in (1, 3, 5)]
    for step in range(21):
        mixed = "#" + "".join(f"{round(part + (target - part) * step / 20):02x}" for part in parts)
        if all(contrast_ratio(mixed, background) >= _MIN_CONTRAST for background in backgrounds):
            return mixed
    raise AssertionError("black or white is readable on every background")


def _luminance(colour: str) -> float:
    shares = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    red, green, blue = (share / 12.92 if share <= 0.04045 else ((share + 0.055) / 1.055) ** 2.4 for share in shares)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue
