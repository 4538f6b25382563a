"""``samesense.SentenceEncoder``: a model as a scikit-learn transformer, from texts to embeddings."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin

from samesense.choices import BackendOption, Chunk, check_choice
from samesense.data.rows.memory import cells_of_column
from samesense.errors import DataError, ModelError
from samesense.execution.audience import requested_progress
from samesense.inference.encode import encode_with_bar
from samesense.inference.models.load import load
from samesense.inference.models.model import Model
from samesense.types import TaskName

if TYPE_CHECKING:
    from samesense.types import Embeddings, Precision

OPEN_MODELS = 2
"""Models that stay loaded for the next estimator: the clones of a grid search would each load one from disk."""


class SentenceEncoder(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Turns texts into embeddings, as a step of a scikit-learn pipeline.

    ``X`` is one text a row: a list, a Series, an array ``(rows,)`` or ``(rows, 1)``, or a frame of one column. ``fit``
    does not train the model: it loads it and counts its dimensions. ``transform`` also works without ``fit``.

    A pickle holds the model as :class:`samesense.Model` does: the weights of a torch model, the folder of an exported
    one.

    Args:
        model: any model with embeddings that :func:`samesense.load` takes.
        normalize, chunk, task, prompt, dim, backend, precision, device, deterministic: see :func:`samesense.encode`.
        show_progress_bar: show or hide a progress bar; ``None`` shows one for long work.

    Attributes:
        model_: the loaded model; after ``fit``.

    Raises:
        DataError: for a row without text, which it names; for a table of several columns.
        ModelError: for a cross-encoder, which has no embeddings.

    Example:
        >>> from sklearn.linear_model import LogisticRegression
        >>> from sklearn.pipeline import make_pipeline
        >>> pipeline = make_pipeline(SentenceEncoder("default"), LogisticRegression())
        >>> pipeline.fit(["refund please", "it will not start"], ["billing", "fault"])  # doctest: +SKIP
    """

    def __init__(  # noqa: PLR0913 - scikit-learn reads the parameters from here
        self,
        model: Any = "default",
        *,
        normalize: bool = False,
        chunk: Chunk | None = None,
        task: TaskName | None = None,
        prompt: str | None = None,
        dim: int | None = None,
        backend: BackendOption = "auto",
        precision: Precision = "auto",
        device: str | None = None,
        deterministic: bool = False,
        show_progress_bar: bool | None = None,
    ) -> None:
        # scikit-learn clones an estimator by these attributes: each must be the argument, unchanged.
        self.model = model
        self.normalize = normalize
        self.chunk = chunk
        self.task = task
        self.prompt = prompt
        self.dim = dim
        self.backend = backend
        self.precision = precision
        self.device = device
        self.deterministic = deterministic
        self.show_progress_bar = show_progress_bar

    def fit(self, X: Any, y: Any = None) -> Self:  # noqa: N803 - the name of scikit-learn
        """Check the texts, load the model and count its dimensions; nothing is trained."""
        if isinstance(X, Iterator):
            raise DataError(
                f"`fit` and `transform` each read the texts, and a {type(X).__name__} gives them once. Give a list."
            )
        texts = text_column(X)
        if not texts:
            raise DataError("`fit` takes at least one text; received none.")
        model = self._open()
        # ClassNamePrefixFeaturesOutMixin makes the names of the output columns of this.
        self._n_features_out = self._encode(model, texts[:1]).shape[1]
        self.model_ = model
        return self

    def transform(self, X: Any) -> Embeddings:  # noqa: N803 - the name of scikit-learn
        """Return the embeddings of the texts, float32 ``(rows, dimensions)``, in their order."""
        texts = text_column(X)
        model: Model = getattr(self, "model_", None) or self._open()
        if not texts:
            # No rows, but as wide as those of the model.
            return self._encode(model, ["a"])[:0]
        return self._encode(model, texts)

    def _open(self) -> Model:
        options: dict[str, Any] = {
            "backend": self.backend,
            "precision": self.precision,
            "device": self.device,
            "deterministic": self.deterministic,
            "dim": self.dim,
            "prompt": self.prompt,
        }
        if isinstance(self.model, str | Path):
            # The options are a tuple, since the cache needs arguments that can be hashed.
            model = _open_named(str(self.model), _newest_change(self.model), tuple(options.items()))
        else:
            model = load(self.model, **options)
        if not model.embeds:
            raise ModelError(
                f"SentenceEncoder takes a model that has embeddings; {model.name} scores pairs of texts "
                f"({model.protocol}). Take a bi-encoder, such as 'default'."
            )
        return model

    def _encode(self, model: Model, texts: list[str]) -> Embeddings:
        check_choice("chunk", self.chunk, Chunk, optional=True)
        check_choice("task", self.task, TaskName, optional=True)
        with requested_progress(self.show_progress_bar):
            return encode_with_bar(model, texts, normalize=self.normalize, chunk=self.chunk, task=self.task)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.string = True
        tags.input_tags.one_d_array = True
        tags.input_tags.two_d_array = False
        # A frozen model transforms without `fit`, and checks of scikit-learn must know it.
        tags.requires_fit = False
        return tags


@lru_cache(maxsize=OPEN_MODELS)
def _open_named(name: str, newest_change: int, options: tuple[tuple[str, Any], ...]) -> Model:
    """Load a model by its name; the cache returns it as long as its folder has not changed."""
    return load(name, **dict(options))


def _newest_change(name: str | Path) -> int:
    """Return the newest modification time in a model's folder, in nanoseconds; 0 if there is no folder."""
    folder = Path(name).expanduser()
    files = [path for path in folder.rglob("*") if path.is_file()] if folder.is_dir() else []
    return max((path.stat().st_mtime_ns for path in files), default=0)


def text_column(data: Any) -> list[str]:
    """Return the texts of a list, a Series, an array or a frame of one column, one a row.

    Raises:
        DataError: for one text alone, for several columns, and for a row without a text, which it names.
    """
    shape: tuple[int, ...] | None = getattr(data, "shape", None)
    # All of these can be iterated: a string gives its letters, a set has no order of rows.
    has_no_rows = isinstance(data, str | bytes | Mapping | set | frozenset) or shape == ()
    if has_no_rows or not isinstance(data, Iterable):
        raise DataError(
            f"SentenceEncoder takes one text a row, in a list or a column; received {type(data).__name__}. "
            "Put a single text into a list: [text]."
        )
    if shape is not None and len(shape) > 2:
        raise DataError(f"SentenceEncoder takes one column of texts; received an array of {len(shape)} dimensions.")
    if shape is not None and len(shape) == 2 and shape[1] != 1:
        raise DataError(
            f"SentenceEncoder takes one column of texts; received {shape[1]} columns. Name it: frame['text'], or "
            "ColumnTransformer([('text', SentenceEncoder(), 'text')])."
        )
    # As objects: in an array of strings, None would become the text "None".
    if shape is not None:
        values = np.asarray(data, dtype=object).ravel().tolist()
    else:
        values = cells_of_column(data) or list(data)
    missing = [row for row, value in enumerate(values) if not isinstance(value, str)]
    if missing:
        first = missing[0]
        raise DataError(
            f"SentenceEncoder takes a text in every row; row {first} (counted from 0) holds {values[first]!r:.60}, and "
            f"{len(missing)} of {len(values)} rows hold no text. Leave such rows out, as by frame.dropna(subset="
            "['text']), or fill them, as by frame['text'].fillna('')."
        )
    # numpy.str_ is a str too; plain strings go on.
    return [str(text) for text in values]
