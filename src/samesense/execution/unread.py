"""Counts the texts that models truncated or could not tokenize, and reports them once at the end of a command.

A text is cut if it is longer than the model's maximum length, and unknown if its tokenizer yields unknown tokens only.
The vector of such a text represents less than the text, and two such texts may share one vector.
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
from samesense.failures import shorten_text

logger = logging.getLogger(__name__)

UnreadReason = Literal["cut", "unknown"]

_P = ParamSpec("_P")
_R = TypeVar("_R")

REMEMBERED = 1_000_000
"""Texts of a command that are deduplicated before counting; beyond this number every occurrence counts."""

SHOWN = 60
"""Characters of a text that a message quotes."""

READS_ALL = {
    **dict.fromkeys(("encode", "dedup", "match", "mine"), "`chunk` reads them whole, in windows; or "),
    "similarity": "`by` sentences compares them sentence by sentence; or ",
    "explain": "`by` sentences explains them sentence by sentence; or ",
    "harvest": "a lower `max_words` leaves them out; or ",
    **dict.fromkeys(("train", "distil"), "`max_seq_length` reads more where the model can; or "),
}
"""The option of each command by which more text is read, as the start of a message."""

LASTING = ("serve",)
"""Commands that run until they are stopped: they warn at the first text, and again at the end if there were more."""


@dataclass
class TextCount:
    """A number of distinct texts, and the first of them, with its row number if known."""

    count: int = 0
    example: str = ""
    row: int = 0
    _hashes: set[int] = field(default_factory=set, repr=False)

    def add(self, text: str) -> None:
        """Count a text, unless it was counted before."""
        key = hash(text)  # hashes instead of texts, to save memory
        if key in self._hashes:
            return
        if len(self._hashes) < REMEMBERED:
            self._hashes.add(key)
        self.count += 1
        self.example = self.example or text

    def see(self, texts: Sequence[str]) -> None:
        """Count texts, each once, and keep none as an example."""
        if len(self._hashes) >= REMEMBERED:
            self.count += len(texts)
            return
        before = len(self._hashes)
        self._hashes.update(map(hash, texts))
        self.count += len(self._hashes) - before

    def take(self, added: TextCount) -> None:
        """Add the count of another kind; a text that both have seen counts once."""
        fresh = added._hashes - self._hashes
        # texts beyond the remembered ones cannot be compared, and all count
        self.count += len(fresh) + added.count - len(added._hashes)
        if len(self._hashes) < REMEMBERED:
            self._hashes |= fresh
        if not self.example:
            self.example = added.example
            self.row = added.row

    def has(self, text: str) -> bool:
        """Return whether a text was counted."""
        return hash(text) in self._hashes


class Unread:
    """What was not read of the texts that were encoded.

    Attributes:
        command: the command that encoded them, or ``""``.
        texts: number of distinct texts that were encoded.
        longest: tokens that the model reads of a text.
        unit: unit of ``longest`` where it is not tokens.
        cut: texts that are longer.
        unknown: texts that consist of unknown tokens only.
    """

    def __init__(self, command: str = "") -> None:
        self.command = command
        self.longest = 0
        self.unit = "tokens"
        self.cut = TextCount()
        self.unknown = TextCount()
        self._texts = TextCount()
        self._logged: dict[str, int] = {}
        self._rows: list[tuple[Sequence[str], Sequence[int] | None]] = []

    @property
    def texts(self) -> int:
        """Number of distinct texts that were encoded; of a command that runs until it is stopped, of all texts."""
        return self._texts.count

    @texts.setter
    def texts(self, count: int) -> None:
        self._texts = TextCount(count)

    def see(self, texts: Sequence[str]) -> None:
        """Count texts that are encoded."""
        self._texts.see(texts)

    @property
    def any(self) -> bool:
        """Whether any text was cut or unknown."""
        return bool(self.cut.count or self.unknown.count)

    @property
    def figures(self) -> dict[str, int]:
        """The counts that are not 0, as JSON types."""
        counts = {"cut": self.cut.count, "unknown": self.unknown.count}
        return {name: count for name, count in counts.items() if count}

    @property
    def summary(self) -> dict[str, Any]:
        """The counts and examples as JSON types, for :meth:`add_summary` in another process; empty if all was read."""
        if not self.any:
            return {}
        counts = {"cut": self.cut, "unknown": self.unknown}
        entries = {
            name: [count.count, self._row(count.example), shorten_text(count.example, SHOWN)]
            for name, count in counts.items()
        }
        return {"texts": self.texts, "longest": self.longest, "unit": self.unit, **entries}

    def add_summary(self, summary: Mapping[str, Any], rows: int = 0) -> None:
        """Add the counts of another process, whose first row comes after ``rows`` rows."""
        if not summary:
            return
        unread = Unread()
        unread.texts = summary["texts"]
        unread.longest = summary["longest"]
        unread.unit = summary["unit"]
        for name, kind in (("cut", unread.cut), ("unknown", unread.unknown)):
            kind.count, row, kind.example = summary[name]
            kind.row = rows + row if row else 0
        self.take(unread)

    def name_rows(self, texts: Sequence[str], row_numbers: Sequence[int] | None = None) -> None:
        """Register the texts of a source's rows, so that an example has a row number; rows count from 0."""
        self._rows.append((texts, row_numbers))

    def reason_for(self, text: str) -> UnreadReason | None:
        """Return why a text was not read whole; ``None`` if it was."""
        if self.cut.has(text):
            return "cut"
        if self.unknown.has(text):
            return "unknown"
        return None

    def take(self, unread: Unread) -> None:
        """Add the counts of another."""
        if self.command in LASTING:
            self.texts += unread.texts  # its memory does not grow with them
        else:
            self._texts.take(unread._texts)
        if unread.longest > self.longest:
            self.longest = unread.longest
            self.unit = unread.unit
        for mine, theirs in ((self.cut, unread.cut), (self.unknown, unread.unknown)):
            mine.take(theirs)
        self._rows += unread._rows

    def among(self, texts: Sequence[str]) -> Unread:
        """Return the counts of a subset of the texts."""
        subset = Unread(self.command)
        subset.longest = self.longest
        subset.unit = self.unit
        distinct = list(dict.fromkeys(texts))
        subset.see(distinct)
        for kind, whole in ((subset.cut, self.cut), (subset.unknown, self.unknown)):
            for text in distinct:
                if whole.has(text):
                    kind.add(text)
        return subset

    def lines(self) -> list[str]:
        """Return the warnings, one for each kind that was met."""
        messages = []
        if self.cut.count:
            messages.append(
                f"{self.cut.count} of {self.texts} texts are longer than the {self.longest} {self.unit} that the model "
                f"reads, and the rest of each was left out{self._such_as(self.cut)}. "
                f"{_sentence(READS_ALL.get(self.command, '') + 'take a model that reads more, or split them')}."
            )
        if self.unknown.count:
            messages.append(
                f"{self.unknown.count} of {self.texts} texts hold nothing that the model knows"
                f"{self._such_as(self.unknown)}; it cannot tell them apart. Take a model that knows their language or "
                "signs, or leave them out."
            )
        return messages

    def say(self) -> None:
        """Log the warnings, unless the same counts were logged before."""
        if self.figures == self._logged:
            return
        self._logged = self.figures
        for line in self.lines():
            logger.warning(line)

    def _such_as(self, kind: TextCount) -> str:
        text = kind.example
        if not text:
            return ""
        quoted = repr(shorten_text(text, SHOWN))
        row = kind.row or self._row(text)
        if row:
            return f", such as row {row}: {quoted}"
        return f", such as {quoted}"

    def _row(self, text: str) -> int:
        """Return the number of the first row with a text, from 1; 0 if it is unknown."""
        for texts, row_numbers in self._rows:
            for index, row_text in enumerate(texts):
                if row_text == text:
                    return 1 + (index if row_numbers is None else row_numbers[index])
        return 0


