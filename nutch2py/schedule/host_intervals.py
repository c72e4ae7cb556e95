"""HostIntervals: bounds of the fetch interval by host, from ``adaptive-host-specific-intervals.txt`` (NUTCH-3029)."""

from __future__ import annotations

from urllib.parse import urlsplit

from nutch2py.conf.configuration import Configuration
from nutch2py.errors import ConfigurationError

HOST_INTERVALS_FILE = "adaptive-host-specific-intervals.txt"


class HostIntervals:
    """Shortest and longest interval (s) of each host, within those of the schedule."""

    def __init__(self, shortest: int, longest: int, hosts: dict[str, tuple[int, int]]) -> None:
        self.shortest, self.longest, self.intervals = shortest, longest, hosts

    @classmethod
    def load(cls, conf: Configuration, shortest: int, longest: int) -> HostIntervals:
        """Read the file, which may be absent.

        A line is ``HOST MIN MAX``; ``0`` and ``default`` stand for the schedule's own bound. Raises
        ConfigurationError with the line that is malformed, where Nutch logs it and goes on without.
        """
        if shortest > longest:
            raise ConfigurationError(
                f"db.fetch.schedule.adaptive.min_interval {shortest} is above max_interval {longest}: correct one"
            )
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
            least, most = (0 if part.lower() == "default" else int(float(part)) for part in (low, high))
        except (ValueError, OverflowError):
            raise ConfigurationError(
                f"{HOST_INTERVALS_FILE} line {number}: write HOST MIN MAX, intervals in seconds"
            ) from None
        least, most = least or shortest, most or longest
        if not shortest <= least <= most <= longest:
            raise ConfigurationError(
                f"{HOST_INTERVALS_FILE} line {number}: the interval {least} to {most} must lie within {shortest} to {longest}"
            )
        return host.lower(), (least, most)

    def get_bounds(self, url: str) -> tuple[int, int]:
        """Return the shortest and the longest interval for a URL."""
        if self.intervals:
            try:
                found = self.intervals.get(urlsplit(url).hostname or "")
            except ValueError:  # not a URL
                found = None
            if found is not None:
                return found
        return self.shortest, self.longest
