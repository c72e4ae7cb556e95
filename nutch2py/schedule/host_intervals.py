"""Bounds of the fetch interval by host, read from ``adaptive-host-specific-intervals.txt`` (NUTCH-3029)."""

from __future__ import annotations

from urllib.parse import urlsplit

from nutch2py.conf.configuration import Configuration
from nutch2py.errors import ConfigurationError

HOST_INTERVALS_FILE = "adaptive-host-specific-intervals.txt"


class HostIntervals:
    """Shortest and longest interval (s) by host, within the bounds of the schedule."""

    def __init__(self, shortest: int, longest: int, hosts: dict[str, tuple[int, int]]) -> None:
        self.shortest, self.longest, self.intervals = shortest, longest, hosts

    @classmethod
    def load(cls, conf: Configuration, shortest: int, longest: int) -> HostIntervals:
        """Read the file, if it exists.

        A line is ``HOST MIN MAX``; ``0`` and ``default`` select the schedule's own bound. A malformed line raises
        ConfigurationError with its number, while Nutch logs and ignores it.
        """
        hosts = {}
        for number, line in enumerate((conf.resource_text(HOST_INTERVALS_FILE) or "").splitlines(), 1):
            if line.strip() and not line.startswith("#"):
                host, bounds = cls._parse(line, number, shortest, longest)
                hosts[host] = bounds
        return cls(shortest, longest, hosts)

    @staticmethod
    def _parse(line: str, number: int, shortest: int, longest: int) -> tuple[str, tuple[int, int]]:
        parts = line.split()
        try:
            host, low, high = parts
            low_bound, high_bound = (0 if part.lower() == "default" else int(float(part)) for part in (low, high))
        except (ValueError, OverflowError):
            raise ConfigurationError(
                f"{HOST_INTERVALS_FILE} line {number}: write HOST MIN MAX, intervals in seconds"
            ) from None
        low_bound, high_bound = low_bound or shortest, high_bound or longest
        if not shortest <= low_bound <= high_bound <= longest:
            raise ConfigurationError(
                f"{HOST_INTERVALS_FILE} line {number}: the interval {low_bound} to {high_bound} is not within "
                f"{shortest} to {longest}: correct it"
            )
        return host.lower(), (low_bound, high_bound)

    def get_bounds(self, url: str) -> tuple[int, int]:
        """Return the shortest and the longest interval for a URL."""
        if self.intervals:
            try:
                bounds = self.intervals.get(urlsplit(url).hostname or "")
            except ValueError:  # not a URL
                bounds = None
            if bounds is not None:
                return bounds
        return self.shortest, self.longest
