"""Teachers by name: how each embeds, and a text that tells it from every other."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from samesense.errors import ConfigError
from samesense.inference.models.load import load
from samesense.inference.models.maps import apply_maps
from samesense.inference.names import split_kind, split_maps
from samesense.training.teachers import Teacher
from samesense.types import Encode, PoolingName, Precision


def open_teacher(name: str, *, precision: Precision = "auto", pooling: PoolingName | None = None) -> Teacher:
    """Open what ``name`` names.

    With ``+whiten`` behind the name, the map is fitted on the corpus to be embedded, whose embeddings are
    then held in memory meanwhile. ``pooling`` is ``None`` for the model's own, or mean for a bare transformer.

    Raises:
        ConfigError: if it does not embed, or has no identity (a function).
        ModelError: if it cannot be read.
    """
    base, maps = split_maps(name)
    # Stored vectors, functions and the like have no pooling.
    model = load(base, precision=precision, pooling=None if split_kind(base)[0] else pooling)
    if not model.embeds:
        raise ConfigError(
            f"A teacher gives one vector a sentence; {name} only scores pairs ({model.protocol}). Take what embeds."
        )

    def encode(texts: Sequence[str], work: Path) -> Encode:
        if not maps:
            return model.encode
        # The map is fitted on the vectors of the very texts that are encoded after it.
        model.remember(work)
        return apply_maps(model, maps, texts, cache=True).encode

    return Teacher(name, f"{model.identity} {maps}" if maps else model.identity, encode)
