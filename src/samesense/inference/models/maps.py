"""Maps after a model: whitening, which is fitted on texts, and truncation to the first dimensions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from samesense.encoder.cosine import unit
from samesense.encoder.maps.whitening import Whitening
from samesense.errors import ConfigError, ModelError
from samesense.hashes import text_hash
from samesense.inference.models.functions import FunctionEncoder
from samesense.inference.models.model import Model
from samesense.inference.names import parse_maps
from samesense.types import Embeddings, TaskName


def apply_maps(model: Model, maps: str, fit_texts: Sequence[str] | None, *, cache: bool = False) -> Model:
    """Return the model followed by maps such as ``"+whiten:64"``, which are fitted here.

    Maps are applied from left to right (``""``: none), and fitted on ``fit_texts``; ``+dim:64`` needs no fitting.
    """
    for name, dim in parse_maps(maps):
        if not model.embeds:
            raise ConfigError(f"+{name} maps embeddings, and this model only scores pairs: {model.protocol}.")
        if not fit_texts and name != "dim":
            raise ConfigError(f"+{name} is fitted on unlabelled texts, and there are none. Name some (fit_texts).")
        if name == "dim":
            encoder = _narrowed(model, dim)
        else:
            encoder = _whitened(model, dim, fit_texts or ())
        mapped_name = f"{model.name}+{name}"
        if dim is not None:
            mapped_name += f":{dim}"
        model = Model(encoder, name=mapped_name, seed=model.seed, choice=model.choice)
        if cache:
            model.remember()
    return model


def _narrowed(model: Model, dim: int | None) -> FunctionEncoder:
    """Return an encoder of the first ``dim`` numbers of a model's vectors, at unit length.

    ConfigError if ``dim`` is missing; ModelError, when texts are encoded, if the vectors have fewer.
    """
    if not dim:
        raise ConfigError(f"+dim keeps the first numbers of each vector, as in +dim:64; received {dim}.")

    return _behind(model, partial(_first_numbers, dim), f"first {dim} dimensions", f"first {dim} dimensions")


def _first_numbers(dim: int, rows: Embeddings) -> Embeddings:
    if rows.shape[1] < dim:
        raise ModelError(f"+dim:{dim} keeps {dim} numbers of each vector, and these have {rows.shape[1]}.")
    return unit(rows[:, :dim])


def _behind(model: Model, apply: Callable[[Embeddings], Embeddings], words: str, identity: str) -> FunctionEncoder:
    """Return an encoder that applies a function to a model's vectors; it can be pickled if both can."""
    return FunctionEncoder(
        partial(_mapped_vectors, apply, model.encode),
        f"{model.protocol}, {words}",
        partial(_mapped_identity, model, identity),
        uncached=partial(_mapped_vectors, apply, model.encode_uncached),
        behind=model,
    )


def _mapped_vectors(
    apply: Callable[[Embeddings], Embeddings],
    encode: Callable[..., Embeddings],
    texts: Sequence[str],
    task: TaskName | None = None,
) -> Embeddings:
    return apply(encode(texts, task=task))


def _mapped_identity(model: Model, words: str) -> str:
    return f"{model.identity} {words}"


def _whitened(model: Model, dim: int | None, fit_texts: Sequence[str]) -> FunctionEncoder:
    """Return a model followed by a whitening, fitted on texts."""
    whitening = Whitening.fit(model.encode(fit_texts), dim)
    words = f"whitened to {whitening.matrix.shape[1]} dimensions"
    content = text_hash("\0".join(fit_texts))
    return _behind(
        model,
        whitening.apply,
        f"{words} fitted on {len(fit_texts)} texts",
        f"{words} fitted on sha256 {content}",
    )
