"""A saved model in use: encode, compare."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from samesense.encoder.cosine import cosine_score
from samesense.errors import ModelError
from samesense.execution.threads import torch_threads
from samesense.inference.models.backends import Choice
from samesense.inference.models.deterministic import encode_alone
from samesense.inference.onnx.encoder import OnnxEncoder
from samesense.types import Embeddings, Pair, Precision, Score, Scores

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer

    from samesense.inference.calibration.calibration import Calibration


class Model:
    """An encoder ready for use, or a cross-encoder, which scores pairs and has no embeddings.

    Attributes:
        precision: arithmetic of torch.
        choice: what computes and why it was taken; ``None`` where there was nothing to choose.
        home: name it was opened by, and the file of its calibration if it is not in its folder; ``None`` in memory.

    Example:
        >>> model = load("default")  # doctest: +SKIP
        >>> model.similarity("A man is eating.", "Someone has a meal.")  # doctest: +SKIP
        0.60
    """

    def __init__(
        self,
        encoder: SentenceTransformer | OnnxEncoder | None,
        *,
        score: Score | None = None,
        precision: Precision = "auto",
        deterministic: bool = False,
        choice: Choice | None = None,
        threads: int | None = None,
    ) -> None:
        """Take an encoder of either kind, or the score of a cross-encoder."""
        self._encoder = encoder
        self._score = cosine_score(self.encode) if score is None else score
        self._deterministic = deterministic
        self._threads = threads
        self.home: tuple[str, Path | None] | None = None
        self.precision = precision
        self.choice = choice

    @property
    def encoder(self) -> SentenceTransformer:
        """The encoder as a sentence-transformers model.

        Raises:
            ModelError: for a cross-encoder, or where the model runs without torch.
        """
        if isinstance(self._encoder, OnnxEncoder):
            raise ModelError(
                f"This needs the model in torch, and {self._encoder.folder} was opened by the backend "
                f"{self._encoder.name}. Open it with the backend torch, or give the model it was exported from."
            )
        return self._embedder

    @property
    def onnx(self) -> OnnxEncoder | None:
        """The encoder that runs without torch, if it is one."""
        return self._encoder if isinstance(self._encoder, OnnxEncoder) else None

    @property
    def _embedder(self) -> SentenceTransformer:
        if self._encoder is None or isinstance(self._encoder, OnnxEncoder):
            raise ModelError(
                "A cross-encoder reads both texts of a pair together and has no embeddings. Score pairs with it "
                "(similarity, evaluate, rerank), or encode with another model."
            )
        return self._encoder

    def encode(
        self, texts: Sequence[str], *, normalize: bool = False, on_progress: Callable[[int], None] | None = None
    ) -> Embeddings:
        """Return the embeddings of ``texts``, float32 ``(texts, dim)``, in order.

        Args:
            texts: any number of strings; equal ones are computed once.
            normalize: scale every row to unit length.
            on_progress: called with the number of texts that have just been finished.

        Raises:
            ModelError: for a cross-encoder, or if a text is not a string.
        """
        if isinstance(self._encoder, OnnxEncoder):
            return self._encoder.encode(texts, normalize=normalize, on_progress=on_progress)
        encoder = self.encoder
        if self._deterministic:
            return encode_alone(encoder, texts, precision=self.precision, normalize=normalize, on_progress=on_progress)
        from samesense.encoder.encode import encode

        with torch_threads(self._threads):
            return encode(encoder, texts, precision=self.precision, normalize=normalize, on_progress=on_progress)

    @cached_property
    def calibration(self) -> Calibration:
        """What the model's scores mean, as fitted by ``samesense calibrate``.

        Raises:
            ModelError: if there is none, or it is that of other weights.
        """
        if self.home is None:
            raise ModelError(
                "A calibration is kept beside a model, and this one is in memory only. Save it, calibrate it, and load "
                "it by its name."
            )
        from samesense.inference.calibration.storage import read_of

        return read_of(*self.home)

    def scores(self, pairs: Sequence[Pair], *, calibrated: bool = False) -> Scores:
        """Return the cosine of each pair, in [-1, 1], or the cross-encoder's score, ``(pairs,)``.

        Each distinct text is encoded once.

        Args:
            pairs: any number of pairs of texts.
            calibrated: give values on the scale of the labels that the model was calibrated on.

        Raises:
            ModelError: if calibrated values are asked for and there is no calibration.
        """
        if calibrated:
            return self.calibration.apply(self._score(pairs))
        return self._score(pairs)

    def similarity(self, text1: str, text2: str, *, calibrated: bool = False) -> float:
        """Return the score of two texts; see :meth:`scores`."""
        return float(self.scores([(text1, text2)], calibrated=calibrated)[0])
