"""Section triplets: from documents with sections to a model that tells sentences of one section from those of another.

    samesense train documents.jsonl.gz --method sections --model runs/surrogate --output runs/sections

Triplets that are in a table already are labelled pairs of kind triple: ``samesense train triplets.tsv --loss triplet``.

Source: Ein Dor et al. 2018 for the triplets; Reimers and Gurevych 2019 for the objective; settings in
    ``configs/sections.toml``.
Differs: triplets are drawn from any documents, see :func:`~samesense.data.documents.triplets.section_triplets`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Unpack

from samesense.data.documents.running import running_documents
from samesense.data.documents.triplets import Triplet, section_triplets
from samesense.errors import MissingExtraError
from samesense.files import text_hash
from samesense.recipes.runner import How, Prepared, Trained, run_bi
from samesense.recipes.sections.settings import SectionsSettings
from samesense.training.losses.tuples import Triplet as TripletObjective

if TYPE_CHECKING:
    from datasets import Dataset
    from sentence_transformers import SentenceTransformer

NAMES = ("anchor", "positive", "negative")


@dataclass(frozen=True, kw_only=True)
class SectionTriplets:
    """Triplets of some documents.

    Attributes:
        triplets: anchor, positive and negative, in the order of the documents.
        documents: how many they were drawn from.
        source: the files as the user gave them.
        name: short name for people.
    """

    triplets: list[Triplet]
    documents: int
    source: str
    name: str

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

    def take(self, indices: Iterable[int]) -> SectionTriplets:
        """Return the triplets at these positions, in the order given."""
        return replace(self, triplets=[self.triplets[int(index)] for index in indices])


def read(sources: Sequence[str], settings: SectionsSettings) -> SectionTriplets:
    """Draw triplets from documents, see :func:`~samesense.data.documents.running.running_documents` for what is one.

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


def run(train: SectionTriplets, settings: SectionsSettings, output: Path, **how: Unpack[How]) -> Trained:
    """Train on triplets; the arguments are those of :func:`samesense.recipes.runner.run`."""

    def prepare(model: SentenceTransformer) -> Prepared:
        return Prepared(
            dataset=as_dataset(train),
            objective=lambda: TripletObjective(
                model,
                distance=settings.distance,
                triplet_margin=settings.triplet_margin,
                mini_batch_num_tokens=settings.mini_batch_num_tokens,
            ),
            account=[train.summary],
        )

    return run_bi("sections", settings, output, train, prepare, **how)


def as_dataset(train: SectionTriplets) -> Dataset:
    """Return what the trainer takes."""
    try:
        from datasets import Dataset
    except ImportError as error:
        raise MissingExtraError("datasets", "train") from error
    return Dataset.from_dict(dict(zip(NAMES, map(list, zip(*train.triplets, strict=True)), strict=True)))
