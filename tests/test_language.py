"""The language of pages and messages: words that CONTRIBUTING.md's section on prose replaces become rarer, never more.

A limit is the number of occurrences when it was last lowered, and a little more. Lower it when you rewrite a page: a
test fails when a limit is above the number by more than a tenth and five.
"""

from __future__ import annotations

import re
from functools import cache

import pytest

from tests.test_docs import DOCS, ROOT, script

WORDS = {
    "anew": r"anew|once more",
    "begin": r"beg[ia]ns?|begun|beginning",
    "go on": r"go(?:es)? on|went on",
    "tell": r"tells?|told",
    "is there": r"is (?:not )?there\b(?! (?:a|an|no)\b)|nobody knows",
    "what is": r"what (?:is|comes|came|was|were|becomes|became)",
    "left out": r"left out|passed over|in vain",
    "in trouble": r"(?:is|was|be) away|in trouble",
    "parted": r"parted (?:by|at)|put together",
    "lies in": r"lies? in|stands? (?:in|there|beside|behind|before)",
    "in words": r"in words|in pictures|in figures",
    "whose": r"whoever|thereby|thereof|whereof",
    "hence": r"lest|albeit|nor does|for then|save for",
}
"""A name of each group of words, and its expression."""
LIMITS = {
    "pages": dict.fromkeys(WORDS, 2) | {"begin": 40, "what is": 150},
    "messages": dict.fromkeys(WORDS, 1) | {"begin": 2, "what is": 4},
}


def prose(text: str) -> str:
    """Return a page without code, links' targets and comments."""
    text = re.sub(r"<!--.*?-->|^( *)```.*?^\1```$", "", text, flags=re.DOTALL | re.MULTILINE)
    return re.sub(r"`[^`\n]*`|\]\([^)]*\)", "", text)


@cache
def corpus(name: str) -> str:
    if name == "messages":
        return "\n".join(re.sub(r"\{[^{}]*\}", "", each.text) for each in script("docs").messages())
    pages = [path for path in DOCS.rglob("*.md") if path.parent.name != "measurements"]
    pages += [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "SECURITY.md"]
    return "\n".join(prose(path.read_text(encoding="utf-8")) for path in sorted(pages))


def count(name: str, word: str) -> int:
    return len(re.findall(rf"\b(?:{WORDS[word]})\b", corpus(name), re.IGNORECASE))


@pytest.mark.parametrize(("name", "word"), [(name, word) for name in LIMITS for word in WORDS])
def test_replaced_words_do_not_become_more(name: str, word: str) -> None:
    found, limit = count(name, word), LIMITS[name][word]
    assert found <= limit, f"{word}: {found} times in the {name}, {limit} allowed: see CONTRIBUTING.md, Prose"
    assert found >= 0.9 * limit - 5, f"{word}: {found} times in the {name}: lower the limit {limit}"
