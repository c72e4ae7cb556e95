"""Encoders: the built-in model, models by property, and the vectors that a searcher gets."""

from __future__ import annotations

import json
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar

import numpy as np
import pytest
from numpy.typing import NDArray

from nutch2py.backends.encoders.encoder_selection import TextEncoder, open_encoder
from nutch2py.backends.encoders.onnx_encoder import OnnxEncoder
from nutch2py.backends.encoders.word_piece_tokenizer import WordPieceTokenizer
from nutch2py.conf.configuration import Configuration
from nutch2py.errors import ConfigurationError, IndexingError
from nutch2py.interfaces import Encoder
from tests.backends.encoders import built_in_model, built_in_vocabulary

TEXTS = {
    "Hello, World! don't stop": [101, 7592, 1010, 2088, 999, 2123, 1005, 1056, 2644, 102],
    "naïve café Ångström": [101, 15743, 7668, 17076, 15687, 102],
    "北京 a最b": [101, 1781, 1755, 1037, 100, 1038, 102],
    "a\u200bb\u00adcd\x00e\tf": [101, 5925, 3207, 1042, 102],
    "": [101, 102],
}
"""Texts with the tokens that the model's own tokenizer gives, of the package tokenizers."""


@pytest.fixture(scope="module")
def tokenizer() -> WordPieceTokenizer:
    return WordPieceTokenizer(built_in_vocabulary())


@pytest.mark.parametrize("text", TEXTS)
def test_tokens_are_those_of_the_models_own_tokenizer(text: str, tokenizer: WordPieceTokenizer) -> None:
    assert tokenizer.encode(text, 512) == TEXTS[text]


def test_tokens_of_a_huge_text_are_limited(tokenizer: WordPieceTokenizer) -> None:
    for text in ("word " * 300_000, "é" * 1_500_000, "中" * 1_000_000, "x" * 1_000_000):
        ids = tokenizer.encode(text, 64)
        assert len(ids) <= 64
        assert ids[-1] == 102


def test_built_in_encoder_places_similar_texts_near(conf: Configuration) -> None:
    conf.set("index.encoder", "encoder-onnx")
    encoder = open_encoder(conf)
    assert encoder is not None
    texts = [
        "How to mend a car",
        "Repairing automobiles",
        "Recipes for noodle soup",
        "",
        "x" * 100_000,
        "汽车 машина سيارة",
    ]
    vectors = encoder.encode(texts)
    assert vectors.shape == (6, 384)
    assert np.allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-5)
    assert vectors[0] @ vectors[1] > 0.5 > 0.3 > vectors[0] @ vectors[2]
    assert np.allclose(vectors[0], encoder.encode(texts[:1])[0], atol=0.05)  # whatever else is in the batch


def test_no_encoder_by_default(conf: Configuration) -> None:
    assert open_encoder(conf) is None


def model_folder(folder: Path) -> Path:
    folder.mkdir(exist_ok=True)
    shutil.copy(built_in_model(), folder / "model.onnx")
    shutil.copy(built_in_vocabulary(), folder / "vocab.txt")
    return folder


def test_model_of_a_directory_is_used(conf: Configuration, tmp_path: Path) -> None:
    built_in = OnnxEncoder(conf)
    conf.set("index.encoder.model", str(model_folder(tmp_path / "mine")))
    own = OnnxEncoder(conf)
    assert (own.model.split()[0], own.dimensions, own.languages) == ("mine", 384, frozenset())
    assert own.model.split()[1] == built_in.model.split()[1]  # the digest of the same weights
    assert np.allclose(own.encode(["a text"]), built_in.encode(["a text"]))
    (tmp_path / "mine" / "1_Pooling").mkdir()
    (tmp_path / "mine" / "1_Pooling" / "config.json").write_text(json.dumps({"pooling_mode_cls_token": True}))
    assert not np.allclose(OnnxEncoder(conf).encode(["a text"]), built_in.encode(["a text"]))


def test_damaged_model_is_named_in_error(conf: Configuration, tmp_path: Path) -> None:
    folder = model_folder(tmp_path / "mine")
    conf.set("index.encoder.model", str(folder))
    cases = {
        "model.onnx": (b"no model", "cannot load the model .*model.onnx"),
        "vocab.txt": (b"one\ntwo\n", r"is not a vocabulary of BERT, it lacks \[UNK\] and \[CLS\]"),
    }
    for name, (content, message) in cases.items():
        before = (folder / name).read_bytes()
        (folder / name).write_bytes(content)
        with pytest.raises(ConfigurationError, match=message):
            OnnxEncoder(conf)
        (folder / name).write_bytes(before)
    (folder / "vocab.txt").unlink()
    with pytest.raises(ConfigurationError, match=r"it needs model.onnx or onnx/model.onnx, and tokenizer.json"):
        OnnxEncoder(conf)


def test_missing_model_directory_is_named_in_error(conf: Configuration) -> None:
    conf.set("index.encoder.model", "/no/such/folder")
    with pytest.raises(ConfigurationError, match=r"index.encoder.model is /no/such/folder: no such directory"):
        OnnxEncoder(conf)


def test_unknown_encoder_is_named_in_error(conf: Configuration) -> None:
    conf.set("index.encoder", "encoder-none")
    with pytest.raises(
        ConfigurationError, match=r"no plug-in of encoder is called encoder-none: known are encoder-onnx"
    ):
        open_encoder(conf)


class ScriptedEncoder(Encoder):
    """Returns given vectors."""

    model = "test"
    dimensions = 2
    made: ClassVar[object] = None

    def encode(self, texts: Sequence[str]) -> NDArray[np.float32]:
        if isinstance(self.made, Exception):
            raise self.made
        return self.made  # type: ignore[return-value]


@pytest.mark.parametrize(
    ("made", "message"),
    [
        (ValueError("no"), "plug-in test failed when it encodes: ValueError: no"),
        ([[1.0]], "returned vectors of shape .1, 1. instead of .1, 2."),
        ([[1.0, 0.0], [1.0, 0.0]], "returned vectors of shape"),
    ],
)
def test_failing_encoder_is_named_in_error(made: object, message: str, conf: Configuration) -> None:
    ScriptedEncoder.made = made
    with pytest.raises(IndexingError, match=message):
        TextEncoder("test", ScriptedEncoder(conf)).encode(["text"])


def test_vectors_without_direction_are_zero(conf: Configuration) -> None:
    ScriptedEncoder.made = [[0.0, 0.0]]
    assert not TextEncoder("test", ScriptedEncoder(conf)).encode(["text"]).any()
    ScriptedEncoder.made = [[float("nan"), 2.0]]
    assert TextEncoder("test", ScriptedEncoder(conf)).encode(["text"]).tolist() == [[0.0, 1.0]]
