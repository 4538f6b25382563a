"""A text in the pieces that a tokenizer makes of it, and what of it a model does not read.

Two texts that differ in a piece that was not read are different, however alike their vectors: one behind the cut, or
one that the tokenizer does not know. What it folds, such as case and accents, it has read.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tokenizers import Encoding

Piece = int | str
"""The id of a token, or what stands in a text where the tokenizer knows nothing."""

_NO_SIGN = frozenset({"Zs", "Zl", "Zp", "Cc", "Cf", "Cs", "Mn", "Mc", "Me"})
"""Categories of Unicode of what may be left out of a text: spaces, control characters, marks on other characters."""

_NEW_SIGNS = frozenset({"Co", "Cn"})
"""Those of private signs, and of signs that are newer than a table of Unicode, which tokenizers may take for control
characters."""

_SPACES = " \u2581\u0120\u010a"
"""What tokens have in the place of a space or a line break."""


@dataclass(frozen=True)
class Pieces:
    """A text as a model reads it.

    Attributes:
        all: its pieces, those first that are read; in reverse where a model cuts off the beginning.
        read: how many of them the model reads.
        known: whether the tokenizer knows any of them.
    """

    all: tuple[Piece, ...]
    read: int
    known: bool

    @property
    def cut(self) -> bool:
        """Whether the model reads a part of it only."""
        return self.read < len(self.all)

    @cached_property
    def strange(self) -> tuple[str, ...]:
        """What the tokenizer does not know, in order of the letters."""
        return tuple(sorted(piece for piece in self.all if isinstance(piece, str)))

    @property
    def whole(self) -> bool:
        """Whether all of it is read."""
        return not self.cut and not self.strange


def differ_unread(one: Pieces, other: Pieces) -> bool:
    """Return whether texts differ in something that was not read of one of them."""
    if one.all == other.all:
        return False
    if one.strange != other.strange or not (one.known and other.known):
        return True
    if not (one.cut or other.cut):
        return False
    same = _same_at_end(one.all, other.all)
    return len(one.all) - same > one.read or len(other.all) - same > other.read


def _same_at_end(one: Sequence[Piece], other: Sequence[Piece]) -> int:
    """Return how many pieces are the same, counted from the end."""
    same = 0
    for a, b in zip(reversed(one), reversed(other), strict=False):
        if a != b:
            break
        same += 1
    return same


@dataclass(frozen=True)
class Cutter:
    """How encodings of the ``tokenizers`` library become pieces.

    Attributes:
        unknown: id of the token for what is not known, if there is one.
        longest: tokens that the model reads, with those that it adds; ``None`` for any number.
        prompt: what is read before every text.
        fold: normalizer of the tokenizer, ``None`` for none.
        from_end: the model cuts off the beginning of a text.
    """

    unknown: int | None
    longest: int | None = None
    prompt: str = ""
    fold: Any = None
    from_end: bool = False

    def pieces(self, text: str, encoding: Encoding) -> Pieces:
        """Return the pieces of a text, of its encoding behind the prompt, with the tokens that the model adds."""
        lost = 0 if self.longest is None else max(0, len(encoding.ids) - self.longest)
        own = list(self._tokens(encoding))
        found: list[tuple[int, Piece]] = [(0, sign) for sign in self._dropped(text)]
        known, end = False, 0
        for at, (number, token, start, stop) in enumerate(own):
            found += [(at, piece) for piece in self._between(text, end, start)]
            if number == self.unknown:
                found.append((at, self._folded(text[start:stop])))
            else:
                found.append((at, number))
                known = known or bool(token.strip(_SPACES))
            end = max(end, stop)
        found += [(len(own), piece) for piece in self._between(text, end, len(text))]
        if self.from_end:
            read = sum(at >= lost for at, _ in found)
            return Pieces(tuple(piece for _, piece in reversed(found)), read, known)
        read = sum(at < len(own) - lost for at, _ in found) if lost else len(found)
        return Pieces(tuple(piece for _, piece in found), read, known)

    def _tokens(self, encoding: Encoding) -> Iterator[tuple[int, str, int, int]]:
        """Yield id, token, start and end of each token of the text itself."""
        skipped = len(self.prompt)
        columns = encoding.ids, encoding.tokens, encoding.offsets, encoding.special_tokens_mask
        for number, token, (start, end), special in zip(*columns, strict=True):
            if not special and (end > skipped or not skipped):
                yield number, token, max(0, start - skipped), max(0, end - skipped)

    def _dropped(self, text: str) -> list[str]:
        """Return the signs that the tokenizer takes for none, wherever they stand."""
        if text.isascii() or self.fold is None:
            return []
        new = [sign for sign in text if unicodedata.category(sign) in _NEW_SIGNS]
        return [sign for sign in new if not self.fold.normalize_str(sign)]

    def _between(self, text: str, start: int, end: int) -> list[str]:
        """Return what stands between two tokens, if it is more than spaces and marks."""
        left = "".join(sign for sign in text[start:end] if unicodedata.category(sign) not in _NO_SIGN)
        return [self._folded(left)] if left else []

    def _folded(self, text: str) -> str:
        """Return what is not known with case and accents as the tokenizer reads them."""
        folded = text if self.fold is None else self.fold.normalize_str(text)
        return unicodedata.normalize("NFKC", folded).strip(_SPACES) or text


def whole(texts: Sequence[str]) -> list[Pieces]:
    """Return the pieces of texts that are read whole, by what is no tokenizer."""
    return [Pieces((), 0, known=True)] * len(texts)
