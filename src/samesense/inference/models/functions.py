"""Models that are no transformer: stored vectors, word vectors, functions, an Origin, a chat model."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from samesense.encoder.cosine import checked_rows, unit
from samesense.encoder.windows import Reading
from samesense.errors import ConfigError
from samesense.hashes import content_hash
from samesense.inference.models.chat import Chat
from samesense.inference.models.model import Model
from samesense.types import Embeddings, Encode

if TYPE_CHECKING:
    from samesense.context.origin.sampled import ContinuationScore


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
        reading: Reading | None = None,
    ) -> None:
        """Take a function, and what tells it from others, if anything does.

        ``uncached`` is the function without what it remembers, if it remembers anything; ``reading`` says how much it
        reads of a text, ``None`` being all.
        """
        self.reading = reading
        self._function, self.protocol, self._identity = function, protocol, identity
        self.encode_uncached = uncached or function

    @property
    def identity(self) -> str:
        """A text that is the same only for functions that give the same vectors."""
        if self._identity is None:
            raise ConfigError(
                "Vectors are kept only of what can be told from others, and a function may change between runs "
                f"({self.protocol}). Write its vectors with samesense encode, and name the file: vectors:FILE."
            )
        return self._identity()

    def encode(
        self, texts: Sequence[str], *, normalize: bool = False, on_progress: Callable[[int], None] | None = None
    ) -> Embeddings:
        """Return the function's vectors, float32 ``(texts, dim)``; ModelError if they are not one finite row a text."""
        if not len(texts):
            return np.zeros((0, 0), dtype=np.float32)
        rows = checked_rows(np.asarray(self._function(texts)), texts).astype(np.float32, copy=False)
        if on_progress is not None:
            on_progress(len(texts))
        return unit(rows) if normalize else rows


def is_function(given: object) -> bool:
    """Return whether something is a function, and not a model, which can be called, too."""
    return callable(given) and not (hasattr(given, "encode") or hasattr(given, "predict"))


def open_kind(kind: str, place: str, device: str | None) -> Model:
    """Open what stands behind the colon of a name; see :data:`~samesense.inference.names.KINDS`.

    ConfigError if the name is malformed; ModelError or DataError if what is named cannot be read.
    """
    if kind == "origin":
        from samesense.context.origin.banked import BankOrigin
        from samesense.context.origin.load import open_origin

        origin = open_origin(Path(place).expanduser(), device=device or "cpu")
        if isinstance(origin, BankOrigin):
            return Model(FunctionEncoder(origin.encode, origin.protocol, lambda: origin.identity))
        return Model(score=origin, protocol=origin.protocol)
    if kind == "continuations":
        continued = open_continuations(place, device or "cpu")
        return Model(score=continued, protocol=continued.protocol)
    if kind == "chat":
        return Model(score=Chat(place), protocol=f"0 to 5 by {place}, a chat model")
    if kind == "python-score":
        return Model(score=_imported(place, kind), protocol=f"scores by {place}")
    if kind == "python":
        return Model(FunctionEncoder(_imported(place, kind), f"cosine, embeddings by {place}"))
    return Model(_vectors(place) if kind == "vectors" else _words(place))


def open_continuations(name: str, device: str = "cpu") -> ContinuationScore:
    """Open a causal language model, by folder or hub name, as a score; in bfloat16 where the device computes in it."""
    import torch

    from samesense.context.origin.sampled import ContinuationScore
    from samesense.encoder.forward.precision import inference_precision

    precision = inference_precision("auto", torch.device(device))
    return ContinuationScore.open(name, precision=precision, device=device)


def _vectors(place: str) -> FunctionEncoder:
    from samesense.encoder.vectors.lookup import read_vectors

    path = Path(place).expanduser()
    return FunctionEncoder(
        read_vectors(path), f"cosine, vectors from {path.name}", lambda: f"vectors  sha256 {_content(path)}"
    )


def _words(place: str) -> FunctionEncoder:
    from samesense.encoder.vectors.lookup import read_words

    file, question, option = place.partition("?")
    if question and option != "sif":
        raise ConfigError(f"Word vectors have one option, ?sif; received ?{option}.")
    path = Path(file).expanduser()
    words = read_words(path, sif=bool(question))
    return FunctionEncoder(words, f"cosine, {words.protocol}", lambda: f"words {option} sha256 {_content(path)}")


def _imported(name: str, kind: str) -> Any:
    """Return the function that ``module:function`` names; the working directory is searched too."""
    module, colon, attribute = name.partition(":")
    if not (module and colon and attribute):
        raise ConfigError(f"A function is named as {kind}:module:function; received {kind}:{name}.")
    here = str(Path.cwd())
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


def _content(place: Path) -> str:
    """Return the SHA-256 of a file, with the texts that belong to an array, or of the files of a folder."""
    found = sorted(place.iterdir()) if place.is_dir() else [place]
    if place.suffix == ".npy":
        found.append(place.with_suffix(".txt"))
    files = [path for path in found if path.is_file()]
    return content_hash(part for path in files for part in (f"{path.name} {path.stat().st_size} ".encode(), path))
