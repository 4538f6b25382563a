"""Lines of a text file that may be another format: a table, labelled texts, numbers, a log or records."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import NamedTuple

from samesense.data.conventions.numbers import is_number

FEWEST_LINES = 3
"""Lines from which on what they have in common is hardly chance."""


class Format(NamedTuple):
    """What the lines of a file are, and how it is read."""

    description: str
    fix: str


def find_doubt(lines: Sequence[str]) -> Format | None:
    """Return what lines may be instead of one text each; ``None`` if they are most likely texts."""
    if len(lines) < FEWEST_LINES:
        return None
    stripped = [line.strip() for line in lines]
    for find in _FINDERS:
        doubt = find(stripped)
        if doubt is not None:
            return doubt
    return None


def shared_count(counts: Sequence[int]) -> int:
    """Return the count of marks that nearly all lines have; 0 if the lines differ."""
    count = max(set(counts), key=counts.count)
    return count if _are_nearly_all(counts.count(count), counts) else 0


def _are_nearly_all(count: int, lines: Sequence[object]) -> bool:
    # Nine of ten, because a few rows may be damaged.
    return 10 * count >= 9 * len(lines)


def _find_numbers(lines: Sequence[str]) -> Format | None:
    if all(map(is_number, lines)):
        return Format("its lines are numbers", "If they are the labels of another file, write both into one table.")
    if _are_nearly_all(sum(map(_has_mostly_numbers, lines)), lines):
        return Format("its lines are mostly numbers", "If they are vectors or measurements, give the file of texts.")
    return None


def _has_mostly_numbers(line: str) -> bool:
    words = [word for word in re.split(r"[\s,;]+", line) if word]
    return len(words) > FEWEST_LINES and 2 * sum(map(is_number, words)) > len(words)


_LONG_MARK = re.compile(r"[|:#+$=>~^@&<-]{2,}|\s{2,}")
_SPACES = "  "


def _find_long_marks(lines: Sequence[str]) -> Format | None:
    """Find marks of several characters between fields, such as ``||``, ``::`` and the spaces of aligned columns."""
    # Within lines only: headings and list items begin with such marks.
    marks = [[_SPACES if mark.isspace() else mark for mark in _LONG_MARK.findall(line[1:-1])] for line in lines]
    for mark in dict.fromkeys(marks[0]):
        count = shared_count([line_marks.count(mark) for line_marks in marks])
        # Two spaces may follow a sentence or the number of a list item, and hyphens may be a dash.
        fewest = 2 if mark == _SPACES or not mark.strip("-") else 1
        if count >= fewest:
            name = "several spaces" if mark == _SPACES else repr(mark)
            return Format(
                f"its lines have {count + 1} fields each, separated by {name}, as a table may",
                "If it is one, write tabs between the fields, and the names of the columns in the first line, as .tsv.",
            )
    return None


_MARKS = {"|": "bar", ";": "semicolon", ",": "comma"}
"""Marks between fields, with their names in the option ``delimiter``."""


def _find_fields(lines: Sequence[str]) -> Format | None:
    # An entity of HTML ends in a semicolon.
    texts = [re.sub(r"&#?\w+;", "&", line) for line in lines]
    for mark, name in _MARKS.items():
        count = shared_count([text.count(mark) for text in texts])
        rows = [text.split(mark) for text in texts if text.count(mark) == count]
        # Texts have commas; a number as the last field of all lines is a label or a date.
        ends_in_numbers = count > 1 and all(is_number(cells[-1]) for cells in rows)
        # Each line of a verse may end in a comma; in a table few last cells are empty.
        complete_rows = [cells for cells in rows if cells[-1]]
        are_cells = 2 * len(complete_rows) > len(rows) and all(map(_are_separated, complete_rows))
        if count and (mark == "|" or ends_in_numbers or are_cells):
            return Format(
                f"its lines have {count + 1} fields each, separated by {mark!r}, as a table may",
                f"If it is one, end its name in .csv, and give `delimiter` {name}.",
            )
    return None


_LAST_WITHOUT_SPACES = "\u0e00"
"""Thai, Chinese and Japanese, which come after it, have no spaces between words and after commas."""


def _are_separated(cells: Sequence[str]) -> bool:
    """Return whether marks stand between cells as in a table: without a space, as texts have it, or a number around."""
    for left, right in pairwise(cells):
        is_number_around = left[-1:].isdigit() and right[:1].isdigit()
        is_one_text = left[-1:] > _LAST_WITHOUT_SPACES and right[:1] > _LAST_WITHOUT_SPACES
        if not right or right[0].isspace() or is_number_around or is_one_text:
            return False
    return True


_LABEL = r"(?P<label>[^\s,;|]{1,20})"
_LABELS = {
    "end": (
        re.compile(rf".*\S(?:[,;|]|\s[,;|]\s){_LABEL}"),
        re.compile(r".*\s(?P<label>O|[BIES]-\w+|[A-Z]{2,}|[01])"),
    ),
    "begin": (
        re.compile(rf"{_LABEL}(?:[,;|](?=\S)|\s[,;|]\s).+"),
        re.compile(r"(?P<label>[A-Z]{2,}(?::\w+)?|-?[0-9])\s.+"),
    ),
}
"""Labels beside a text: after or before a mark that is written as no comma of a text is, or in capitals or digits."""

_USES_OF_LABEL = 3
"""Fewest lines for each label on average."""


def _find_labels(lines: Sequence[str]) -> Format | None:
    for side, patterns in _LABELS.items():
        for pattern in patterns:
            labels = [match["label"] for line in lines if (match := pattern.fullmatch(line))]
            if _are_nearly_all(len(labels), lines) and _are_labels(labels):
                examples = " or ".join(map(repr, sorted(set(labels))[:2]))
                return Format(
                    f"they {side} in one of few words, such as {examples}, as texts beside their labels",
                    "If they are labels, write a table with the columns text and label.",
                )
    return None


_SCORE = re.compile(r"-?\d+\.\d+\s+\S.*")


def _find_scores(lines: Sequence[str]) -> Format | None:
    if not _are_nearly_all(sum(_SCORE.fullmatch(line) is not None for line in lines), lines):
        return None
    return Format(
        "they begin with a number with decimals, as texts beside their scores",
        "If they are scores, write a table with a column for each; if they number sections, take them off.",
    )


def _are_labels(labels: Sequence[str]) -> bool:
    values = set(labels)
    # Numbers of things begin lines too; labels count from 0.
    if all(map(is_number, values)) and min(map(float, values)) > 0:
        return False
    return len(values) > 1 and _USES_OF_LABEL * len(values) <= len(labels)


_QUOTED = re.compile(r'"(?:[^"]|""|\\")+",?')


def _find_quotes(lines: Sequence[str]) -> Format | None:
    if not _are_nearly_all(sum(_QUOTED.fullmatch(line) is not None for line in lines), lines):
        return None
    return Format(
        "they are in double quotes, which are read as part of the texts",
        "If a program wrote them, end its name in .csv, and write text above the first line.",
    )


_TIME = re.compile(r"\W?\d{1,4}[-/.]\d\d?[-/.]\d{1,4}[T ,]+\d\d?:\d\d.*")


def _find_times(lines: Sequence[str]) -> Format | None:
    if not _are_nearly_all(sum(_TIME.match(line) is not None for line in lines), lines):
        return None
    return Format(
        "they begin with a date and a time, as lines of a log", "If these are no part of the texts, take them off."
    )


_KEY = re.compile(r"(?P<key>[A-Za-z][\w.-]*):(?:\s.*)?")
_SETTING = re.compile(r"[\w.-]+\s?=.*|\[[^\]]+\]|[#;].*")

_FEWEST_KEYS = 3
"""Keys of a record; two may be those who speak in turn, or Q and A."""


def _find_records(lines: Sequence[str]) -> Format | None:
    fix = "If they are, write a table with a column for each key, or JSON lines."
    keys = [match["key"] for line in lines if (match := _KEY.fullmatch(line))]
    # In records, the same key always follows a key.
    are_in_turn = len(set(pairwise(keys))) == len(set(keys)) >= _FEWEST_KEYS
    if _are_nearly_all(len(keys), lines) and are_in_turn and len(keys) >= 2 * len(set(keys)):
        return Format(f"they begin with the keys {', '.join(dict.fromkeys(keys))} in turn, as records", fix)
    settings = sum(_SETTING.fullmatch(line) is not None for line in lines)
    if _are_nearly_all(settings, lines) and 2 * sum("=" in line for line in lines) > len(lines):
        return Format("they have a key and a value each, as settings", fix)
    return None


_FINDERS: tuple[Callable[[Sequence[str]], Format | None], ...] = (
    _find_numbers,
    _find_long_marks,
    _find_fields,
    _find_labels,
    _find_scores,
    _find_quotes,
    _find_times,
    _find_records,
)
