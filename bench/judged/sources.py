"""The public collections by name: their files at fixed addresses, with checksums and licences."""

from __future__ import annotations

import hashlib
import os
import urllib.request
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

from bench.judged.collection import JudgedCollection
from bench.judged.readers import read_npl, read_smart, read_squad


class CollectionError(Exception):
    """A collection cannot be fetched or is not the expected one."""


class Source(NamedTuple):
    """Files of a public repository at a commit: path and SHA-256; ``read`` gets their local paths."""

    repository: str
    commit: str
    licence: str
    files: Sequence[tuple[str, str]]
    read: Callable[[Sequence[Path]], JudgedCollection]

    def fetch(self, folder: Path) -> list[Path]:
        """Return the files in a folder; download what is missing."""
        return [self._fetch_file(folder, *each) for each in self.files]

    def _fetch_file(self, folder: Path, path: str, checksum: str) -> Path:
        target = folder / self.repository.replace("/", "+") / path
        if not target.exists():
            url = f"https://raw.githubusercontent.com/{self.repository}/{self.commit}/{path}"
            try:
                with urllib.request.urlopen(url, timeout=60) as response:
                    data = response.read()
            except OSError as error:
                raise CollectionError(f"cannot fetch {url}: {error}; put a copy at {target}") from error
            target.parent.mkdir(parents=True, exist_ok=True)
            temporary = target.with_name(f"{target.name}.{os.getpid()}.part")
            temporary.write_bytes(data)
            temporary.replace(target)
        if hashlib.sha256(target.read_bytes()).hexdigest() != checksum:
            raise CollectionError(f"{target} is not the expected file: its SHA-256 is not {checksum}")
        return target


