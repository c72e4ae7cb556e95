"""Chinese cut into single characters: how indexes did before they had dictionaries, and what words are measured by."""

from __future__ import annotations

from collections.abc import Iterator


class Characters:
    """Stands for jieba: every character is a word."""

    def cut(self, run: str, hmm: bool = True) -> list[str]:
        """Return the characters."""
        return [*run]

    def cut_for_search(self, run: str, hmm: bool = True) -> list[str]:
        """Return the characters."""
        return [*run]

    def tokenize(self, run: str, mode: str = "search", hmm: bool = True) -> Iterator[tuple[str, int, int]]:
        """Yield each character, and where it begins and ends."""
        for place, character in enumerate(run):
            yield character, place, place + 1

    def add_word(self, word: str, frequency: int, kind: str) -> None:
        """Take no word."""
