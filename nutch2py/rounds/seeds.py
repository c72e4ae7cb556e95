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

from nutch2py.conf import Configuration
from nutch2py.errors import InputError
from nutch2py.fetcher.gate import AddressGate, address_of
from nutch2py.fetcher.names import Names
from nutch2py.jobs.left_out import GATE
from nutch2py.jobs.seeds import files_below, parse_seed_line, seed_files
from nutch2py.url.parts import host_of
from nutch2py.url.url_normalizers import URLNormalizers

_HOME = ("localhost", "127.", "[::1]", "10.", "192.168.")
"""What begins hosts that hardly ever have a certificate: without a scheme they are asked by http."""
_WITH_HOST = ("http", "https", "ftp")
_MOST_ASKED = 100  # hosts
_MOST_FILES = 10_000
_SHOWN = 100  # characters of a line
_SEEDS = (
    "a seed is the URL of a page: name one as https://www.example.org/, or a file with one URL a line, or a folder of "
    "such files alone"
)


class Seed(NamedTuple):
    """A line of seeds, its URL as the table has it, and why nothing can be fetched of it ("": it can)."""

    line: str
    url: str
    trouble: str = ""


def seeds_of(words: Iterable[str], conf: Configuration) -> list[Seed]:
    """Return the seeds that the words of a command mean: URLs, hosts, files and folders of seed lines.

    Raise InputError for one that is no URL, and for a file that cannot be read.
    """
    normalizers = URLNormalizers(conf, "inject")
    found: dict[str, Seed] = {}
    for word in words:
        for source, line in _lines(word, conf):
            for seed in parse_seed_line(line):
                url = normalizers.normalize(seed.url)
                if url is None or (urlsplit(url).scheme in _WITH_HOST and not host_of(url)):
                    raise _no_seed(word, source, seed.url)
                found[url] = Seed(line, url)
    if not found:
        raise InputError("no seed is named: give a URL, or a file with one URL a line")
    return [*found.values()]


def _no_seed(word: str, source: Path | None, line: str) -> InputError:
    """Return the error for a line that is no URL, of a file or a word by itself."""
    if source is None:
        return InputError(f"{word} is not the URL of a page: write it as https://www.example.org/")
    shown = ascii(line if len(line) <= _SHOWN else f"{line[:_SHOWN]}…")
    return InputError(f"{source} is no file of seeds: its line {shown} is not the URL of a page; {_SEEDS}")


def _lines(word: str, conf: Configuration) -> Iterator[tuple[Path | None, str]]:
    """Yield the lines that a word means, each with the file that it is of."""
    if "://" in word:
        yield None, word
        return
    path = conf.absolute(word)
    if word.strip() and _is_there(path):  # an empty word would be the current folder, with all that lies in it
        for file in _seed_files(path, word):
            for line in _text(file).splitlines():
                yield file, line
        return
    if word.startswith(("/", ".")) or " " in word or not word.strip():
        raise InputError(f"{word!r} is neither a URL nor a file: write a URL as https://www.example.org/")
    yield None, f"{'http' if word.startswith(_HOME) else 'https'}://{word}{'' if '/' in word else '/'}"


def _is_there(path: Path) -> bool:
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
        return seed_files(path)
    try:
        found = [*islice(files_below(path), _MOST_FILES + 1)]
        if len(found) <= _MOST_FILES:
            return seed_files(path)
    except InputError as error:
        raise InputError(f"the folder {word} cannot be read as one of seeds: {error}; {_SEEDS}") from error
    raise InputError(f"the folder {word} has more than {_MOST_FILES:,} files, which are hardly seeds: {_SEEDS}")


def _text(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputError(f"{file} is no file of seeds: it is not text of UTF-8; {_SEEDS}") from error
    except OSError as error:
        raise InputError(f"cannot read the seeds of {file}: {error}") from error


def with_troubles(seeds: list[Seed], conf: Configuration) -> list[Seed]:
    """Return the seeds, each with what hinders its fetch: a name that nobody knows, an address that is refused."""
    if conf.get_trimmed("http.proxy.host"):
        return seeds  # who asks DNS, and where connections lead, is the proxy's
    return asyncio.run(_asked(seeds, Names.from_conf(conf), AddressGate.from_conf(conf)))


async def _asked(seeds: list[Seed], names: Names, gate: AddressGate) -> list[Seed]:
    try:
        hosts = {host_of(seed.url) for seed in seeds if urlsplit(seed.url).scheme in _WITH_HOST}
        if len(hosts) > _MOST_ASKED:
            return seeds  # a list of somebody's, of which some are always gone: the first round tells
        told = await asyncio.gather(*(_trouble(host, names, gate) for host in hosts))
        troubles = dict(zip(hosts, told, strict=True))
        return [seed._replace(trouble=troubles.get(host_of(seed.url), "")) for seed in seeds]
    finally:
        await names.close()


async def _trouble(host: str, names: Names, gate: AddressGate) -> str:
    address = address_of(host)
    try:
        found = (address,) if address is not None else await names.lookup(host)
        if not found:
            system = await asyncio.get_running_loop().getaddrinfo(host, None, type=socket.SOCK_STREAM)
            found = tuple(str(each[4][0]) for each in system)
    except (OSError, UnicodeError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        return f"{host}: {reason}"
    refused = [each for each in found if not gate.accepts(each)]
    if len(refused) < len(found):
        return ""
    return f"{host} is at {refused[0]}, which {GATE} refuses; to allow such addresses: -D {GATE}="
