"""Documents as what the way from documents to a model begins with: named and fingerprinted, and not read yet."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import NoReturn

from samesense.data.documents import Triplet, held_out, running_documents, section_triplets
from samesense.errors import ConfigError, DataError
from samesense.evaluation.sections import PER_DOCUMENT, TRIPLET_SEED
from samesense.recipes.origin.settings import OriginSettings
from samesense.recipes.origin.stages import fingerprint


@dataclass(frozen=True, kw_only=True)
class Documents:
    """Sources of running documents."""

    sources: tuple[str, ...]  # files, folders or names, see :func:`~samesense.data.documents.running_documents`
    prints: dict[str, str]  # fingerprint of the content of each

    def __len__(self) -> int:
        return len(self.sources)

    @property
    def source(self) -> str:
        """The sources as the user gave them."""
        return " + ".join(self.sources)

    @property
    def name(self) -> str:
        """Short name for people."""
        return " + ".join(Path(source).name for source in self.sources)

    @property
    def sha256(self) -> str:
        """Fingerprints of the sources, in their order."""
        return " ".join(self.prints.values())

    @property
    def summary(self) -> str:
        """One line for people."""
        return f"documents of {self.name}"

    def take(self, indices: Iterable[int]) -> NoReturn:
        """Raise ConfigError, which says what cuts documents: they are not cut to a part here."""
        raise ConfigError("Documents are cut by their number of words: corpus_words of the Origin.")


def read_documents(sources: Sequence[str], settings: object = None) -> Documents:
    """Return the sources with their fingerprints; whether they hold documents is seen when they are read."""
    named = tuple(map(str, sources))
    return Documents(sources=named, prints={source: fingerprint(source) for source in named})


def held_out_triplets(documents: Documents, origin: OriginSettings) -> list[Triplet]:
    """Return triplets of sections in the documents that the corpus leaves out, none if no document allows one."""
    every = chain.from_iterable(
        running_documents(source, language=origin.language, paragraphs=origin.paragraphs)
        for source in documents.sources
    )
    own = list(held_out(every, origin.held_out_documents))
    try:
        return section_triplets(own, PER_DOCUMENT, TRIPLET_SEED)
    except DataError:
        return []