_UNKNOWN = "none stated; published for research"
SOURCES: dict[str, Source] = {
    "cisi": Source(
        "B-F0X/Information-Retrieval",
        "eb7e079da6e77fc7a2c37a01529e52c0cadd533d",
        _UNKNOWN,
        [
            ("cisi/CISI.ALL", "1d5c2e05d8addf494b70027ad3605fec6e2d8506c087a6b834dff1862c1fe67b"),
            ("cisi/CISI.QRY", "f8698eef02636523c61ec9b04b02a23d3bf6574688e08ab3de58e80820dd0f46"),
            ("cisi/CISI.REL", "deb203a0dc07628d14dbcbc9a9803bf3c1f86e855570edb29d907663de8d6ea9"),
        ],
        lambda files: read_smart("cisi", *files),
    ),
    "cranfield": Source(
        "noramtboraas/information-retrieval",
        "4ea1b8e02da1db64b68b0364d50620b3c95528dc",
        _UNKNOWN,
        [
            ("cran.all.1400", "fbb8935a93263ab6c9fadefb507fd7cd5e101e7fbeb31c12e6bff6dd501315e8"),
            ("cran.qry", "99578ceb88941ef89c14faf7c63c23776a376d8fba319b990f01d0c601d8b03f"),
            ("cranqrel", "a90f56082cd44db70bf2c21ebca39a1a34e37c82ccb5ddf1bcc64f18795234c7"),
        ],
        lambda files: read_smart("cranfield", *files, by_order=True),
    ),
    "medline": Source(
        "lailaglez/belief-network-irs",
        "9094e4cde738bd93ed1747dc958b5acb0e0fa684",
        _UNKNOWN,
        [
            ("med/MED.ALL", "fdcd99cf7fc6c45707c9b5bef7daac739f06c4063ebcad9b5cccf2f939fa4236"),
            ("med/MED.QRY", "41fbc9d7a0ac8620d53e09b3429d2695cecc63d4bf7e15e55bbcee0785a1798c"),
            ("med/MED.REL", "9bbcf3b73afc8b0f54362b516f323e52ab3c4147d146dedeb18fdba01f0a4288"),
        ],
        lambda files: read_smart("medline", *files),
    ),
    "cacm": Source(
        "kavinsan/Information-Retrieval-Project",
        "feda4806b8d19af85753c580640d40e572f99339",
        _UNKNOWN,
        [
            ("cacm.all", "0d0eaa9e54987161482a217dcef670a8032d687b1bbe84ba0a8e310b675bd52f"),
            ("query.text", "2fe81273fd7db3beccad1090c84630dea561469b7c19ad03e71370c8c7399cc9"),
            ("qrels.text", "da4202b0c70cad7d91c9a028eaf8cbd0a4ca981ebdc3955eb75ba7b6de6f185c"),
        ],
        lambda files: read_smart("cacm", *files),
    ),
    "npl": Source(
        "stefreschke/Information-Retrieval",
        "ec84884f012ae2c655004f1025753381bef27adb",
        _UNKNOWN,
        [
            ("npl/doc-text", "a69b907bdbf59e43b8004e521eb3560dbbaa9cd5facfad4b30b0392434ba18e4"),
            ("npl/query-text", "0f5e9a179334183cc3b04fe24d9bdfc3f656b08330e6798d8df5dc621bf8e6d5"),
            ("npl/rlv-ass", "1af78732abed49055218c1548c27cfa354c5d02a9b6c9cb854b9d0b74fcce24c"),
        ],
        lambda files: read_npl("npl", *files),
    ),
    "cmrc2018": Source(
        "ymcui/cmrc2018",
        "c0eb1b6ba219847457e6af3180da722bbeb656af",
        "CC BY-SA 4.0",
        [
            ("squad-style-data/cmrc2018_dev.json", "e9ff74231f05c230c6fa88b84441ee334d97234cbb610991cd94b82db00c7f1f"),
        ],
        partial(read_squad, "cmrc2018", "zh"),
    ),
    "jaquad": Source(
        "SkelterLabsInc/JaQuAD",
        "23f5d72cc273c49b35e2d9efe0f51757aa1770bd",
        "CC BY-SA 3.0",
        [
            ("data/dev/jaquad_dev_0000.json", "8712bc34623c6fec856f170ff0b8566421c3c261752b1797b94938f48c1f7bc4"),
            ("data/dev/jaquad_dev_0001.json", "6d777275f61b0250eb2d8f595bf6c602afecb7b7406e7c0c9c3b9d763027068d"),
            ("data/dev/jaquad_dev_0002.json", "b9c6cc23e5ae647eba6286189bac293a16a28b01ca707e1dc956bfcb13a04389"),
            ("data/dev/jaquad_dev_0003.json", "041fe1fdcb32d95974afaae0fb151aed8ee9394889349bb0b5a1c921391cb1d0"),
        ],
        partial(read_squad, "jaquad", "ja"),
    ),
    "jsquad": Source(
        "yahoojapan/JGLUE",
        "6f071c09316baae89c3d083a90985b4b1cb9968c",
        "CC BY-SA 4.0",
        [
            (
                "datasets/jsquad-v1.3/valid-v1.3.json",
                "fb0a57a35281ff03bbe7f0e878cff5b577985fbe6fcb242e7e8ddb63d1c0ab11",
            ),
        ],
        partial(read_squad, "jsquad", "ja"),
    ),
    "korquad": Source(
        "korquad/korquad.github.io",
        "61d7d6682948375dd8f06ef27e788fd19982af38",
        "CC BY-ND 2.0 KR",
        [
            ("dataset/KorQuAD_v1.0_dev.json", "25ffeb51e6c51ec02c071b60a10188e10005c144110f0d876b26079d80a35bdf"),
        ],
        partial(read_squad, "korquad", "ko"),
    ),
    "persianqa": Source(
        "sajjjadayobi/PersianQA",
        "ba4806eb7894b1e78e214e16e7e717840c129450",
        "GPL-3.0",
        [
            ("dataset/pqa_test.json", "99f5cd13d25bf0696d3a841bd3e764841fcf0684b5919f81cd875db9d74b14a2"),
        ],
        partial(read_squad, "persianqa", "fa"),
    ),
    "faquad": Source(
        "liafacom/faquad",
        "6ad978f20672bb41625b3b71fbe4a88b893d0a86",
        "CC BY 4.0",
        [
            ("data/dataset.json", "bd515d8890a9ff02a50aeb07ce76be408be54e9e384ce989caec1045a8e04588"),
        ],
        partial(read_squad, "faquad", "pt"),
    ),
    "squad-it": Source(
        "crux82/squad-it",
        "86a19baebed654d07c4e790c07d39a02ceb6b15f",
        "CC BY-SA 4.0",
        [
            ("SQuAD_it-test.json.gz", "25986c617cc7d58e82e916755b8a5684e5efae69835332858a6534a304cd293c"),
        ],
        partial(read_squad, "squad-it", "it"),
    ),
    "squad-sv": Source(
        "susumu2357/SQuAD_v2_sv",
        "4bbd3fd1402798c16dfb08ccc3bb49bd445cce95",
        "Apache-2.0",
        [
            ("squad_dev_v2_sv.json.gz", "6d00adbe88ce07cea97a8bf784b5426dc36302bcf3f79302fcae054ad1017260"),
        ],
        partial(read_squad, "squad-sv", "sv"),
    ),
    "arcd": Source(
        "husseinmozannar/SOQAL",
        "1229d34aa2b7a0b9a2e4858c9268e68f45d7e3c4",
        "MIT",
        [
            ("data/arcd.json", "9d17bd7a4830dbcc12d4b042974138650cc69ee576c6e991050120448cd07633"),
        ],
        partial(read_squad, "arcd", "ar"),
    ),
    "xquad-en": Source(
        "deepmind/xquad",
        "60cac411649156efb6aab9dd4c9cde787a2c0345",
        "CC BY-SA 4.0",
        [
            ("xquad.en.json", "e4c57d1c9143aaa1c5d265ba5987a65f4e69528d2a98f29d6e75019b10344f29"),
        ],
        partial(read_squad, "xquad-en", "en", titles=False),
    ),
    "xquad-de": Source(
        "deepmind/xquad",
        "60cac411649156efb6aab9dd4c9cde787a2c0345",
        "CC BY-SA 4.0",
        [
            ("xquad.de.json", "990b5d746746ed65ed4702ea5f35f99ffa4e2f1c390c07d003642acd937916f9"),
        ],
        partial(read_squad, "xquad-de", "de", titles=False),
    ),
    "xquad-ru": Source(
        "deepmind/xquad",
        "60cac411649156efb6aab9dd4c9cde787a2c0345",
        "CC BY-SA 4.0",
        [
            ("xquad.ru.json", "208d5b1aa154c52b1b5c5eda16281e455e8fd198cdb9af3f469f0d6037d973bf"),
        ],
        partial(read_squad, "xquad-ru", "ru", titles=False),
    ),
    "xquad-es": Source(
        "deepmind/xquad",
        "60cac411649156efb6aab9dd4c9cde787a2c0345",
        "CC BY-SA 4.0",
        [
            ("xquad.es.json", "dcbae93ec3a9f4b9e78fd834a171d6f96c1a875e10e15b7530b7e4ef4971e37e"),
        ],
        partial(read_squad, "xquad-es", "es", titles=False),
    ),
    "xquad-ar": Source(
        "deepmind/xquad",
        "60cac411649156efb6aab9dd4c9cde787a2c0345",
        "CC BY-SA 4.0",
        [
            ("xquad.ar.json", "abdabd7afed5c635d99cca0f3f0d0c9d9ed0bc77451e963c2e4e0638c29e486d"),
        ],
        partial(read_squad, "xquad-ar", "ar", titles=False),
    ),
    "xquad-zh": Source(
        "deepmind/xquad",
        "60cac411649156efb6aab9dd4c9cde787a2c0345",
        "CC BY-SA 4.0",
        [
            ("xquad.zh.json", "691d0b3359bc6b8faa8de931dfdfe21d50a65861ae348e32a0d1a0190b0c8835"),
        ],
        partial(read_squad, "xquad-zh", "zh", titles=False),
    ),
    "xquad-tr": Source(
        "deepmind/xquad",
        "60cac411649156efb6aab9dd4c9cde787a2c0345",
        "CC BY-SA 4.0",
        [
            ("xquad.tr.json", "92179a564774b7696100d144c1e10870d0a966b6fccbdd254a65b9d2ab1971cc"),
        ],
        partial(read_squad, "xquad-tr", "tr", titles=False),
    ),
    "xquad-vi": Source(
        "deepmind/xquad",
        "60cac411649156efb6aab9dd4c9cde787a2c0345",
        "CC BY-SA 4.0",
        [
            ("xquad.vi.json", "f619a1eb11fb42d3ab0834259e488a65f585447ef6154437bfb7199d85161a04"),
        ],
        partial(read_squad, "xquad-vi", "vi", titles=False),
    ),
    "xquad-th": Source(
        "deepmind/xquad",
        "60cac411649156efb6aab9dd4c9cde787a2c0345",
        "CC BY-SA 4.0",
        [
            ("xquad.th.json", "5cdda11d0e1e075f7872abf4e6ae830388ce7f617964d542308e9ae4257e0f43"),
        ],
        partial(read_squad, "xquad-th", "th", titles=False),
    ),
    "xquad-hi": Source(
        "deepmind/xquad",
        "60cac411649156efb6aab9dd4c9cde787a2c0345",
        "CC BY-SA 4.0",
        [
            ("xquad.hi.json", "df2cce3532b37e9beb8979704b5c9a4bf874358f105395a298b89427b43b9d24"),
        ],
        partial(read_squad, "xquad-hi", "hi", titles=False),
    ),
    "xquad-el": Source(
        "deepmind/xquad",
        "60cac411649156efb6aab9dd4c9cde787a2c0345",
        "CC BY-SA 4.0",
        [
            ("xquad.el.json", "821cf0f88e73fa258fd2f548b19b6ec39f7025059e16f6f9fc8cd797c9c3663e"),
        ],
        partial(read_squad, "xquad-el", "el", titles=False),
    ),
    "xquad-ro": Source(
        "deepmind/xquad",
        "60cac411649156efb6aab9dd4c9cde787a2c0345",
        "CC BY-SA 4.0",
        [
            ("xquad.ro.json", "94f8d54e93ad2b7dd2e76dd921a666b5b8eff2d4379df9f179c42b445f09643f"),
        ],
        partial(read_squad, "xquad-ro", "ro", titles=False),
    ),
}
"""The SMART collections are copies of those of the University of Glasgow's Information Retrieval Group."""


def load(name: str, folder: Path) -> JudgedCollection:
    """Return a collection by name from its files in a folder; raise CollectionError if it cannot be had."""
    source = SOURCES[name]
    return source.read(source.fetch(folder))
