"""Triplets of document sections as training data."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from samesense.data.documents import Triplet, running_documents, section_triplets
from samesense.hashes import text_hash
from samesense.recipes.settings import SectionsSettings

NAMES = ("anchor", "positive", "negative")


@dataclass(frozen=True, kw_only=True)
class SectionTriplets:
    """Triplets of some documents."""

    triplets: list[Triplet]  # anchor, positive and negative, in the order of the documents
    documents: int  # how many they were drawn from
    source: str  # the files as the user gave them
    name: str  # short name for people

    def __len__(self) -> int:
        return len(self.triplets)

    @property
    def sha256(self) -> str:
        """Fingerprint of the triplets in order."""
        return text_hash("\n".join(map(json.dumps, self.triplets)))

    @property
    def summary(self) -> str:
        """One line for people."""
        return f"{len(self):,} triplets of {self.documents:,} documents of {self.name}"

    def columns(self) -> dict[str, list[str]]:
        """Return anchors, positives and negatives by name."""
        return dict(zip(NAMES, map(list, zip(*self.triplets, strict=True)), strict=True))

    def take(self, indices: Iterable[int]) -> SectionTriplets:
        """Return the triplets at these positions, in the order given."""
        return replace(self, triplets=[self.triplets[int(index)] for index in indices])


def read_triplets(sources: Sequence[str], settings: SectionsSettings) -> SectionTriplets:
    """Draw triplets from documents, see :func:`~samesense.data.documents.running_documents` for what is one.

    Raises:
        DataError: if a source cannot be read, or no document allows a triplet.
    """
    documents = [document for source in sources for document in running_documents(source)]
    return SectionTriplets(
        triplets=section_triplets(documents, settings.per_document, settings.triplets_seed),
        documents=len(documents),
        source=" + ".join(sources),
        name=" + ".join(Path(source).name for source in sources),
    )
