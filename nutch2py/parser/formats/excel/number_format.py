"""Excel number formats ([ECMA-376] Part 1, 18.8.30): formats a number as its cell displays it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import ROUND_HALF_UP, Decimal, InvalidOperation
from fractions import Fraction

from nutch2py.support.bounded_cache import bounded_cache

_EPOCH = datetime(1899, 12, 30)
_LAST_DAY = 2_958_466  # after the year 9999
_MAX_CODE_CHARS = 255  # as in Excel
_MAX_DIGITS = 30
_TOKEN = re.compile(
    r'"(?P<quoted>[^"]*)"?|\\(?P<escaped>.)|_(?P<space>.)|\*.|\[(?P<bracket>[^\]]*)\]?|(?P<half>AM/PM|A/P|上午/下午)'
    r"|(?P<general>General)|(?P<exponent>E[+-])|(?P<date>y+|m+|d+|h+|s+(?:\.0+)?|aaaa?)|(?P<digit>[0#?])"
    r"|(?P<other>.)",
    re.IGNORECASE | re.DOTALL,
)
_MONTHS = ("January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November",
           "December")  # fmt: skip
_DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
# built-in formats that are equal in all locales; locale-dependent dates are formatted as ISO 8601
_BUILT_IN = {
    1: "0", 2: "0.00", 3: "#,##0", 4: "#,##0.00", 9: "0%", 10: "0.00%", 11: "0.00E+00", 12: "# ?/?", 13: "# ??/??",
    14: "yyyy-mm-dd", 15: "d-mmm-yy", 16: "d-mmm", 17: "mmm-yy", 18: "h:mm AM/PM", 19: "h:mm:ss AM/PM", 20: "h:mm",
    21: "h:mm:ss", 22: "yyyy-mm-dd h:mm", 37: "#,##0;(#,##0)", 38: "#,##0;(#,##0)", 39: "#,##0.00;(#,##0.00)",
    40: "#,##0.00;(#,##0.00)", 41: "#,##0;(#,##0)", 42: "#,##0;(#,##0)", 43: "#,##0.00;(#,##0.00)",
    44: "#,##0.00;(#,##0.00)", 45: "mm:ss", 46: "[h]:mm:ss", 47: "mm:ss.0", 48: "##0.0E+0",
    **dict.fromkeys((*range(27, 37), *range(50, 59)), "yyyy-mm-dd"),
}  # fmt: skip
_LOCALE_FORMATS = frozenset({14, 22, *range(27, 37), *range(50, 59)})


def format_general(number: float) -> str:
    """Return a number rounded to 15 digits, without floating-point noise.

    >>> format_general(0.30000000000000004), format_general(7.0)
    ('0.3', '7')
    """
    return f"{number:.15g}"


def find_format_code(number: int, custom_formats: dict[int, str]) -> str:
    """Return the format code with a number; ``custom_formats``: the formats of the workbook."""
    if number in _LOCALE_FORMATS:
        return _BUILT_IN[number]
    return custom_formats.get(number) or _BUILT_IN.get(number, "General")


def format_cell(value: str, code: str) -> str:
    """Return a cell's number in its format, or the value itself when it is not a number.

    >>> format_cell("1599.99", "$#,##0.00"), format_cell("-1599.99", "0.0;(0.0)"), format_cell("0.025", "0.0%")
    ('$1,599.99', '(1600.0)', '2.5%')
    >>> format_cell("45000.5", "d-mmm-yy h:mm AM/PM"), format_cell("1.5", "[h]:mm:ss"), format_cell("x", "0")
    ('15-Mar-23 12:00 PM', '36:00:00', 'x')
    """
    try:
        number = float(value)
        if number != number or number in (float("inf"), float("-inf")):
            return value
        sections = _parse_sections(code[:_MAX_CODE_CHARS])
        section = sections[0]
        if len(sections) > 1 and number < 0:
            section, number = sections[1], -number
        elif len(sections) > 2 and number == 0:
            section = sections[2]
        return _format_date(number, section) if section.is_date else _format_number(number, section)
    except (ValueError, OverflowError, InvalidOperation):
        return value


@dataclass(frozen=True)
class _FormatSection:
    """A section of a format: (kind, text) tokens in order. ``is_date``: whether it formats a date or time."""

    tokens: tuple[tuple[str, str], ...]
    is_date: bool


@bounded_cache(1000)
def _parse_sections(code: str) -> tuple[_FormatSection, ...]:
    sections: list[_FormatSection] = []
    tokens: list[tuple[str, str]] = []
    for match in _TOKEN.finditer(code):
        kind, text = match.lastgroup or "fill", match[match.lastgroup or 0]
        if kind == "other" and text == ";":
            sections.append(_build_section(tokens))
            tokens = []
        elif kind == "bracket":
            if text.startswith("$"):  # a currency, and a language after the hyphen
                tokens += [("text", currency)] if (currency := text[1:].partition("-")[0]) else []
            elif text and not text.lower().strip(text[0].lower()) and text[0].lower() in "hms":
                tokens.append(("elapsed", text.lower()))
        elif kind in ("quoted", "escaped"):
            tokens.append(("text", text))
        elif kind == "space":
            tokens.append(("text", " "))
        elif kind != "fill":
            tokens.append((kind, text))
    return (*sections, _build_section(tokens))


def _build_section(tokens: list[tuple[str, str]]) -> _FormatSection:
    is_date = any(kind in ("date", "elapsed", "half") for kind, _ in tokens)
    return _FormatSection(tuple(tokens), is_date and not any(kind in ("general", "exponent") for kind, _ in tokens))


def _format_number(number: float, section: _FormatSection) -> str:
    tokens = section.tokens
    if any(kind == "general" for kind, _ in tokens):
        return "".join(
            format_general(number) if kind == "general" else text for kind, text in tokens if kind != "date"
        ).strip()
    digits = [index for index, (kind, _) in enumerate(tokens) if kind == "digit"]
    if not digits:  # only text, or the placeholder of a text: then the number itself
        texts = "".join(text for kind, text in tokens if kind != "other" or text != "@").strip()
        return texts or ("" if any(kind == "text" for kind, _ in tokens) else format_general(number))
    slash = next((i for i, token in enumerate(tokens) if token == ("other", "/") and digits[0] < i), None)
    if slash is not None:
        return _format_fraction(number, section, slash)
    point = next((i for i, token in enumerate(tokens) if token == ("other", ".")), len(tokens))
    exponent = next((i for i, (kind, _) in enumerate(tokens) if kind == "exponent"), len(tokens))
    point = min(point, exponent)
    whole = [i for i in digits if i < point]
    decimals = min(sum(point < i < exponent for i in digits), _MAX_DIGITS)
    last = whole[-1] if whole else -1
    grouped = any(token == ("other", ",") and whole and whole[0] < i < last for i, token in enumerate(tokens[:point]))
    exact = Decimal(repr(number))
    exact *= Decimal(100) ** min(sum(token == ("other", "%") for token in tokens), 3)
    thousands = digits[-1] + 1 if exponent == len(tokens) else len(tokens)
    while thousands < len(tokens) and tokens[thousands] == ("other", ","):  # each trailing comma divides by 1,000
        exact /= 1000
        thousands += 1
    power = 0
    if exponent < len(tokens) and exact:
        step = max(1, len(whole))
        power = (exact.adjusted() // step) * step if step > 1 else exact.adjusted()
        exact = exact.scaleb(-power)
    rounded = (
        f"{exact.quantize(Decimal(1).scaleb(-decimals), ROUND_HALF_UP):f}" if abs(exact) < 10**25 else f"{exact:f}"
    )
    negative, rounded = rounded.startswith("-"), rounded.lstrip("-")
    integer, _, fraction = rounded.partition(".")
    zeros = sum(tokens[i][1] == "0" for i in whole)
    integer = integer.lstrip("0").rjust(zeros, "0") if len(integer.lstrip("0")) < zeros else integer.lstrip("0")
    optional = [tokens[i][1] for i in digits if point < i < exponent]
    fraction = fraction[:decimals]
    while fraction and optional and optional.pop() == "#" and fraction.endswith("0"):
        fraction = fraction[:-1]
    out = "-" if negative and (integer.strip("0") or fraction.strip("0")) else ""
    return out + _fill_digits(tokens, whole, integer, fraction, point, exponent, grouped, power)


def _fill_digits(
    tokens: tuple[tuple[str, str], ...],
    whole: list[int],
    integer: str,
    fraction: str,
    point: int,
    exponent: int,
    grouped: bool,
    power: int,
) -> str:
    """Fill the digit placeholders of a format, the integer's from its end; extra digits come first."""
    places: dict[int, str] = {}
    left = integer
    for index in reversed(whole):
        places[index], left = left[-1:], left[:-1]
    if whole:
        places[whole[0]] = left + places[whole[0]]
        integer_places = "".join(places[i] for i in whole)
        if grouped:
            places = dict.fromkeys(whole, "") | {whole[0]: f"{int(integer_places or 0):,}" if integer_places else ""}
    out: list[str] = []
    used = 0
    for index, (kind, text) in enumerate(tokens):
        if kind == "digit":
            if index in places:
                out.append(places[index])
            elif point < index < exponent:
                out.append(fraction[used : used + 1])
                used += 1
            elif index > exponent and exponent >= 0:
                out.append(f"{abs(power):0{sum(k == 'digit' for k, _ in tokens[exponent:])}d}")
                exponent = -1  # the other exponent digits are included
        elif kind == "exponent":
            out.append("E" + ("-" if power < 0 else text[1:].strip("-")))
        elif (kind, text) == ("other", ".") and index == point:
            out.append("." if fraction else "")
        elif kind in ("text", "date") or (kind == "other" and text not in ",@"):
            out.append(text)
    return " ".join("".join(out).split())


