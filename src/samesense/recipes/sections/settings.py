"""Settings of training on section triplets; see :mod:`samesense.recipes.sections.recipe`."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from samesense.recipes.settings import EncoderSettings


class SectionsSettings(EncoderSettings):
    """Settings of section triplets; the defaults are those of the recipe's sources."""

    per_document: int = Field(100, ge=1, description="most triplets drawn from a document")
    triplets_seed: int = Field(0, ge=0, description="seed of the drawing, the same for all seeds of a model")
    distance: Literal["cosine", "euclidean"] = Field("euclidean", description="triplet: distance")
    triplet_margin: float | None = Field(
        None, ge=0, description="triplet: how much nearer the positive must be [cosine 0.5, euclidean 1]"
    )
    epochs: float = Field(1.0, gt=0, description="passes over the training data")
