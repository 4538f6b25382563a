"""A model for inference: it scores pairs of texts, and encodes texts if it has embeddings."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from samesense.choices import check_choice
from samesense.data.conventions.texts import text_problem
from samesense.encoder.cosine import cosine_score, unit
from samesense.encoder.embedding_cache import EmbeddingCache
from samesense.encoder.windows import Reading, Windows, cut_into_windows, find_unread
from samesense.errors import DataError, ModelError
from samesense.execution.audience import requested_progress
from samesense.execution.unread import note
from samesense.inference.calibration.storage import read_of
from samesense.inference.models.backends import Choice
from samesense.inference.onnx.graph_encoder import GraphEncoder
from samesense.inference.onnx.token_encoder import TokenEncoder
from samesense.types import Embeddings, Encode, Pair, Score, Scores, TaskName

if TYPE_CHECKING:
    from sentence_transformers import CrossEncoder, SentenceTransformer

    from samesense.inference.calibration.calibration import Calibration


class Encoder(Protocol):
    """Computes embeddings, by torch, onnxruntime, OpenVINO, NumPy, or a function."""

    @property
    def name(self) -> str:
        """Name of the backend, or ``""`` for a function."""

    @property
    def protocol(self) -> str:
        """Everything that changes a figure, in words."""

    @property
    def identity(self) -> str:
        """A text that only encoders with the same vectors share."""

    def encode(
        self,
        texts: Sequence[str],
        *,
        normalize: bool = False,
        on_progress: Callable[[int], None] | None = None,
        task: TaskName | None = None,
    ) -> Embeddings:
        """Return the embeddings; see :meth:`Model.encode`."""


class Model:
    """A model; :func:`~samesense.inference.models.load.load` returns one.

    Attributes:
        name: name of the model in results.
        seed: seed of the training run, if known.
        choice: the chosen backend and the reason; ``None`` if there was no choice.
        cross_encoder: the CrossEncoder behind the scores, if there is one.
        home: name it was opened by, and the file of its calibration unless that is in its folder, with absolute paths;
            ``None`` in memory, and if it was opened with another prompt or pooling than its folder has.
        reopen: opens a model again that cannot be pickled, such as an Origin with its files; ``None`` for others.
        explainer: explains the score of two texts by the ``top`` of the model's own words or contexts, as an Origin
            does; ``None`` for others.

    Example:
        >>> model = load("default")  # doctest: +SKIP
        >>> model.similarity("A man is eating.", "Someone has a meal.")  # doctest: +SKIP
        0.60
    """

    def __init__(
        self,
        encoder: Encoder | None = None,
        *,
        score: Score | None = None,
        name: str = "",
        protocol: str = "",
        seed: int | None = None,
        choice: Choice | None = None,
        cross_encoder: CrossEncoder | None = None,
    ) -> None:
        """Create a model from an ``encoder``, a ``score`` (pairs in, scores out), or both.

        Without an encoder it only scores, as a cross-encoder does; without a score it scores by the cosine of
        embeddings. ``protocol`` is that of the encoder unless given.
        """
        self._encoder = encoder
        self._pair_score = score
        self._caches: dict[TaskName | None, EmbeddingCache] | None = None
        self.name = name
        self.seed = seed
        self.choice = choice
        self.cross_encoder = cross_encoder
        self._protocol = protocol
        self.home: tuple[str, Path | None] | None = None
        self.reopen: Callable[[], Model] | None = None
        self.explainer: Callable[..., Any] | None = None
        self._cache_folder: Path | None = None

    def __repr__(self) -> str:
        """Return name, kind, dimensions, maximum length, device and backend."""
        fields = {"name": repr(self.name), **self._description()}
        return f"Model({', '.join(f'{key}={value}' for key, value in fields.items())})"

    def _description(self) -> dict[str, Any]:
        if isinstance(self._encoder, TokenEncoder):
            description = self._encoder.description
            return {
                "kind": "bi-encoder" if self.exported is None else "exported",
                "dimensions": description.dim,
                "max_seq_length": description.max_tokens,
                "device": "cpu",
                "backend": self.backend,
            }
        model: Any = self.cross_encoder or getattr(self._encoder, "sentence_transformer", None)
        if model is None:
            return {"kind": "function" if self.embeds else "score", "protocol": repr(self.protocol)}
        longest = model.max_seq_length if isinstance(model.max_seq_length, int) else None
        if self.cross_encoder is not None:
            return {"kind": "cross-encoder", "max_seq_length": longest, "device": str(model.device)}
        return {
            "kind": "bi-encoder",
            "dimensions": model.get_embedding_dimension(),
            "max_seq_length": longest,
            "device": str(model.device),
            "backend": self.backend,
        }

    def __copy__(self) -> Model:
        """Return a copy that shares the encoder, and has its own attributes."""
        # Otherwise copy would go through __getstate__, which leaves the caches out.
        copied = type(self).__new__(type(self))
        copied.__dict__.update(self.__dict__)
        return copied

    def __sklearn_clone__(self) -> Model:
        """Return itself: scikit-learn clones estimators to fit them again, and this model is fitted."""
        return self

    def __getstate__(self) -> dict[str, Any]:
        """Return the state to pickle: with weights, without caches, and without what :attr:`reopen` opens again."""
        state = dict(self.__dict__)
        if self.reopen is not None:
            state.update(_encoder=None, _pair_score=None, explainer=None)
        state["_caches"] = None
        state["remembers"] = self._caches is not None
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        remembers = state.pop("remembers")
        self.__dict__.update(state)
        if self.reopen is not None:
            reopened = self.reopen()
            self._encoder = reopened._encoder
            self._pair_score = reopened._pair_score
            self.explainer = reopened.explainer
        # Caches hold the encoder, which is another object by now.
        if remembers:
            self.remember(self._cache_folder)

    @property
    def _score(self) -> Score:
        if self._pair_score is not None:
            return self._pair_score
        return cosine_score(self.encode)

    @property
    def embeds(self) -> bool:
        """Whether the model has embeddings; a cross-encoder has none."""
        return self._encoder is not None

    @property
    def protocol(self) -> str:
        """Everything that changes a figure, in words."""
        return self._protocol or self._embedder.protocol

    @property
    def identity(self) -> str:
        """A text that only models with the same vectors share; for caches.

        Raises:
            ModelError: for a model without embeddings.
            ConfigError: for a function, which may change between runs.
        """
        return self._embedder.identity

    @property
    def backend(self) -> str:
        """Backend of the embeddings: ``torch-float32``, ``onnx``, ..., or ``""`` for a function or none."""
        if self._encoder is not None:
            return self._encoder.name
        return ""

    @property
    def encoder(self) -> SentenceTransformer:
        """The encoder as a SentenceTransformer.

        Raises:
            ModelError: for a cross-encoder, or if the model runs without torch.
        """
        transformer: SentenceTransformer | None = getattr(self._embedder, "sentence_transformer", None)
        if transformer is None:
            raise ModelError(
                f"This needs a model in torch, and {self.name or 'this one'} is computed by "
                f"{self.backend or 'a function'}. Open it with the backend torch, or give the model it was made from."
            )
        return transformer

    @property
    def exported(self) -> GraphEncoder | None:
        """The encoder of an exported folder, which runs without torch, if it is one."""
        if isinstance(self._encoder, GraphEncoder):
            return self._encoder
        return None

    @property
    def _embedder(self) -> Encoder:
        if self._encoder is None:
            raise ModelError(
                f"{self.name or 'This model'} scores pairs of texts and has no embeddings ({self._protocol}). Score "
                "pairs with it (similarity, evaluate, rerank), or encode with another model."
            )
        return self._encoder

    def encode(
        self,
        texts: str | Iterable[str],
        *,
        normalize: bool = False,
        on_progress: Callable[[int], None] | None = None,
        task: TaskName | None = None,
        show_progress_bar: bool | None = None,
    ) -> Embeddings:
        """Return the embeddings of ``texts``, float32 ``(texts, dim)``, in order; of one text ``(dim,)``.

        Args:
            texts: one string, or any number; equal ones are encoded once.
            normalize: scale every row to unit length.
            on_progress: called with the number of texts that have just been finished.
            task: ``"query"`` or ``"document"``, for models that distinguish them by routes or prompts; ``None`` for
                neither.
            show_progress_bar: whether to show progress; ``None`` shows it on a terminal and in a notebook if the work
                takes long.

        Raises:
            ConfigError: for another ``task``.
            DataError: for a table, or another object that is not a list of texts.
            ModelError: for a cross-encoder, or if a text is not a string.
        """
        if isinstance(texts, str):
            single: Embeddings = self.encode(
                [texts],
                normalize=normalize,
                on_progress=on_progress,
                task=task,
                show_progress_bar=show_progress_bar,
            )[0]
            return single
        check_choice("task", task, TaskName, optional=True)
        given_texts = as_sequence(texts, "Texts")
        # A model that reads all texts alike then has one cache for all tasks.
        if not self.tells_tasks_apart:
            task = None
        with requested_progress(show_progress_bar):
            if self._caches is None:
                return self._embedder.encode(given_texts, normalize=normalize, on_progress=on_progress, **_as(task))
            cache = self._cache_of(task)
            cache.fill(given_texts, on_progress=on_progress)
        rows = cache(given_texts)
        if not normalize:
            return rows
        return unit(rows)

    @property
    def tells_tasks_apart(self) -> bool:
        """Whether queries and documents are encoded differently, by routes or prompts of the model."""
        return bool(getattr(self._encoder, "tells_tasks_apart", False))

    @property
    def reading(self) -> Reading | None:
        """How much the model reads of a text; ``None`` for all of it."""
        return self.reading_for(None)

    def reading_for(self, task: TaskName | None) -> Reading | None:
        """Return how much the model reads of a text of a task; ``None`` for all of it."""
        by_task: Callable[[TaskName | None], Reading | None] | None = getattr(self._embedder, "reading_for", None)
        if by_task is None:
            return None
        return by_task(task)

    def look(self, texts: Sequence[str], task: TaskName | None = None) -> None:
        """Count truncated texts among those whose vectors are cached; see :mod:`samesense.execution.unread`."""
        note(find_unread(list(dict.fromkeys(texts)), self.reading_for(task)), self._embedder)

    def windows(self, texts: Sequence[str], task: TaskName | None = None) -> Windows:
        """Return texts cut into windows that the model reads in full; see :mod:`samesense.encoder.windows`."""
        return cut_into_windows(texts, self.reading_for(task))

    def encode_uncached(self, texts: Sequence[str], *, task: TaskName | None = None) -> Embeddings:
        """Return the embeddings without any cache, to measure the cost of encoding; see :meth:`encode`."""
        # Only encoders that remember vectors have a way to encode without them.
        encode: Encode = getattr(self._embedder, "encode_uncached", self._embedder.encode)
        return encode(texts, **_as(task if self.tells_tasks_apart else None))

    def scores_uncached(self, pairs: Sequence[Pair]) -> Scores:
        """Return the scores without any cache; see :meth:`scores`."""
        # A score with a cache, as CachedScore is, holds the one without it.
        score: Score = getattr(self._score, "__wrapped__", self._score)
        return score(pairs)

    def remember(self, folder: Path | None = None) -> None:
        """Encode each distinct text only once from now on; has no effect on a model without embeddings.

        Args:
            folder: folder that keeps embeddings between runs; ``None`` keeps them in memory only.

        Raises:
            ConfigError: if a folder is given for a function, which may change between runs.
        """
        if self._encoder is not None:
            identity = "" if folder is None else self.identity
            self._caches = {
                None: EmbeddingCache(self._encoder.encode, folder=folder, identity=identity, look=self.look)
            }
            self._cache_folder = None if folder is None else folder.absolute()

    def _cache_of(self, task: TaskName | None) -> EmbeddingCache:
        """Return the cache for texts of a task."""
        if self._caches is None:
            raise ModelError("Nothing is remembered. Call remember first.")
        if task not in self._caches:
            identity = "" if self._cache_folder is None else f"{self.identity} {task}"
            self._caches[task] = EmbeddingCache(
                partial(self._embedder.encode, task=task),
                folder=self._cache_folder,
                identity=identity,
                look=partial(self.look, task=task),
            )
        return self._caches[task]

    def fill(self, texts: Iterable[str], *, on_progress: Callable[[int], None] | None = None) -> int:
        """Encode the texts that are not cached yet; return their number, which is that of all without a cache."""
        if self._caches is None:
            return len(dict.fromkeys(texts))  # without a cache, each later call encodes them
        return self._cache_of(None).fill(texts, on_progress=on_progress)

    @cached_property
    def calibration(self) -> Calibration:
        """The calibration of the model's scores, made by ``samesense calibrate``.

        Raises:
            ModelError: if there is none, or it was made for other weights.
        """
        if self.home is None:
            raise ModelError(
                "A calibration is kept beside a model, and this one is in memory only, or has a prompt or a pooling "
                "that its folder has not. Save it, calibrate it, and load it by its name."
            )
        return read_of(*self.home)

    def scores(self, pairs: Iterable[Pair], *, calibrated: bool = False) -> Scores:
        """Return the cosine of each pair, in [-1, 1], or the model's own score, ``(pairs,)``.

        Each distinct text is encoded once.

        Args:
            pairs: any number of pairs of texts.
            calibrated: return values on the scale of the labels that the model was calibrated on.

        Raises:
            ModelError: if calibrated values are requested and there is no calibration.
            DataError: if an item is not a pair, or a text is empty or invalid Unicode.
        """
        text_pairs = checked_pairs(pairs)
        if calibrated:
            return self.calibration.apply(self._score(text_pairs))
        return self._score(text_pairs)

    def similarity(self, text1: str, text2: str, *, calibrated: bool = False) -> float:
        """Return the score of two texts; see :meth:`scores`, which takes many pairs.

        Raises:
            DataError: if they are not two texts.
        """
        if not isinstance(text1, str) or not isinstance(text2, str):
            raise DataError(
                "`similarity` compares two texts; received "
                f"{type(text1).__name__} and {type(text2).__name__}. Many pairs: scores(list(zip(texts1, texts2)))."
            )
        return float(self.scores([(text1, text2)], calibrated=calibrated)[0])


def _as(task: TaskName | None) -> dict[str, Any]:
    """Return the task as a keyword argument, or none: a function may not accept ``task``."""
    if task is None:
        return {}
    return {"task": task}


def as_sequence(items: Any, what: str) -> Sequence[Any]:
    """Return a sequence or array unchanged, and the items of another iterable as a list.

    DataError, which names ``what`` is needed, for a table or a mapping, whose names would be taken for texts.
    """
    # A single value of NumPy, an array without dimensions, cannot be iterated over.
    is_single = isinstance(items, np.ndarray) and not items.shape
    if isinstance(items, Sequence | np.ndarray) and not is_single:
        return items  # type: ignore[return-value]  # an array has a length and an order, but is no Sequence
    if is_single or isinstance(items, Mapping) or hasattr(items, "columns") or not isinstance(items, Iterable):
        raise DataError(
            f'{what} are given in a list; received {type(items).__name__}. Of a table give a column: table["text"].'
        )
    return list(items)


def checked_pairs(pairs: Iterable[Any]) -> list[Pair]:
    """Return pairs as tuples; they may be any sequences.

    DataError if an item is not a pair of non-empty texts.
    """
    items = as_sequence(pairs, "Pairs")
    for index, pair in enumerate(items):
        # A text of two letters is a sequence of two texts, but not a pair.
        is_pair = not isinstance(pair, str) and isinstance(pair, Sequence | np.ndarray) and len(pair) == 2
        problem = "it is no pair"
        if is_pair:
            problem = next(filter(None, map(text_problem, pair)), "")
        if problem:
            raise DataError(
                f"Pairs are of two texts each, (text, text); received {str(pair)[:60]!r} at place {index}: {problem}."
            )
    # Texts of an array are strings of numpy's own kind.
    return [(str(first), str(second)) for first, second in items]
