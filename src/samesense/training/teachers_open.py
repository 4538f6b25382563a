"""Teachers by name: how each embeds, and a text that tells it from every other."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from samesense.encoder.candidates import open_candidate
from samesense.errors import ConfigError
from samesense.files import content_hash
from samesense.types import Encode, PoolingName, Precision

_NAME = re.compile(r"(?P<base>.+?)(?P<maps>(?:\+(?:whiten|flow)(?::\d+)?)*)")

PIECE = 2**20
"""Bytes of a file that are hashed at once."""


@dataclass(frozen=True)
class Teacher:
    """Something that embeds, to be learnt from.

    Attributes:
        name: as it was asked for.
        identity: everything that decides its vectors, but for the texts on which a map of it is fitted.
        encode: from the texts of a corpus, and a folder for what a killed run need not compute again, to the function
            that embeds them.
    """

    name: str
    identity: str
    encode: Callable[[Sequence[str], Path], Encode]


def split_maps(name: str) -> tuple[str, str]:
    """Return what a name names, and the maps behind it, as ``("a/model", "+whiten:64")``; a path may hold a plus."""
    match = _NAME.fullmatch(name)
    return (match["base"], match["maps"]) if match else (name, "")


def open_teacher(
    name: str, *, precision: Precision = "auto", pooling: PoolingName | None = None, device: str | None = None
) -> Teacher:
    """Open what ``name`` names.

    Args:
        name: as :func:`~samesense.encoder.candidates.open_candidate` takes it: a model folder or hub name, with its own
            tokenizer and pooling; ``vectors:FILE``; ``words:PATH``. With ``+whiten`` or ``+flow`` behind it, the map is
            fitted on the corpus to be embedded, whose embeddings are then held in memory meanwhile.
        precision: arithmetic of models; ``"auto"`` is bfloat16 where the device computes in it.
        pooling: of models; ``None`` is their own, or mean for a bare transformer.
        device: torch device of models; ``None`` lets sentence-transformers choose.

    Raises:
        ConfigError: if it does not embed, cannot be told from others (a function), or has a map behind it and a pooling
            is asked for.
        ModelError: if it cannot be read.
    """
    base, maps = split_maps(name)
    kind, colon, place = base.partition(":")
    if colon and kind in ("python", "python-score"):
        raise ConfigError(
            f"The vectors of a teacher are kept, and those of a function, which may change, cannot be: {name}. "
            "Write them with samesense encode, and name the file: vectors:FILE."
        )
    if colon and kind in ("vectors", "words"):
        encode = _candidate(base)
        file, _, option = place.partition("?")
        identity = f"{kind} {option} sha256 {_content(Path(file).expanduser())}"
        arithmetic: Precision = "float32"
    else:
        if maps and pooling is not None:
            raise ConfigError(
                f"A pooling is chosen for a teacher without a map behind it; received {name} and {pooling}. Save the "
                "model with its pooling first, or leave one of them out."
            )
        encode, identity, arithmetic = _model(base, precision, pooling, device)
    if not maps:
        return Teacher(name, identity, lambda texts, work: encode)

    def fitted(texts: Sequence[str], work: Path) -> Encode:
        return _candidate(name, precision=arithmetic, device=device, fit_texts=texts, cache=work)

    return Teacher(name, f"{identity} {maps}", fitted)


def _candidate(name: str, **how: Any) -> Encode:
    encode = open_candidate(name, **how).encode
    if encode is None:
        raise ConfigError(f"A teacher gives one vector a sentence; {name} only scores pairs. Take what embeds.")
    return encode


def _model(
    name: str, precision: Precision, pooling: PoolingName | None, device: str | None
) -> tuple[Encode, str, Precision]:
    from samesense.encoder.build import build, resolve
    from samesense.encoder.cross import is_cross_encoder
    from samesense.encoder.encode import as_encode
    from samesense.encoder.identity import model_identity
    from samesense.encoder.precision import inference_precision

    if is_cross_encoder(resolve(name)):
        raise ConfigError(
            f"A teacher gives one vector a sentence; {name} is a cross-encoder, which reads two. Take a bi-encoder."
        )
    model = build(name, pooling=pooling, device=device)
    arithmetic = inference_precision(precision, model.device)
    return as_encode(model, precision=arithmetic), model_identity(model, arithmetic), arithmetic


def _content(place: Path) -> str:
    """Return the SHA-256 of a file, with the texts that belong to an array, or of the files of a folder."""
    found = sorted(place.iterdir()) if place.is_dir() else [place]
    if place.suffix == ".npy":
        found.append(place.with_suffix(".txt"))
    files = [path for path in found if path.is_file()]
    return content_hash(part for path in files for part in (f"{path.name} {path.stat().st_size} ".encode(), path))
