"""What models did not read of the texts of a command: counted while they are encoded, and said once at its end.

A text is cut if it is longer than what the model reads, and unknown if its tokenizer knows nothing of it. Either has a
vector that says less than the text does, and two such texts may have the same one.
"""

from __future__ import annotations

import logging
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import wraps
from typing import Any, Literal, ParamSpec, TypeVar

from samesense.execution.progress import call_stage

logger = logging.getLogger(__name__)

What = Literal["cut", "unknown"]

_P = ParamSpec("_P")
_R = TypeVar("_R")

REMEMBERED = 1_000_000
"""Texts of a command that are told from those before them; further ones are counted as often as they come."""

SHOWN = 60
"""Characters of a text that a message shows."""

READS_ALL = {
    **dict.fromkeys(("encode", "dedup", "match", "mine"), "`chunk` reads them whole, in windows; or "),
    "similarity": "`by` sentences compares them sentence by sentence; or ",
    "explain": "`by` sentences explains them sentence by sentence; or ",
    "harvest": "a lower `max_words` leaves them out; or ",
    **dict.fromkeys(("train", "distil"), "`max_seq_length` reads more where the model can; or "),
}
"""Of a command the option by which more is read, as a message begins with it."""

LASTING = ("serve",)
"""Commands that go on until they are stopped: they say it at once, and at their end how often it was if it was more."""


@dataclass
class Kind:
    """Texts of one kind: how many, and the first, with the number of its row if that is known."""

    count: int = 0
    example: str = ""
    row: int = 0
    _known: set[int] = field(default_factory=set, repr=False)

    def add(self, text: str) -> None:
        """Count a text, unless it was counted before."""
        key = hash(text)
        if key in self._known:
            return
        if len(self._known) < REMEMBERED:
            self._known.add(key)
        self.count += 1
        self.example = self.example or text

    def see(self, texts: Sequence[str]) -> None:
        """Count texts, each once, of which none is an example."""
        if len(self._known) >= REMEMBERED:
            self.count += len(texts)
            return
        before = len(self._known)
        self._known.update(map(hash, texts))
        self.count += len(self._known) - before

    def take(self, other: Kind) -> None:
        """Count what another has counted."""
        fresh = other._known - self._known
        self.count += len(fresh) + other.count - len(other._known)
        if len(self._known) < REMEMBERED:
            self._known |= fresh
        if not self.example:
            self.example, self.row = other.example, other.row

    def has(self, text: str) -> bool:
        """Return whether a text was counted."""
        return hash(text) in self._known


