"""The pieces that a tokenizer cuts a text into, and which of them a model reads.

Two texts that differ in an unread piece (behind the cut, or unknown to the tokenizer) are different, even if their
vectors are equal. Case and accents that the tokenizer's normalizer removes count as read.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tokenizers import Encoding

Piece = int | str
"""The id of a token, or the text itself where the tokenizer has no token for it."""

_Token = tuple[int, str, int, int]

_NO_SIGN = frozenset({"Zs", "Zl", "Zp", "Cc", "Cf", "Cs", "Mn", "Mc", "Me"})
"""Unicode categories of characters that may be ignored: spaces, control characters, combining marks."""

_NEW_SIGNS = frozenset({"Co", "Cn"})
"""Unicode categories of private and unassigned characters; some tokenizers drop these like control characters, also
characters that are newer than their Unicode tables."""

_SPACES = " \u2581\u0120\u010a"
"""Characters that stand for a space or a line break in tokens."""


@dataclass(frozen=True)
class Pieces:
    """A text as a model reads it.

    Attributes:
        all: all pieces, with the ones that are read first; in reverse if the model cuts off the beginning.
        read: number of pieces that the model reads.
        has_known: whether the tokenizer knows any of them.
    """

    all: tuple[Piece, ...]
    read: int
    has_known: bool

    @property
    def cut(self) -> bool:
        """Whether the model reads only part of the text."""
        return self.read < len(self.all)

    @cached_property
    def strange(self) -> tuple[str, ...]:
        """The pieces that the tokenizer does not know, sorted."""
        return tuple(sorted(piece for piece in self.all if isinstance(piece, str)))

    @property
    def whole(self) -> bool:
        """Whether the model reads the whole text."""
        return not self.cut and not self.strange


def differ_unread(first: Pieces, second: Pieces) -> bool:
    """Return whether two texts differ in a piece that the model did not read."""
    if first.all == second.all:
        return False
    if first.strange != second.strange or not (first.has_known and second.has_known):
        return True
    if not (first.cut or second.cut):
        return False
    # pieces equal at the end cannot make the texts differ; an earlier unread piece can
    same = _same_at_end(first.all, second.all)
    return len(first.all) - same > first.read or len(second.all) - same > second.read


def _same_at_end(first: Sequence[Piece], second: Sequence[Piece]) -> int:
    """Return the number of equal pieces, counted from the end."""
    same = 0
    for a, b in zip(reversed(first), reversed(second), strict=False):
        if a != b:
            break
        same += 1
    return same


@dataclass(frozen=True)
class Cutter:
    """Turns encodings of the ``tokenizers`` library into pieces.

    Attributes:
        unknown: id of the unknown token, if there is one.
        longest: maximum length in tokens, special tokens included; ``None`` for no limit.
        prompt: text that is read before every text.
        fold: normalizer of the tokenizer, ``None`` for none.
        from_end: whether the model cuts off the beginning of a text.
    """

    unknown: int | None
    longest: int | None = None
    prompt: str = ""
    fold: Any = None
    from_end: bool = False

    def pieces(self, text: str, encoding: Encoding) -> Pieces:
        """Return the pieces of a text from the encoding of prompt and text, special tokens included."""
        cut_tokens = 0 if self.longest is None else max(0, len(encoding.ids) - self.longest)
        tokens = self._tokens(encoding)
        placed: list[tuple[int, Piece]] = [(0, sign) for sign in self._dropped(text)]
        any_known = False
        end = 0
        for position, (token_id, token, start, stop) in enumerate(tokens):
            if start > end:
                placed += [(position, piece) for piece in self._between(text, end, start)]
            if token_id == self.unknown:
                placed.append((position, self._folded(text[start:stop])))
            else:
                placed.append((position, token_id))
                any_known = any_known or bool(token.strip(_SPACES))
            end = max(end, stop)  # tokens of one character may share its span
        placed += [(len(tokens), piece) for piece in self._between(text, end, len(text))]
        if self.from_end:  # reversed, so that the pieces that are read come first
            read = sum(position >= cut_tokens for position, _ in placed)
            return Pieces(tuple(piece for _, piece in reversed(placed)), read, any_known)
        if cut_tokens:
            read = sum(position < len(tokens) - cut_tokens for position, _ in placed)
        else:
            read = len(placed)
        return Pieces(tuple(piece for _, piece in placed), read, any_known)

    def _tokens(self, encoding: Encoding) -> list[_Token]:
        """Return id, token, start and end of each token of the text itself."""
        columns = encoding.ids, encoding.tokens, encoding.offsets, encoding.special_tokens_mask
        tokens = [
            (token_id, token, start, end)
            for token_id, token, (start, end), special in zip(*columns, strict=True)
            if not special
        ]
        skipped = len(self.prompt)
        if not skipped:
            return tokens
        return [
            (token_id, token, max(0, start - skipped), end - skipped)
            for token_id, token, start, end in tokens
            if end > skipped
        ]

    def _dropped(self, text: str) -> list[str]:
        """Return the characters that the normalizer drops, of the categories :data:`_NEW_SIGNS`."""
        # ASCII has no private or unassigned characters, and most texts end here.
        if text.isascii() or self.fold is None:
            return []
        new = [sign for sign in text if unicodedata.category(sign) in _NEW_SIGNS]
        return [sign for sign in new if not self.fold.normalize_str(sign)]

    def _between(self, text: str, start: int, end: int) -> list[str]:
        """Return the text between two tokens, without spaces and marks, as a piece if anything is left."""
        between = text[start:end]
        # Nothing or a space is between nearly all tokens, and this is asked for each of them.
        if not between or between.isspace():
            return []
        remaining = "".join(sign for sign in between if unicodedata.category(sign) not in _NO_SIGN)
        if not remaining:
            return []
        return [self._folded(remaining)]

    def _folded(self, text: str) -> str:
        """Return unknown text after the tokenizer's normalizer, so that case and accents compare as it reads them."""
        folded = text if self.fold is None else self.fold.normalize_str(text)
        return unicodedata.normalize("NFKC", folded).strip(_SPACES) or text


def whole(texts: Sequence[str]) -> list[Pieces]:
    """Return pieces that count as read whole, for models without a tokenizer."""
    return [Pieces((), 0, has_known=True)] * len(texts)
