"""Triplets of document sections as training data, and the settings of the training."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from pydantic import Field

from samesense.data.documents import Document, read_documents
from samesense.data.held_out import HeldOutSections
from samesense.data.section_triplets import Triplet, draw_section_triplets
from samesense.execution.settings import with_defaults
from samesense.hashes import text_hash
from samesense.places import JOINT
from samesense.recipes.settings import KEEP_START, EncoderSettings, KeepStart

NAMES = ("anchor", "positive", "negative")


@with_defaults(epochs=1.0)
class SectionsSettings(EncoderSettings):
    """Settings of section triplets; the defaults are those of the recipe's sources."""

    per_document: int = Field(100, ge=1, description="most triplets drawn from a document")
    triplets_seed: int = Field(0, ge=0, description="seed of the drawing, the same for all seeds of a model")
    distance: Literal["cosine", "euclidean"] = Field("euclidean", description="triplet: distance")
    triplet_margin: float | None = Field(
        None, ge=0, description="triplet: how much nearer the positive must be [cosine 0.5, euclidean 1]"
    )
    keep_start: KeepStart = Field("never", description=KEEP_START)


@dataclass(frozen=True, kw_only=True)
class SectionTriplets:
    """Triplets of some documents."""

    triplets: list[Triplet]  # anchor, positive and negative, in the order of the documents
    documents: int  # how many they were drawn from
    source: str  # the files as the user gave them
    name: str  # short name for messages
    held_out: HeldOutSections | None = None  # documents that are not trained on, where some were asked for

    def __len__(self) -> int:
        return len(self.triplets)

    @property
    def sha256(self) -> str:
        """Fingerprint of the triplets in order."""
        # As JSON, so that a line break within a text does not part triplets.
        return text_hash("\n".join(map(json.dumps, self.triplets)))

    @property
    def summary(self) -> str:
        """Return a description in one line."""
        return f"{len(self):,} triplets of {self.documents:,} documents of {self.name}"

    def columns(self) -> dict[str, list[str]]:
        """Return anchors, positives and negatives by name."""
        return dict(zip(NAMES, map(list, zip(*self.triplets, strict=True)), strict=True))

    def take(self, indices: Iterable[int]) -> SectionTriplets:
        """Return the triplets at these positions, in the order given."""
        return replace(self, triplets=[self.triplets[int(index)] for index in indices])


def read_triplets(sources: Sequence[str], settings: SectionsSettings) -> SectionTriplets:
    """Draw triplets from documents, see :func:`~samesense.data.documents.read_documents` for what is one.

    Raises:
        DataError: if a source cannot be read, or no document allows a triplet.
    """
    return triplets_of([document for source in sources for document in read_documents(source)], sources, settings)


def triplets_of(documents: Sequence[Document], sources: Sequence[str], settings: SectionsSettings) -> SectionTriplets:
    """Draw triplets from documents that are read already; raises as :func:`read_triplets`."""
    return SectionTriplets(
        triplets=draw_section_triplets(documents, settings.per_document, settings.triplets_seed),
        documents=len(documents),
        source=JOINT.join(sources),
        name=JOINT.join(Path(source).name for source in sources),
    )
