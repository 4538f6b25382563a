"""How a model reads texts whose cost is measured."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from samesense.inference.models.model import Model


def reader_of(model: Model) -> Callable[[Sequence[str]], object]:
    """Return what reads sentences: one by one, or two at a time where only pairs are scored."""
    if model.embeds:
        return model.encode_uncached
    # Not strict: an odd last text is left out.
    return lambda texts: model.scores_uncached(list(zip(texts[::2], texts[1::2], strict=False)))
