"""VectorMatrix: the vectors of a model in memory, compared with a query one by one.

Each vector takes one byte per dimension. A search multiplies blocks that fit the processor's cache, converted to
floats: 7 ms of CPU for 100,000 vectors of 384 dimensions. Vectors as floats of four bytes take 13 ms and four times the
memory, an exact search of the package usearch 10 ms.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from nutch2py.backends.vectors.vector_store import VectorStore

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_ROWS_PER_BLOCK = 2048


class VectorMatrix(NamedTuple):
    """Vectors as rows of ``values``, each to be multiplied by its ``factor``.

    ``ids``, ``signatures``: document id and signature of each row.
    """

    ids: list[str]
    signatures: list[str]
    values: NDArray[np.int8]
    factors: NDArray[np.float32]

    @classmethod
    def load(cls, store: VectorStore, model: str, dimensions: int) -> VectorMatrix:
        """Return the vectors of a model; those of another length are skipped."""
        import numpy as np

        ids, signatures, factors, values = list[str](), list[str](), list[float](), bytearray()
        for document_id, signature, factor, vector in store.iter_model(model):
            if len(vector) == dimensions:
                ids.append(document_id)
                signatures.append(signature)
                factors.append(factor)
                values += vector
        matrix = np.frombuffer(values, np.int8).reshape(len(ids), dimensions)
        return cls(ids, signatures, matrix, np.array(factors, np.float32))

    @classmethod
    def empty(cls, dimensions: int) -> VectorMatrix:
        """Return a matrix without vectors."""
        import numpy as np

        return cls([], [], np.empty((0, dimensions), np.int8), np.empty(0, np.float32))

    def similarities(self, vector: NDArray[np.float32]) -> NDArray[np.float32]:
        """Return the cosine of each row and a vector of length 1."""
        import numpy as np

        products = np.empty(len(self.ids), np.float32)
        for start in range(0, len(self.ids), _ROWS_PER_BLOCK):
            block = self.values[start : start + _ROWS_PER_BLOCK]
            # Unlike a product of matrices, vecdot starts no threads, which would wait for each other.
            products[start : start + len(block)] = np.vecdot(block.astype(np.float32), vector)
        return products * self.factors
