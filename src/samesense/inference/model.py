"""A saved model in three lines of Python: load, encode, compare."""

from __future__ import annotations

from collections.abc import Sequence

from sentence_transformers import SentenceTransformer

from samesense.encoder import build as encoders
from samesense.encoder.cosine import cosine_score
from samesense.encoder.cross import is_cross_encoder, open_cross_encoder
from samesense.encoder.encode import as_encode, encode
from samesense.errors import ModelError
from samesense.types import Embeddings, Pair, Precision, Score, Scores


class Model:
    """An encoder ready for use, or a cross-encoder, which scores pairs and has no embeddings.

    Example:
        >>> model = load("default")  # doctest: +SKIP
        >>> model.similarity("A man is eating.", "Someone has a meal.")  # doctest: +SKIP
        0.60
    """

    def __init__(
        self, encoder: SentenceTransformer | None, *, score: Score | None = None, precision: Precision = "auto"
    ) -> None:
        """Take an encoder, or the score of a cross-encoder."""
        self._encoder = encoder
        self._score = cosine_score(as_encode(encoder, precision=precision)) if score is None else score
        self.precision = precision

    @property
    def encoder(self) -> SentenceTransformer:
        """The encoder.

        Raises:
            ModelError: for a cross-encoder.
        """
        if self._encoder is None:
            raise ModelError(
                "A cross-encoder reads both texts of a pair together and has no embeddings. Score pairs with it "
                "(similarity, evaluate, rerank), or encode with another model."
            )
        return self._encoder

    def encode(self, texts: Sequence[str], *, normalize: bool = False) -> Embeddings:
        """Return the embeddings of ``texts``, float32 ``(texts, dim)``, in order.

        Raises:
            ModelError: for a cross-encoder.
        """
        return encode(self.encoder, texts, precision=self.precision, normalize=normalize)

    def scores(self, pairs: Sequence[Pair]) -> Scores:
        """Return the cosine of each pair, in [-1, 1], or the cross-encoder's score, ``(pairs,)``.

        Each distinct text is encoded once.
        """
        return self._score(pairs)

    def similarity(self, text1: str, text2: str) -> float:
        """Return the score of two texts."""
        return float(self.scores([(text1, text2)])[0])


def load(name: str = "default", *, precision: Precision = "auto", device: str | None = None) -> Model:
    """Open a model: a folder, the output of ``samesense train``, a hub name, or ``"default"``.

    Raises:
        ModelError: if there is no such model.
        MissingExtraError: if the default is asked for and its package is not installed.
    """
    source = encoders.resolve(name)
    if is_cross_encoder(source):
        score, _ = open_cross_encoder(source, precision=precision, device=device)
        return Model(None, score=score, precision=precision)
    return Model(encoders.build(name, device=device), precision=precision)
