"""Open anything that scores pairs of texts, by a name.

    FOLDER, owner/name, default   a sentence-transformers model, a run folder, a bare transformer, or a cross-encoder
    NAME?cls, NAME?first-last     the same with another pooling, for models whose folder does not state theirs
    vectors:FILE                  vectors computed elsewhere, with their texts
    words:PATH                    word vectors, averaged; words:PATH?sif weights rare words more
    python:module:function        a function from texts to a matrix, one row a text
    python-score:module:function  a function from pairs to scores

Whatever gives embeddings may be followed by maps that are fitted on unlabelled texts, applied from left to right:

    NAME+whiten  NAME+whiten:256  NAME+flow
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast, get_args

from samesense.encoder.cosine import cosine_score
from samesense.encoder.embedding_cache import EmbeddingCache, cache_embeddings
from samesense.errors import ConfigError
from samesense.types import Candidate, Embeddings, PoolingName, Precision

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer

_MAP = re.compile(r"(?P<rest>.+)\+(?P<name>whiten|flow)(?::(?P<dim>\d+))?")


def open_candidate(
    spec: str,
    *,
    precision: Precision = "float32",
    device: str | None = None,
    fit_texts: Sequence[str] | None = None,
    cache: Path | None = None,
    seed: int | None = None,
) -> Candidate:
    """Open what ``spec`` names, ready to be judged.

    The ``encode`` of the candidate, where there is one, is an
    :class:`~samesense.encoder.embedding_cache.EmbeddingCache`: each distinct text is encoded once, and ``fill`` takes
    the texts of several tasks together.

    Args:
        spec: a name from the table above.
        precision: arithmetic of models; float32 keeps figures comparable between machines.
        device: torch device of models; ``None`` lets sentence-transformers choose.
        fit_texts: unlabelled texts for whitening and flow, each counting as often as it comes.
        cache: folder in which the embeddings of models are kept between runs. Other kinds are not: files are quick to
            read, and a function may change between runs.
        seed: seed of the training run behind it, where known; a flow is fitted with it, or with 0.

    Raises:
        ConfigError: if the name is malformed, or needs texts to fit on and there are none.
        ModelError: if what is named cannot be read or used.
    """
    rest, maps = spec, list[tuple[str, int | None]]()
    while match := _MAP.fullmatch(rest):
        rest = match["rest"]
        maps.insert(0, (match["name"], int(match["dim"]) if match["dim"] else None))
    kind, colon, place = rest.partition(":")
    opened = KINDS[kind](place) if colon and kind in KINDS else _model(rest, precision, device, cache)
    for name, dim in maps:
        opened = _mapped(opened, name, dim, fit_texts, seed or 0)
    return replace(opened, name=spec, seed=seed)


def encoder_protocol(model: SentenceTransformer, precision: Precision) -> str:
    """Return, in words, everything about an encoder that changes a figure."""
    from samesense.encoder.pooling import describe_pooling
    from samesense.encoder.precision import inference_precision

    parts = [
        "cosine",
        f"{describe_pooling(model)} pooling",
        inference_precision(precision, model.device),
        f"at most {model.max_seq_length} tokens" if isinstance(model.max_seq_length, int) else "inputs of any length",
    ]
    if model.default_prompt_name is not None:
        parts.append(f"prompt {model.prompts[model.default_prompt_name]!r}")
    return ", ".join(parts)


def _model(name: str, precision: Precision, device: str | None, cache: Path | None) -> Candidate:
    from samesense.encoder.build import build, resolve
    from samesense.encoder.cross import is_cross_encoder, open_cross_encoder
    from samesense.encoder.encode import as_encode
    from samesense.encoder.identity import model_identity
    from samesense.encoder.precision import inference_precision

    name, pooling = _with_option(name)
    if is_cross_encoder(resolve(name)):
        if pooling is not None:
            raise ConfigError(f"A cross-encoder has no pooling to choose; received {name}?{pooling}.")
        score, protocol = open_cross_encoder(resolve(name), precision=precision, device=device)
        return Candidate(name=name, score=score, encode=None, protocol=protocol)
    model = build(name, pooling=pooling, device=device)
    arithmetic = inference_precision(precision, model.device)
    identity = "" if cache is None else model_identity(model, arithmetic)
    encode = cache_embeddings(as_encode(model, precision=arithmetic), folder=cache, identity=identity)
    return _embedder(encode, encoder_protocol(model, arithmetic))


def _with_option(name: str) -> tuple[str, PoolingName | None]:
    """Return the name of a model and the pooling that may follow it; a folder of the whole name comes first."""
    if "?" not in name or Path(name).expanduser().exists():
        return name, None
    rest, _, option = name.rpartition("?")
    if option not in get_args(PoolingName):
        raise ConfigError(
            f"After ? stands the pooling of a model, one of {', '.join(get_args(PoolingName))}; received ?{option}."
        )
    return rest, cast(PoolingName, option)


def _from_vectors(path: str) -> Candidate:
    from samesense.encoder.vectors import read_vectors

    return _embedder(cache_embeddings(read_vectors(Path(path).expanduser())), f"cosine, vectors from {Path(path).name}")


def _from_words(path: str) -> Candidate:
    from samesense.encoder.words import read_words

    file, question, option = path.partition("?")
    if question and option != "sif":
        raise ConfigError(f"Word vectors have one option, ?sif; received ?{option}.")
    words = read_words(Path(file).expanduser(), sif=bool(question))
    return _embedder(cache_embeddings(words), f"cosine, {words.protocol}")


def _from_python(name: str) -> Candidate:
    return _embedder(cache_embeddings(_imported(name, "python")), f"cosine, embeddings by {name}")


def _from_python_score(name: str) -> Candidate:
    return Candidate(name=name, score=_imported(name, "python-score"), encode=None, protocol=f"scores by {name}")


def _embedder(encode: EmbeddingCache, protocol: str) -> Candidate:
    return Candidate(name="", score=cosine_score(encode), encode=encode, protocol=protocol)


KINDS: dict[str, Callable[[str], Candidate]] = {
    "vectors": _from_vectors,
    "words": _from_words,
    "python": _from_python,
    "python-score": _from_python_score,
}
"""How a name is opened, by what stands before its first colon."""


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


def _mapped(candidate: Candidate, name: str, dim: int | None, fit_texts: Sequence[str] | None, seed: int) -> Candidate:
    """Return the candidate followed by a map that is fitted here."""
    before = candidate.encode
    if before is None:
        raise ConfigError(f"+{name} maps embeddings, and this candidate only scores pairs: {candidate.protocol}.")
    if not fit_texts:
        raise ConfigError(f"+{name} is fitted on unlabelled texts, and there are none. Name some (fit_texts, --texts).")
    if name == "whiten":
        from samesense.encoder.whitening import Whitening

        whitening = Whitening.fit(before(fit_texts), dim)
        apply: Callable[[Embeddings], Embeddings] = whitening.apply
        words = f"whitened to {whitening.matrix.shape[1]} dimensions"
    else:
        from samesense.encoder.flow import fit_flow

        if dim is not None:
            raise ConfigError(f"A flow keeps every dimension; received +flow:{dim}. Write +flow.")
        apply = fit_flow(before(fit_texts), seed=seed).apply_to
        words = f"flow of seed {seed}"

    def run(texts: Sequence[str]) -> Embeddings:
        return apply(before(texts))

    return _embedder(cache_embeddings(run), f"{candidate.protocol}, {words} fitted on {len(fit_texts)} texts")