def _format_fraction(number: float, section: _FormatSection, slash: int) -> str:
    tokens = section.tokens
    below = [text for kind, text in tokens[slash + 1 :] if kind == "digit" or text.isdigit()]
    fixed = "".join(below)
    most = int(fixed) if fixed.isdecimal() and int(fixed) else 10 ** min(len(below) or 1, 7) - 1
    value = abs(Decimal(repr(number)))
    above = sum(
        1 for i, (kind, _) in enumerate(tokens[:slash]) if kind == "digit" and (i == 0 or tokens[i - 1][0] != "digit")
    )
    whole = int(value) if above > 1 else 0
    rest = Fraction(value - whole)
    near = Fraction(round(rest * most), most) if fixed.isdecimal() and int(fixed) else rest.limit_denominator(most)
    if near == 1 and above > 1:
        whole, near = whole + 1, Fraction(0)
    parts = [str(whole)] if whole or (not near and above > 1) else []
    if near or above <= 1:
        parts.append(f"{near.numerator}/{near.denominator}")
    return ("-" if number < 0 and (whole or near) else "") + " ".join(parts)


def _format_date(number: float, section: _FormatSection) -> str:
    if not 0 <= number < _LAST_DAY:
        return format_general(number)
    tokens = section.tokens
    places = max((len(text.partition(".")[2]) for kind, text in tokens if kind == "date"), default=0)
    seconds = round(number * 86400, min(places, 3))
    moment = _EPOCH + timedelta(seconds=seconds)
    half = any(kind == "half" for kind, _ in tokens)
    hour = (moment.hour % 12 or 12) if half else moment.hour
    units = [(text[0].lower(), index) for index, (kind, text) in enumerate(tokens) if kind in ("date", "elapsed")]
    # m is a minute after an hour and before a second, else a month
    minutes = {
        index
        for at, (letter, index) in enumerate(units)
        if letter == "m" and ((at > 0 and units[at - 1][0] == "h") or (at + 1 < len(units) and units[at + 1][0] == "s"))
    }
    out: list[str] = []
    for index, (kind, text) in enumerate(tokens):
        size = len(text)
        if kind == "elapsed":
            span = int(seconds // {"h": 3600, "m": 60, "s": 1}[text[0]])
            out.append(f"{span:0{min(size, 9)}d}")
        elif kind == "half":
            out.append(("AM" if moment.hour < 12 else "PM")[: 1 if text.upper() == "A/P" else 2])
        elif kind == "date":
            out.append(_format_date_unit(text.lower(), moment, hour, minute=index in minutes))
        elif kind == "text" or (kind == "other" and text != "@"):
            out.append(text)
    return " ".join("".join(out).split())


def _format_date_unit(text: str, moment: datetime, hour: int, *, minute: bool) -> str:
    letter, size = text[0], len(text)
    if letter == "y":
        return f"{moment.year:04d}" if size > 2 else f"{moment.year % 100:02d}"
    if letter == "a":
        return _DAYS[moment.weekday()][: None if size > 3 else 3]
    if letter == "d":
        return _DAYS[moment.weekday()][: None if size > 3 else 3] if size > 2 else f"{moment.day:0{size}d}"
    if letter == "s" and "." in text:
        whole = text.partition(".")[0]
        return f"{moment.second:0{len(whole)}d}.{moment.microsecond // 1000:03d}"[: len(text) + (len(whole) < 2)]
    if letter == "m" and not minute:
        name = _MONTHS[moment.month - 1]
        if size > 2:
            return name if size == 4 else name[: 1 if size == 5 else 3]
        return f"{moment.month:0{size}d}"
    return f"{ ({'h': hour, 's': moment.second}.get(letter, moment.minute)):0{min(size, 2)}d}"
