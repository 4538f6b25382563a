"""Documents as what the way from documents to a model begins with: named and fingerprinted, and not read yet."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

from samesense.errors import ConfigError, DataError
from samesense.hashes import source_hash
from samesense.places import JOINT


@dataclass(frozen=True, kw_only=True)
class Documents:
    """Sources of running documents."""

    sources: tuple[str, ...]  # files, folders or names, see :func:`~samesense.data.documents.read_documents`
    fingerprints: dict[str, str]  # fingerprint of the content of each

    def __len__(self) -> int:
        return len(self.sources)

    @property
    def source(self) -> str:
        """The sources as the user gave them."""
        return JOINT.join(self.sources)

    @property
    def name(self) -> str:
        """Return a short name for messages."""
        return JOINT.join(Path(source).name for source in self.sources)

    @property
    def sha256(self) -> str:
        """Fingerprints of the sources, in their order."""
        return " ".join(self.fingerprints.values())

    @property
    def summary(self) -> str:
        """Return a description in one line."""
        return f"documents of {self.name}"

    def take(self, indices: Iterable[int]) -> NoReturn:
        """Raise ConfigError, which says what cuts documents: they are not cut to a part here."""
        raise ConfigError("Documents are cut by their number of words: corpus_words of the Origin.")


def name_documents(sources: Sequence[str], settings: object) -> Documents:
    """Return the sources with their fingerprints; whether they hold documents is seen when they are read."""
    names = tuple(map(str, sources))
    for source in names:
        _check_present(source)
    return Documents(sources=names, fingerprints={source: source_hash(source) for source in names})


def _check_present(source: str) -> None:
    """Raise DataError for a full path, with its split or without, at which there is nothing."""
    path = Path(source).expanduser()
    whole, _, _ = source.rpartition(":")
    # Any other path might be a name on the hub, which only reading can tell.
    if path.is_absolute() and not path.exists() and not (whole and Path(whole).expanduser().is_dir()):
        raise DataError(f"{source}: there is no such file or folder. Check the spelling.")
