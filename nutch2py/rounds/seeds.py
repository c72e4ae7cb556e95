"""The seeds of a crawl as people write them, and whether anything can come of them: asked before the first round."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlsplit

from nutch2py.conf import Configuration
from nutch2py.errors import InputError
from nutch2py.fetcher.gate import AddressGate, address_of
from nutch2py.fetcher.names import Names
from nutch2py.jobs.left_out import GATE
from nutch2py.jobs.seeds import parse_seed_line, seed_files
from nutch2py.url.parts import host_of
from nutch2py.url.url_normalizers import URLNormalizers

_HOME = ("localhost", "127.", "[::1]", "10.", "192.168.")
"""What begins hosts that hardly ever have a certificate: without a scheme they are asked by http."""
_WITH_HOST = ("http", "https", "ftp")
_MOST_ASKED = 100  # hosts


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
        for line in _lines(word, conf):
            for seed in parse_seed_line(line):
                url = normalizers.normalize(seed.url)
                if url is None or (urlsplit(url).scheme in _WITH_HOST and not host_of(url)):
                    raise InputError(f"{word} is not the URL of a page: write it as https://www.example.org/")
                found[url] = Seed(line, url)
    if not found:
        raise InputError("no seed is named: give a URL, or a file with one URL a line")
    return [*found.values()]


def _lines(word: str, conf: Configuration) -> list[str]:
    if "://" in word:
        return [word]
    path = conf.absolute(word)
    if word.strip() and path.exists():  # an empty word would be the current folder, with all that lies in it
        return [line for file in seed_files(path) for line in _text(file).splitlines()]
    if word.startswith(("/", ".")) or " " in word or not word.strip():
        raise InputError(f"{word!r} is neither a URL nor a file: write a URL as https://www.example.org/")
    return [f"{'http' if word.startswith(_HOME) else 'https'}://{word}{'' if '/' in word else '/'}"]


def _text(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
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