class Unread:
    """What was not read of the texts that were encoded.

    Attributes:
        command: in which they were, or ``""``.
        texts: how many different ones were encoded.
        longest: tokens that the model reads of a text.
        unit: what these are, if no tokens.
        cut: texts that are longer.
        unknown: texts of which the tokenizer knows nothing.
    """

    def __init__(self, command: str = "") -> None:
        self.command, self.longest, self.unit = command, 0, "tokens"
        self.cut, self.unknown, self._texts = Kind(), Kind(), Kind()
        self._said: dict[str, int] = {}
        self._rows: list[tuple[Sequence[str], Sequence[int] | None]] = []

    @property
    def texts(self) -> int:
        """How many different texts were encoded; of a command that goes on until it is stopped, how many in all."""
        return self._texts.count

    @texts.setter
    def texts(self, count: int) -> None:
        self._texts = Kind(count)

    def see(self, texts: Sequence[str]) -> None:
        """Count texts that are encoded."""
        self._texts.see(texts)

    @property
    def any(self) -> bool:
        """Whether there is anything to say."""
        return bool(self.cut.count or self.unknown.count)

    @property
    def figures(self) -> dict[str, int]:
        """The counts that are not 0, as JSON types."""
        counts = {"cut": self.cut.count, "unknown": self.unknown.count}
        return {name: count for name, count in counts.items() if count}

    @property
    def summary(self) -> dict[str, Any]:
        """What there is to say as JSON types, for :meth:`add_summary` in another process; empty for nothing."""
        if not self.any:
            return {}
        kinds = {"cut": self.cut, "unknown": self.unknown}
        parts = {name: [kind.count, self._row(kind.example), _short(kind.example)] for name, kind in kinds.items()}
        return {"texts": self.texts, "longest": self.longest, "unit": self.unit, **parts}

    def add_summary(self, summary: Mapping[str, Any], rows: int = 0) -> None:
        """Count what another process counted; its first row is behind so many ``rows``."""
        if not summary:
            return
        other = Unread()
        other.texts, other.longest, other.unit = summary["texts"], summary["longest"], summary["unit"]
        for name, kind in (("cut", other.cut), ("unknown", other.unknown)):
            kind.count, row, kind.example = summary[name]
            kind.row = rows + row if row else 0
        self.take(other)

    def name_rows(self, texts: Sequence[str], places: Sequence[int] | None = None) -> None:
        """Say which texts the rows of a source hold, so that an example has a number; rows count from 0."""
        self._rows.append((texts, places))

    def kind_of(self, text: str) -> What | None:
        """Return what was not read of a text."""
        return "cut" if self.cut.has(text) else "unknown" if self.unknown.has(text) else None

    def take(self, other: Unread) -> None:
        """Count what another has counted."""
        if self.command in LASTING:
            self.texts += other.texts  # its memory does not grow with them
        else:
            self._texts.take(other._texts)
        if other.longest > self.longest:
            self.longest, self.unit = other.longest, other.unit
        for mine, theirs in ((self.cut, other.cut), (self.unknown, other.unknown)):
            mine.take(theirs)
        self._rows += other._rows

    def among(self, texts: Sequence[str]) -> Unread:
        """Return what was not read of some of the texts."""
        own = Unread(self.command)
        own.longest, own.unit = self.longest, self.unit
        distinct = list(dict.fromkeys(texts))
        own.see(distinct)
        for mine, all_of_it in ((own.cut, self.cut), (own.unknown, self.unknown)):
            for text in distinct:
                if all_of_it.has(text):
                    mine.add(text)
        return own

    def lines(self) -> list[str]:
        """Return what there is to say, in words."""
        said = []
        if self.cut.count:
            said.append(
                f"{self.cut.count} of {self.texts} texts are longer than the {self.longest} {self.unit} that the model "
                f"reads, and the rest of each was left out{self._such_as(self.cut)}. "
                f"{_sentence(READS_ALL.get(self.command, '') + 'take a model that reads more, or split them')}."
            )
        if self.unknown.count:
            said.append(
                f"{self.unknown.count} of {self.texts} texts hold nothing that the model knows"
                f"{self._such_as(self.unknown)}; it cannot tell them apart. Take a model that knows their language or "
                "signs, or leave them out."
            )
        return said

    def say(self) -> None:
        """Log it, unless it was logged before and there is no more."""
        if self.figures == self._said:
            return
        self._said = self.figures
        for line in self.lines():
            logger.warning(line)

    def _such_as(self, kind: Kind) -> str:
        text = kind.example
        if not text:
            return ""
        shown = repr(_short(text))
        return f", such as row {row}: {shown}" if (row := kind.row or self._row(text)) else f", such as {shown}"

    def _row(self, text: str) -> int:
        """Return the number of the first row with a text, from 1, or 0 if it is not known."""
        for texts, places in self._rows:
            for place, other in enumerate(texts):
                if other == text:
                    return 1 + (place if places is None else places[place])
        return 0


def _short(text: str) -> str:
    return text if len(text) <= SHOWN else f"{text[: SHOWN - 3]}..."


def _sentence(words: str) -> str:
    return words[0].upper() + words[1:]


_commands: list[Unread] = []
_told: weakref.WeakSet[Any] = weakref.WeakSet()


@contextmanager
def counted(command: str = "", *, apart: bool = False) -> Iterator[Unread]:
    """Count what is not read, and say it at the end, unless the caller counts too and will.

    ``apart`` neither says it nor hands it on.
    """
    outer, mine = (_commands[-1] if _commands else None), Unread(command)
    _commands.append(mine)
    try:
        yield mine
    finally:
        _commands.remove(mine)
        if not apart:
            if outer is None:
                mine.say()
            else:
                outer.take(mine)


def says_unread(function: Callable[_P, _R]) -> Callable[_P, _R]:
    """Have a function of the library say at its end what was not read, and that it is at work, as its command does."""
    name = getattr(function, "__name__", "")

    @wraps(function)
    def saying(*args: _P.args, **how: _P.kwargs) -> _R:
        with call_stage(name), counted(name):
            return function(*args, **how)

    return saying


def say_now() -> None:
    """Say what the present command has counted so far; at its end it is said again only if it is more."""
    if _commands:
        _commands[-1].say()
        for one in _commands:
            one._said = _commands[-1].figures


def current() -> Unread | None:
    """Return what the present command has counted so far."""
    return _commands[-1] if _commands else None


def note(found: Unread, model: object) -> None:
    """Count what was not read by one call of a model.

    Outside a command it is said at once, the first time that the model meets such a text.
    """
    if _commands:
        command = _commands[-1]
        first = not command.any
        command.take(found)
        if first and command.command in LASTING:
            say_now()
    elif found.any and model not in _told:
        _told.add(model)
        found.say()


def name_rows(texts: Sequence[str], places: Sequence[int] | None = None) -> None:
    """Say which texts the rows of a command's source hold; see :meth:`Unread.name_rows`."""
    if _commands:
        _commands[-1].name_rows(texts, places)
