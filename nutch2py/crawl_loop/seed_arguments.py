"""The seeds of a crawl as people write them, and whether anything can come of them: asked before the first round."""

from __future__ import annotations

import asyncio
import errno
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
from nutch2py.jobs.inject.seeds import find_seed_files, iter_files, parse_seed_line
from nutch2py.jobs.monitoring.skip_reasons import ADDRESS_FILTER_PROPERTY
from nutch2py.url.normalizers.url_normalizers import URLNormalizers
from nutch2py.url.url_parts import host_of

_HTTP_HOST_PREFIXES = ("localhost", "127.", "[::1]", "10.", "192.168.")
"""What begins hosts that hardly ever have a certificate: without a scheme they are asked by http."""
_HOST_SCHEMES = ("http", "https", "ftp")
_MAX_HOSTS_CHECKED = 100  # hosts
_MAX_SEED_FILES = 10_000
_MAX_SHOWN_CHARACTERS = 100  # characters of a line
_SEED_HELP = (
    "a seed is the URL of a page: name one as https://www.example.org/, or a file with one URL a line, or a folder of "
    "such files alone"
)


class SeedArgument(NamedTuple):
    """A line of seeds, its URL as the table has it, and why nothing can be fetched of it ("": it can)."""

    line: str
    url: str
    problem: str = ""


def resolve_seeds(words: Iterable[str], conf: Configuration) -> list[SeedArgument]:
    """Return the seeds that the words of a command mean: URLs, hosts, files and folders of seed lines.

    Raise InputError for one that is no URL, and for a file that cannot be read.
    """
    normalizers = URLNormalizers(conf, "inject")
    found: dict[str, SeedArgument] = {}
    for word in words:
        for source, line in _lines(word, conf):
            for seed in parse_seed_line(line):
                url = normalizers.normalize(seed.url)
                if url is None or (urlsplit(url).scheme in _HOST_SCHEMES and not host_of(url)):
                    raise _invalid_seed_error(word, source, seed.url)
                found[url] = SeedArgument(line, url)
    if not found:
        raise InputError("no seed is named: give a URL, or a file with one URL a line")
    return [*found.values()]


def _invalid_seed_error(word: str, source: Path | None, line: str) -> InputError:
    """Return the error for a line that is no URL, of a file or a word by itself."""
    if source is None:
        return InputError(f"{word} is not the URL of a page: write it as https://www.example.org/")
    shown = ascii(line if len(line) <= _MAX_SHOWN_CHARACTERS else f"{line[:_MAX_SHOWN_CHARACTERS]}…")
    return InputError(f"{source} is no file of seeds: its line {shown} is not the URL of a page; {_SEED_HELP}")


def _lines(word: str, conf: Configuration) -> Iterator[tuple[Path | None, str]]:
    """Yield the lines that a word means, each with the file that it is of."""
    if "://" in word:
        yield None, word
        return
    path = conf.absolute(word)
    if word.strip() and _path_exists(path):  # an empty word would be the current folder, with all that lies in it
        for file in _seed_files(path, word):
            for line in _read_file(file).splitlines():
                yield file, line
        return
    if word.startswith(("/", ".")) or " " in word or not word.strip():
        raise InputError(f"{word!r} is neither a URL nor a file: write a URL as https://www.example.org/")
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
    """Return the files of seeds; a folder of very many is refused before it is read: it was hardly meant."""
    if not path.is_dir():
        return find_seed_files(path)
    try:
        found = [*islice(iter_files(path), _MAX_SEED_FILES + 1)]
        if len(found) <= _MAX_SEED_FILES:
            return find_seed_files(path)
    except InputError as error:
        raise InputError(f"the folder {word} cannot be read as one of seeds: {error}; {_SEED_HELP}") from error
    raise InputError(f"the folder {word} has more than {_MAX_SEED_FILES:,} files, which are hardly seeds: {_SEED_HELP}")


def _read_file(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputError(f"{file} is no file of seeds: it is not text of UTF-8; {_SEED_HELP}") from error
    except OSError as error:
        raise InputError(f"cannot read the seeds of {file}: {error}") from error


def check_seeds(seeds: list[SeedArgument], conf: Configuration) -> list[SeedArgument]:
    """Return the seeds, each with what hinders its fetch: a name that nobody knows, an address that is refused."""
    if conf.get_trimmed("http.proxy.host"):
        return seeds  # who asks DNS, and where connections lead, is the proxy's
    return asyncio.run(_check_hosts(seeds, DnsCache.from_conf(conf), AddressFilter.from_conf(conf)))


async def _check_hosts(seeds: list[SeedArgument], names: DnsCache, gate: AddressFilter) -> list[SeedArgument]:
    try:
        hosts = {host_of(seed.url) for seed in seeds if urlsplit(seed.url).scheme in _HOST_SCHEMES}
        if len(hosts) > _MAX_HOSTS_CHECKED:
            return seeds  # a list of somebody's, of which some are always gone: the first round tells
        told = await asyncio.gather(*(_host_problem(host, names, gate) for host in hosts))
        troubles = dict(zip(hosts, told, strict=True))
        return [seed._replace(problem=troubles.get(host_of(seed.url), "")) for seed in seeds]
    finally:
        await names.close()


async def _host_problem(host: str, names: DnsCache, gate: AddressFilter) -> str:
    address = parse_host_address(host)
    try:
        found = (address,) if address is not None else await names.resolve(host)
        if not found:
            system = await asyncio.get_running_loop().getaddrinfo(host, None, type=socket.SOCK_STREAM)
            found = tuple(str(each[4][0]) for each in system)
    except (OSError, UnicodeError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        return f"{host}: {reason}"
    refused = [each for each in found if not gate.is_allowed(each)]
    if len(refused) < len(found):
        return ""
    return f"{host} is at {refused[0]}, which {ADDRESS_FILTER_PROPERTY} refuses; to allow such addresses: -D {ADDRESS_FILTER_PROPERTY}="
