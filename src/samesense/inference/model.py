"""A saved model in three lines of Python: load, encode, compare."""

from __future__ import annotations

from collections.abc import Sequence

from sentence_transformers import SentenceTransformer

from samesense.encoder.build import build
from samesense.encoder.cosine import cosine_score
from samesense.encoder.encode import as_encode, encode
from samesense.types import Embeddings, Pair, Precision, Scores


class Model:
    """An encoder ready for use.

    Example:
        >>> model = load("default")  # doctest: +SKIP
        >>> model.similarity("A man is eating.", "Someone has a meal.")  # doctest: +SKIP
        0.60
    """

    def __init__(self, encoder: SentenceTransformer, *, precision: Precision = "auto") -> None:
        self.encoder = encoder
        self.precision = precision

    def encode(self, texts: Sequence[str], *, normalize: bool = False) -> Embeddings:
        """Return the embeddings of ``texts``, float32 ``(texts, dim)``, in order."""
        return encode(self.encoder, texts, precision=self.precision, normalize=normalize)

    def scores(self, pairs: Sequence[Pair]) -> Scores:
        """Return the cosine of each pair, ``(pairs,)``, in [-1, 1]; each distinct text is encoded once."""
        return cosine_score(as_encode(self.encoder, precision=self.precision))(pairs)

    def similarity(self, text1: str, text2: str) -> float:
        """Return the cosine of two texts, in [-1, 1]."""
        return float(self.scores([(text1, text2)])[0])


def load(name: str = "default", *, precision: Precision = "auto", device: str | None = None) -> Model:
    """Open a model: a folder, the output of ``samesense train``, a hub name, or ``"default"``.

    Raises:
        ModelError: if there is no such model.
        MissingExtraError: if the default is asked for and its package is not installed.
    """
    return Model(build(name, device=device), precision=precision)
