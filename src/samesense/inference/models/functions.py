"""Models that are no transformer: stored vectors, word vectors, functions, an Origin, a chat model."""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable, Sequence
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from samesense.encoder.cosine import checked_rows, unit
from samesense.encoder.vectors.lookup import read_vectors, read_words
from samesense.encoder.windows import Reading, Span
from samesense.errors import ConfigError, ModelError
from samesense.hashes import content_hash
from samesense.inference.models.chat import Chat
from samesense.inference.models.model import Model
from samesense.inference.names import settled_name, split_kind
from samesense.types import Embeddings, Encode, Precision, TaskName

if TYPE_CHECKING:
    from samesense.context.origin.origin import Origin
    from samesense.context.origin.word_origin import WordOrigin
    from samesense.encoder.vectors.lookup import WordVectors

logger = logging.getLogger(__name__)


class FunctionEncoder:
    """An :class:`~samesense.inference.models.model.Encoder` made of a function from texts to vectors.

    ``protocol`` says in words what the function does; it has no backend, and so no ``name``.
    """

    name = ""

    def __init__(
        self,
        function: Encode,
        protocol: str,
        identity: Callable[[], str] | None = None,
        *,
        uncached: Encode | None = None,
        reading: Callable[[], Reading | None] | None = None,
        behind: Model | None = None,
    ) -> None:
        """Take a function, and what tells it from others, if anything does.

        ``uncached`` is the function without what it remembers, if it remembers anything; ``reading`` returns how much
        it reads of a text, ``None`` being all. A function of the vectors of a model takes a ``task`` where the model
        tells queries from documents, and has it ``behind`` it. An encoder of functions that can be pickled can be, too.
        """
        self._behind = behind
        self._function = function
        self.protocol = protocol
        self._identity = identity
        self._reading = reading
        self.encode_uncached = uncached or function

    @property
    def identity(self) -> str:
        """A text that is the same only for functions that give the same vectors."""
        if self._identity is None:
            raise ConfigError(
                "Vectors are kept only of a model with an identity, and a function may change between runs "
                f"({self.protocol}). Write its vectors with samesense encode, and name the file: vectors:FILE."
            )
        return self._identity()

    @property
    def tells_tasks_apart(self) -> bool:
        """Whether queries and documents have vectors of their own."""
        return self._behind is not None and self._behind.tells_tasks_apart

    def reading_for(self, task: TaskName | None) -> Reading | None:
        """Return how texts of a task are read; ``None`` for all of them."""
        if self._behind is not None:
            return self._behind.reading_for(task)
        if self._reading is None:
            return None
        return self._reading()

    def encode(
        self,
        texts: Sequence[str],
        *,
        normalize: bool = False,
        on_progress: Callable[[int], None] | None = None,
        task: TaskName | None = None,
    ) -> Embeddings:
        """Return the function's vectors, float32 ``(texts, dim)``; ModelError if they are not one finite row a text."""
        # Without a text the width of the vectors is not known.
        if not len(texts):
            return np.zeros((0, 0), dtype=np.float32)
        as_task: dict[str, Any] = {} if task is None else {"task": task}
        rows = checked_rows(np.asarray(self._function(texts, **as_task)), texts).astype(np.float32, copy=False)
        if on_progress is not None:
            on_progress(len(texts))
        if not normalize:
            return rows
        return unit(rows)


def is_function(model: object) -> bool:
    """Return whether something is a function, and not a model, which can be called, too."""
    return callable(model) and not (hasattr(model, "encode") or hasattr(model, "predict"))


def open_kind(
    kind: str, target: str, *, device: str | None = None, precision: Precision = "auto", deterministic: bool = False
) -> Model:
    """Open what stands behind the colon of a name; see :data:`~samesense.encoder.names.NAME_KINDS`.

    ConfigError if the name is malformed, or it cannot be ``deterministic``; ModelError or DataError if what is named
    cannot be read.
    """
    if kind in ("origin", "chat"):
        model = _open_function(kind, target, device, precision, deterministic=deterministic)
        # It may be opened again from another folder.
        target = split_kind(settled_name(f"{kind}:{target}"))[1]
        model.reopen = partial(_open_function, kind, target, device, precision, deterministic=deterministic)
        return model
    if kind == "python-score":
        return Model(score=_imported(target, kind), protocol=f"scores by {target}")
    if kind == "python":
        return Model(FunctionEncoder(_imported(target, kind), f"cosine, embeddings by {target}"))
    return Model(_vectors(target) if kind == "vectors" else _words(target))


