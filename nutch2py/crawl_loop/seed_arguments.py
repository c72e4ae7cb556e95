"""Seeds as arguments of the command ``crawl``, and checks before the first round whether they can be fetched."""

from __future__ import annotations

import asyncio
import errno
import re
import socket
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlsplit

from nutch2py.conf.configuration import Configuration
from nutch2py.errors import InputError
from nutch2py.fetcher.protocols.address_filter import AddressFilter, parse_host_address
from nutch2py.fetcher.protocols.dns import DnsCache
from nutch2py.jobs.inject.seeds import find_line_errors, find_seed_files, iter_files, parse_seed_line
from nutch2py.jobs.monitoring.skip_reasons import ADDRESS_FILTER_PROPERTY
from nutch2py.url.normalizers.url_normalizers import URLNormalizers
from nutch2py.url.url_parts import host_of

_HTTP_HOST_PREFIXES = ("localhost", "127.", "[::1]", "10.", "192.168.")
"""Prefixes of hosts that rarely have a certificate: without a scheme their URL gets http."""
_HOST_SCHEMES = ("http", "https", "ftp")
_SCHEME_WITHOUT_SLASHES = re.compile("(https?|ftp):/?(?!/)", re.IGNORECASE)
_SEED_FILE_SUFFIXES = (".txt", ".csv", ".tsv", ".lst", ".seeds", ".urls", ".xml", ".json", ".gz")
_MAX_HOSTS_CHECKED = 100
MAX_SEED_FILES = 10_000
"""Maximum number of seed files in a folder."""
_MAX_SHOWN_CHARACTERS = 100  # of a line in a message
_SEED_HELP = (
    "a seed is the URL of a page: give a URL like https://www.example.org/, a file with one URL per line, or a folder "
    "of only such files"
)


class SeedArgument(NamedTuple):
    """A seed line, its normalized URL, why it cannot be fetched ("" if it can), and faults of its fields."""

    line: str
    url: str
    problem: str = ""
    faults: tuple[str, ...] = ()


def resolve_seeds(words: Iterable[str], conf: Configuration) -> list[SeedArgument]:
    """Return the seeds of the arguments of a command: URLs, hosts, files and folders of seed lines.

    Raises:
        InputError: An argument is not a URL, or a file is not readable.
    """
    normalizers = URLNormalizers(conf, "inject")
    seeds: dict[str, SeedArgument] = {}
    for word in words:
        for source, line in _lines(word, conf):
            for seed in parse_seed_line(line):
                url = normalizers.normalize(seed.url)
                if url is None or (urlsplit(url).scheme in _HOST_SCHEMES and not host_of(url)):
                    raise _invalid_seed_error(word, source, seed.url)
                seeds[url] = SeedArgument(line, url, faults=tuple(find_line_errors(line)) if "\t" in line else ())
    if not seeds:
        raise InputError("no seeds given: give a URL, or a file with one URL per line")
    return [*seeds.values()]


def _invalid_seed_error(word: str, source: Path | None, line: str) -> InputError:
    """Return the error for a line of a file, or an argument, that is not a URL."""
    if source is None:
        return InputError(f"{word} is not the URL of a page: write it as https://www.example.org/")
    shown = ascii(line if len(line) <= _MAX_SHOWN_CHARACTERS else f"{line[:_MAX_SHOWN_CHARACTERS]}…")
    return InputError(f"{source} is not a seed file: its line {shown} is not the URL of a page; {_SEED_HELP}")


def _lines(word: str, conf: Configuration) -> Iterator[tuple[Path | None, str]]:
    """Yield the lines of an argument, each with its file."""
    if "://" in word:
        yield None, word
        return
    path = conf.absolute(word)
    if word.strip() and _path_exists(path):  # an empty argument would be the current folder, with all of its files
        for file in _seed_files(path, word):
            for line in _read_file(file).splitlines():
                yield file, line
        return
    if word.startswith(("/", ".")) or " " in word or not word.strip():
        raise InputError(f"{word!r} is neither a URL nor a file: write a URL as https://www.example.org/")
    if (scheme := _SCHEME_WITHOUT_SLASHES.match(word)) is not None:
        meant = f"{scheme[1].lower()}://{word[scheme.end() :]}"
        raise InputError(f"{word!r} is not a valid URL: did you mean {meant}?")
    if word.lower().endswith(_SEED_FILE_SUFFIXES):  # none of these is a top-level domain
        raise InputError(f"{word}: no such file: give an existing file with one URL per line, or a URL")
    yield None, f"{'http' if word.startswith(_HTTP_HOST_PREFIXES) else 'https'}://{word}{'' if '/' in word else '/'}"