def _sentence(words: str) -> str:
    return words[0].upper() + words[1:]


_commands: list[Unread] = []  # open contexts of counted(), the innermost last
_warned_models: weakref.WeakSet[Any] = weakref.WeakSet()  # weak, so that models can be freed


@contextmanager
def counted(command: str = "", *, apart: bool = False) -> Iterator[Unread]:
    """Count what is not read, and log it at the end; a nested context hands its counts to the outer one.

    With ``apart`` the counts are neither logged nor handed on.
    """
    outer = _commands[-1] if _commands else None
    unread = Unread(command)
    _commands.append(unread)
    try:
        yield unread
    finally:
        _commands.remove(unread)
        if not apart:
            if outer is None:
                unread.say()
            else:
                outer.take(unread)


def logs_unread(function: Callable[_P, _R]) -> Callable[_P, _R]:
    """Decorate a library function to show its progress, and to log at its end what was not read, as commands do."""
    name = getattr(function, "__name__", "")

    @wraps(function)
    def saying(*args: _P.args, **kwargs: _P.kwargs) -> _R:
        with call_stage(name), counted(name):
            return function(*args, **kwargs)

    return saying


def log_unread_now() -> None:
    """Log what the present command has counted so far; its end logs again only if there is more."""
    if _commands:
        _commands[-1].say()
        # The outer contexts take these counts over, and would log them again.
        for command in _commands:
            command._logged = _commands[-1].figures


def current() -> Unread | None:
    """Return what the present command has counted so far."""
    if not _commands:
        return None
    return _commands[-1]


def note(unread: Unread, model: object) -> None:
    """Count what one call of a model did not read.

    Outside a command it is logged at once, the first time that the model meets such a text.
    """
    if _commands:
        command = _commands[-1]
        first = not command.any
        command.take(unread)
        if first and command.command in LASTING:
            log_unread_now()
    elif unread.any and model not in _warned_models:
        _warned_models.add(model)
        unread.say()


def name_rows(texts: Sequence[str], row_numbers: Sequence[int] | None = None) -> None:
    """Register the texts of the present command's rows; see :meth:`Unread.name_rows`."""
    if _commands:
        _commands[-1].name_rows(texts, row_numbers)