def _open_function(kind: str, target: str, device: str | None, precision: Precision, *, deterministic: bool) -> Model:
    """Open what holds files and connections, and so is opened again where it was pickled."""
    if deterministic and kind != "chat":
        raise ConfigError(
            f"{kind}:{target} reads texts of one length together, which decides the last bits; received "
            "`deterministic`. Leave it out."
        )
    if kind == "origin":
        return _of_origin(open_origin(target, precision=precision, device=device))
    return Model(score=Chat(target), protocol=f"0 to 5 by {target}, a chat model")


def open_origin(place: str, *, precision: Precision = "auto", device: str | None = None) -> Origin | WordOrigin:
    """Open the folder of an Origin; a precision in which it was not made has no effect, and is warned of."""
    # Each kind is imported where it is opened: an Origin loads torch, stored vectors do not.
    from samesense.context.origin import load
    from samesense.context.origin.origin import origin_content

    folder = Path(place).expanduser()
    origin_precision = origin_content(folder).get("precision")
    if precision not in ("auto", origin_precision):
        logger.warning(
            f"origin:{place} scores in {origin_precision}, in which it was made; `precision` {precision} has no effect."
        )
    return load.open_origin(folder, device=device or _device())


def _device() -> str:
    import torch

    if torch.cuda.is_available():
        return "cuda"
    return "cpu"


def _of_origin(origin: Origin | WordOrigin) -> Model:
    # Loads torch and transformers.
    from samesense.context.origin.word_origin import WordOrigin

    if not isinstance(origin, WordOrigin):
        return _explained_by(origin, Model(score=origin, protocol=origin.protocol))
    reader = origin.reader
    reading = Reading(reader.longest, lambda texts: reader.lengths(texts).tolist(), reader.spans)
    encoder = FunctionEncoder(
        origin.encode,
        origin.protocol,
        lambda: origin.identity,
        reading=lambda: reading,
        uncached=lambda texts: origin.fresh().encode(texts),
    )
    return _explained_by(origin, Model(encoder))


def _explained_by(origin: Origin | WordOrigin, model: Model) -> Model:
    model.explainer = origin.explain
    return model


def _vectors(place: str) -> FunctionEncoder:
    path = Path(place).expanduser()
    return FunctionEncoder(
        read_vectors(path), f"cosine, vectors from {path.name}", partial(_file_identity, "vectors ", path)
    )


def _words(place: str) -> FunctionEncoder:
    file, question, option = place.partition("?")
    if question and option != "sif":
        raise ConfigError(f"Word vectors have one option, ?sif; received ?{option}.")
    path = Path(file).expanduser()
    words = read_words(path, sif=bool(question))
    return FunctionEncoder(
        words,
        f"cosine, {words.protocol}",
        partial(_file_identity, f"words {option}", path),
        reading=partial(_words_reading, words),
    )


def _words_reading(words: WordVectors) -> Reading:
    return Reading(None, lambda texts: [len(pieces.all) for pieces in words.pieces(texts)], _no_spans, words.pieces)


def _no_spans(text: str) -> list[Span]:
    raise ModelError("Word vectors read texts of any length, so no text is cut.")


def _file_identity(kind: str, path: Path) -> str:
    return f"{kind} sha256 {_content(path)}"


def _imported(name: str, kind: str) -> Any:
    """Return the function that ``module:function`` names; the working directory is searched too."""
    module, colon, attribute = name.partition(":")
    if not (module and colon and attribute):
        raise ConfigError(f"A function is named as {kind}:module:function; received {kind}:{name}.")
    here = str(Path.cwd())
    # At the end, so that files there do not hide installed modules.
    if here not in sys.path:
        sys.path.append(here)
    try:
        function = getattr(import_module(module), attribute)
    except (ImportError, AttributeError) as error:
        raise ConfigError(
            f"{kind}:{name} cannot be imported: {error}. Run it where the module can be found."
        ) from error
    if not callable(function):
        raise ConfigError(f"{kind}:{name} must be a function; it is {type(function).__name__}.")
    return function


def _content(location: Path) -> str:
    """Return the SHA-256 of a file, with the texts that belong to an array, or of the files of a folder."""
    paths = sorted(location.iterdir()) if location.is_dir() else [location]
    if location.suffix == ".npy":
        paths.append(location.with_suffix(".txt"))
    files = [path for path in paths if path.is_file()]
    # With names and sizes, so that it counts where one file ends and the next begins.
    return content_hash(piece for path in files for piece in (f"{path.name} {path.stat().st_size} ".encode(), path))