def _path_exists(path: Path) -> bool:
    try:
        path.lstat()
    except (FileNotFoundError, NotADirectoryError, ValueError):
        return False
    except OSError as error:
        if error.errno == errno.ENAMETOOLONG:
            return False
        raise InputError(f"cannot read the seeds of {path}: {error.strerror}: check the folders above it") from error
    return True


def _seed_files(path: Path, word: str) -> list[Path]:
    """Return the seed files; reject a folder with too many files before reading them."""
    if not path.is_dir():
        return find_seed_files(path)
    try:
        files = [*islice(iter_files(path), MAX_SEED_FILES + 1)]
        if len(files) <= MAX_SEED_FILES:
            return find_seed_files(path)
    except InputError as error:
        raise InputError(f"the folder {word} cannot be read as a folder of seeds: {error}; {_SEED_HELP}") from error
    raise InputError(f"the folder {word} has more than {MAX_SEED_FILES:,} files, which are hardly seeds: {_SEED_HELP}")


def _read_file(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputError(f"{file} is not a seed file: it is not UTF-8 text; {_SEED_HELP}") from error
    except OSError as error:
        raise InputError(f"cannot read the seeds of {file}: {error}") from error


def check_seeds(seeds: list[SeedArgument], conf: Configuration) -> list[SeedArgument]:
    """Return the seeds, each with the reason why it cannot be fetched: unknown host, or denied address."""
    if conf.get_trimmed("http.proxy.host"):
        return seeds  # the proxy resolves the names and opens the connections
    return asyncio.run(_check_hosts(seeds, DnsCache.from_conf(conf), AddressFilter.from_conf(conf)))


def own_site_delay_hint(seeds: Iterable[SeedArgument], conf: Configuration) -> str:
    """Return what shortens a crawl whose seeds are all on this machine or network, "" for other crawls."""
    delay = conf.get_float("fetcher.server.delay", 5.0)
    if delay < 1 or not all(host_of(seed.url).startswith(_HTTP_HOST_PREFIXES) for seed in seeds):
        return ""
    return (
        f"requests to one host are {delay:g} s apart (fetcher.server.delay); on a site of your own that bears more: "
        "-D fetcher.server.delay=0"
    )


async def _check_hosts(seeds: list[SeedArgument], dns: DnsCache, address_filter: AddressFilter) -> list[SeedArgument]:
    try:
        hosts = {host_of(seed.url) for seed in seeds if urlsplit(seed.url).scheme in _HOST_SCHEMES}
        if len(hosts) > _MAX_HOSTS_CHECKED:
            return seeds  # some hosts of a long list are always gone: the first round shows which
        problems = await asyncio.gather(*(_host_problem(host, dns, address_filter) for host in hosts))
        problem_by_host = dict(zip(hosts, problems, strict=True))
        return [seed._replace(problem=problem_by_host.get(host_of(seed.url), "")) for seed in seeds]
    finally:
        await dns.close()


async def _host_problem(host: str, dns: DnsCache, address_filter: AddressFilter) -> str:
    address = parse_host_address(host)
    try:
        addresses = (address,) if address is not None else await dns.resolve(host)
        if not addresses:
            results = await asyncio.get_running_loop().getaddrinfo(host, None, type=socket.SOCK_STREAM)
            addresses = tuple(str(each[4][0]) for each in results)
    except (OSError, UnicodeError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        return f"{host}: {reason}"
    denied = [each for each in addresses if not address_filter.is_allowed(each)]
    if len(denied) < len(addresses):
        return ""
    return (
        f"{host} has the address {denied[0]}, which {ADDRESS_FILTER_PROPERTY} denies; to allow such addresses: "
        f"-D {ADDRESS_FILTER_PROPERTY}="
    )
