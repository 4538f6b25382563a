"""Bare sentences as training data: several sources joined, repeated ones left out, one fingerprint."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from samesense.data.formats.memory import Source, as_sources, name_of, short_name
from samesense.data.sentences.texts import all_texts
from samesense.errors import ConfigError, DataError
from samesense.files import content_hash


@dataclass(frozen=True, kw_only=True)
class Sentences:
    """Sentences of one or several sources, in their order.

    Attributes:
        texts: the sentences.
        source: the files, folders or names as the user gave them.
        name: short name for people.
        sha256: fingerprint of the texts in order; equal for equal texts from any file.
        left_out: how many texts of the sources were left out, by reason.
    """

    texts: list[str]
    source: str
    name: str
    sha256: str
    left_out: dict[str, int] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.texts)

    def take(self, indices: Iterable[int]) -> Sentences:
        """Return the sentences at these positions, in the order given."""
        texts = [self.texts[int(index)] for index in indices]
        return replace(self, texts=texts, sha256=fingerprint(texts))

    @property
    def account(self) -> str:
        """One line for people: how many sentences there are, and how many were left out and why."""
        reasons = ", ".join(f"{count:,} {reason}" for reason, count in self.left_out.items() if count)
        return f"{len(self):,} sentences" + (f"; left out: {reasons}" if reasons else "")


def read_unlabelled(
    sources: Source,
    *,
    keep_repeated: bool = False,
    min_chars: int | None = None,
    max_chars: int | None = None,
) -> Sentences:
    """Read sentences from one or several sources.

    Args:
        sources: text files with one sentence a line, tables with a text column or two, documents, folders saved by
            ``datasets``, hub names, or data in memory; see :func:`~samesense.data.sentences.texts.all_texts`.
        keep_repeated: keep every sentence as often as it comes, instead of its first occurrence only. Of two equal
            sentences in a batch, each would be a negative of the other.
        min_chars: leave out sentences of fewer characters.
        max_chars: leave out sentences of more characters.

    Raises:
        ConfigError: if the two lengths exclude everything.
        DataError: if a source cannot be read, or nothing is left.
        MissingExtraError: if ``datasets`` is needed and absent.
    """
    given = as_sources(sources)
    low, high = 1 if min_chars is None else min_chars, max_chars
    if low < 1 or (high is not None and high < low):
        raise ConfigError(
            f"Lengths must be 1 or more and leave a range; received {min_chars} to {max_chars} characters."
        )
    texts = [text for source in given for text in all_texts(source)]
    filled = [text for text in texts if text.strip()]
    fitting = [text for text in filled if low <= len(text) and (high is None or len(text) <= high)]
    kept = fitting if keep_repeated else list(dict.fromkeys(fitting))
    source = " + ".join(map(name_of, given))
    if not kept:
        raise DataError(
            f"{source or 'No source'}: no sentence is left of {len(texts)}, {len(texts) - len(filled)} of them empty. "
            "Give a file with one sentence a line, or with a column of texts."
        )
    return Sentences(
        texts=kept,
        source=source,
        name=" + ".join(map(short_name, given)),
        sha256=fingerprint(kept),
        left_out={
            "empty": len(texts) - len(filled),
            "too short or too long": len(filled) - len(fitting),
            "repeated": len(fitting) - len(kept),
        },
    )


def fingerprint(texts: Iterable[str]) -> str:
    """Return the SHA-256 of texts in order; where one ends and the next begins counts too."""
    encoded = (text.encode("utf-8", "surrogatepass") for text in texts)
    return content_hash(part for content in encoded for part in (len(content).to_bytes(8, "little"), content))
