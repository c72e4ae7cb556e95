"""Opens the encoder that ``index.encoder`` names, and normalizes its vectors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from nutch2py.conf.configuration import Configuration
from nutch2py.errors import ConfigurationError, IndexingError, NutchError
from nutch2py.interfaces import Encoder
from nutch2py.plugins.loading import create_named_plugin
from nutch2py.plugins.plugin_failures import describe_exception

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

ENCODER_PROPERTY = "index.encoder"


class TextEncoder:
    """An encoder plug-in, with vectors of length 1; a text that it cannot place has a vector of zeros."""

    def __init__(self, name: str, encoder: Encoder) -> None:
        self.name, self._encoder = name, encoder
        self.model, self.dimensions = encoder.model, encoder.dimensions
        self.languages, self.min_similarity = encoder.languages, encoder.min_similarity

    def encode(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return the vectors of texts, one row each."""
        return self._call(lambda: self._encoder.encode(texts), len(texts))

    def encode_query(self, query: str) -> NDArray[np.float32]:
        """Return the vector of a query."""
        vector: NDArray[np.float32] = self._call(lambda: [self._encoder.encode_query(query)], 1)[0]
        return vector

    def _call(self, make_vectors: Callable[[], Any], count: int) -> NDArray[np.float32]:
        import numpy as np

        try:
            vectors = np.asarray(make_vectors(), np.float32)
        except (NutchError, MemoryError):
            raise
        except Exception as error:
            raise IndexingError(f"plug-in {self.name} failed when it encodes: {describe_exception(error)}") from error
        if vectors.shape != (count, self.dimensions):
            raise IndexingError(
                f"plug-in {self.name} returned vectors of shape {vectors.shape} instead of {(count, self.dimensions)}: "
                "correct the plug-in"
            )
        vectors = np.nan_to_num(vectors, posinf=0.0, neginf=0.0)
        lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
        normalized: NDArray[np.float32] = vectors / np.maximum(lengths, np.float32(1e-12))
        return normalized


def require_no_encoder(conf: Configuration, server_name: str) -> None:
    """Raise ConfigurationError when an encoder is configured for a server that is searched by words alone."""
    if conf.get_trimmed(ENCODER_PROPERTY):
        raise ConfigurationError(
            f"{ENCODER_PROPERTY} is set, but {server_name} has no hybrid search here: use the embedded index, or leave "
            f"{ENCODER_PROPERTY} empty"
        )


def open_encoder(conf: Configuration) -> TextEncoder | None:
    """Return the encoder that ``index.encoder`` names; None when it is empty, as by default.

    Raises:
        ConfigurationError: No plug-in has that name, or it lacks a package or a model.

    """
    name = conf.get_trimmed(ENCODER_PROPERTY)
    return TextEncoder(name, create_named_plugin(conf, "encoder", name)) if name else None
