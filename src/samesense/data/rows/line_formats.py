"""Text files whose lines are those of another format: refused where that is certain, else named in a warning."""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Callable, Sequence
from pathlib import PurePath

from samesense.data.conventions.column_names import KNOWN_NAMES, normalize_name
from samesense.data.rows.compression import split_suffix
from samesense.data.rows.delimited import RULE, WRITE_CSV
from samesense.data.rows.line_doubts import FEWEST_LINES, Format, find_doubt, shared_count
from samesense.errors import DataError
from samesense.failures import excerpt

logger = logging.getLogger(__name__)

AS_TEXTS = "If each line is a text, give the file as standard input (-), or as JSON lines with a key text."
"""What is done where a file of texts is refused."""

_WRITE_TEXTS = "Write the texts alone, one a line."

_ENDINGS = {
    ".yaml": "YAML, which is not read",
    ".yml": "YAML, which is not read",
    ".toml": "settings in TOML",
    ".ini": "settings",
    ".properties": "settings",
    ".bib": "BibTeX",
    ".tex": "LaTeX",
    ".po": "translations of gettext",
    ".pot": "translations of gettext",
    ".sql": "statements of SQL",
    ".srt": "subtitles",
    ".vtt": "subtitles",
    ".conll": "tokens with their labels",
    ".conllu": "tokens with their labels",
    ".xml": "XML",
    ".tmx": "XML",
}
"""Endings of text files that hold no texts one a line, and what they hold."""


def refuse_other_format(lines: Sequence[str], source: str) -> None:
    """Raise DataError if the first lines of a text file are those of another format; warn if they may be a table.

    ``lines`` are the first of the file that are not blank.
    """
    if not lines:
        return
    ending = PurePath(source.lower().removesuffix(split_suffix(source).packing)).suffix
    if ending in _ENDINGS:
        raise DataError(f"{source}: a name in {ending} is that of {_ENDINGS[ending]}. {_WRITE_TEXTS} {AS_TEXTS}")
    for detect in _DETECTORS:
        detected = detect(lines)
        if detected is not None:
            raise DataError(f"{source}: {detected.description}. {detected.fix} {AS_TEXTS}")
    _warn_of_doubt(lines, source)


def _is_most(count: int, lines: Sequence[str]) -> bool:
    # More than half, because a text may quote another format.
    return 2 * count > len(lines)


def _table(description: str, suffix: str) -> Format:
    return Format(
        f"{description}, and its name does not end in {suffix}",
        "Rename it, with the names of its columns in the first line.",
    )


_OBJECT = re.compile(r"\{\s*(?P<quote>[\"']).*\}(?P<comma>,?)")
_LIST = re.compile(r"\[\s*(?P<quote>[\"']).*\](?P<comma>,?)")
"""Rows of JSON, and of Python, which writes single quotes."""

_TUPLE_START = re.compile(r"\(\s*[\"']")
_TUPLE_END = re.compile(r"[\"'\d\])]\s*\),?")
_AFTER_STRING = re.compile(r"[\"'],\s")

_ROWS_OF_PROGRAM = Format(
    "its lines are rows in the source of a program", "Write them as JSON lines, of json.dumps(row) for each."
)

_KEY = re.compile(r'\s*"[^"]+"\s*:')


def _detect_json(lines: Sequence[str]) -> Format | None:
    objects = [match for line in lines if (match := _OBJECT.fullmatch(line.strip()))]
    if _is_most(len(objects), lines):
        if any(match["comma"] or match["quote"] == "'" for match in objects):
            return _ROWS_OF_PROGRAM
        return Format("each line is a JSON object, and its name does not end in .jsonl", "Rename it.")
    lists = [match for line in lines if (match := _LIST.fullmatch(line.strip()))]
    if _is_most(len(lists), lines):
        if any(match["comma"] or match["quote"] == "'" for match in lists):
            return _ROWS_OF_PROGRAM
        fix = 'Write each row as an object, such as {"sentence1": ..., "sentence2": ..., "score": ...}.'
        if _is_list_of_texts(lines[0]):
            fix = "Rename it."
        return Format("each line is a JSON list, and its name does not end in .jsonl", fix)
    if _is_most(sum(_is_tuple(line.strip()) for line in lines), lines):
        return _ROWS_OF_PROGRAM
    if len(lines) > 1 and lines[0].strip() == "{" and _KEY.match(lines[1]):
        return Format("it is JSON over several lines, and its name does not end in .json", "Rename it.")
    if len(lines) > 1 and lines[0].strip() == "[" and lines[1].lstrip()[:1] in ('"', "{", "["):
        fix = "Rename it."
        if not lines[1].lstrip().startswith("{"):
            fix = "Write the texts one a line, and rows as objects."
        return Format("it is a JSON list, and its name does not end in .json", fix)
    return None


def _is_tuple(line: str) -> bool:
    """Return whether a line is a tuple of Python that begins with a string."""
    start = _TUPLE_START.match(line)
    if start is None:
        return False
    # In one pattern, each comma after a string would be tried against the whole rest of the line.
    comma = _AFTER_STRING.search(line, start.end())
    if comma is None:
        return False
    before_end = len(line.removesuffix(",").removesuffix(")").rstrip()) - 1
    return before_end >= comma.end() and _TUPLE_END.fullmatch(line, before_end) is not None


def _is_list_of_texts(line: str) -> bool:
    """Return whether a line is a row of JSON lines: a list of two or three texts."""
    try:
        values = json.loads(line)
    except (ValueError, RecursionError):
        return False
    return len(values) in (2, 3) and all(isinstance(value, str) for value in values)


_STARTS = {
    "__label__": (
        "are labels and texts as fastText reads them",
        "Write them into a table, with columns label and text.",
    ),
    "INSERT INTO ": ("are statements of SQL", "Write the table as CSV."),
}
"""How each line begins in other formats, what the lines are, and how they are read."""


def _detect_starts(lines: Sequence[str]) -> Format | None:
    for start, (what, fix) in _STARTS.items():
        if _is_most(sum(line.startswith(start) for line in lines), lines):
            return Format(f"its lines {what}", fix)
    return None


_FRAME = re.compile(r"\+(-+\+){2,}")
"""The upper edge of a table that is drawn with lines, as mysql does."""


def _detect_drawn_table(lines: Sequence[str]) -> Format | None:
    if _FRAME.fullmatch(lines[0].strip()) or (len(lines) > 2 and "|" in lines[0] and _is_rule(lines[1])):
        return Format("it is a table drawn with lines, which is not read", WRITE_CSV)
    return None


def _is_rule(line: str) -> bool:
    """Return whether a line is drawn below the names of columns, as in Markdown and psql."""
    drawn = line.replace("|", "+")
    return "+" in drawn and RULE.fullmatch(drawn) is not None


_JUDGEMENT = re.compile(r"(?P<query>\S+)\s+(?:0|Q0)\s+\S+\s+-?\d+")
_RANKED = re.compile(r"\S+\s+Q0\s+\S+\s+\d+\s+-?[\d.]+(?:[eE][+-]?\d+)?\s+\S+")


def _detect_trec(lines: Sequence[str]) -> Format | None:
    if len(lines) < FEWEST_LINES:
        return None
    stripped = [line.strip() for line in lines]
    judgements = [match for line in stripped if (match := _JUDGEMENT.fullmatch(line))]
    # A query has several documents; scores of matches look alike otherwise.
    are_judgements = len(judgements) == len(lines) > len({match["query"] for match in judgements})
    if not are_judgements and not all(map(_RANKED.fullmatch, stripped)):
        return None
    return Format(
        f"its lines are {'relevance judgements' if are_judgements else 'rankings'} of TREC, which name queries and "
        "documents and hold no texts",
        "Write a table of their texts, with columns query and positive.",
    )


_TIMES = re.compile(r"(?:\d+:)?\d\d:\d\d[,.]\d{3} --> (?:\d+:)?\d\d:\d\d[,.]\d{3}(?: .*)?")


def _detect_subtitles(lines: Sequence[str]) -> Format | None:
    if sum(_TIMES.fullmatch(line.strip()) is not None for line in lines) < 2:
        return None
    return Format("its lines are subtitles with their times", _WRITE_TEXTS)


_ITEM = re.compile(r"\s*- +(?P<key>[\w-]+):(?: .*)?")
_FIELD = re.compile(r"\s+[\w-]+:(?: .*)?")
_YAML = Format("it is YAML, which is not read", "Write its rows as JSON lines, in a file that ends in .jsonl.")


def _detect_yaml(lines: Sequence[str]) -> Format | None:
    keys = [match["key"] for line in lines if (match := _ITEM.fullmatch(line))]
    fields = sum(_FIELD.fullmatch(line) is not None for line in lines)
    # A dialogue has names before a colon too, but not below each other within an item.
    is_list = len(keys) > 1 and len(set(keys)) == 1 and fields >= len(keys)
    return _YAML if is_list and _is_most(len(keys) + fields, lines) else None


_TAG = re.compile(r"<[!A-Za-z][^<>]*>")


def _detect_markup(lines: Sequence[str]) -> Format | None:
    tagged = sum(line.lstrip().startswith("<") and line.rstrip().endswith(">") for line in lines)
    # Texts may stand between tags each, as in corpora of language models.
    if len(lines) < FEWEST_LINES or not _TAG.fullmatch(lines[0].strip()) or not _is_most(tagged, lines):
        return None
    return Format("its lines are XML", "Write the texts one a line, or as JSON lines.")


def _detect_fields(lines: Sequence[str]) -> Format | None:
    """Detect lines with as many marks each that no text has so often."""
    if len(lines) < 2:
        return None
    for mark, name in (("\t", "tabs"), ("|||", "marks |||")):
        count = _count_between_fields(lines, mark)
        if count:
            return _table(f"its lines have as many {name} each ({count}), so that it is a table", ".tsv")
    return None


def _count_between_fields(lines: Sequence[str], mark: str) -> int:
    """Return how many marks most lines have; 0 if they differ, or the marks only indent the lines."""
    stripped = [line.strip() for line in lines]
    # As written first: the first or last cell of a row may be empty.
    for candidates in (lines, stripped):
        counts = [line.count(mark) for line in candidates]
        count = shared_count(counts) or _frequent_count(counts)
        rows = [text for text, line_count in zip(stripped, counts, strict=True) if line_count == count]
        if count and any(mark in text for text in rows):
            return count
    return 0


_FEWEST_TABS = 3


def _frequent_count(counts: Sequence[int]) -> int:
    """Return the count of at least three marks that most lines have; comments may stand between rows."""
    count = max(set(counts), key=counts.count)
    return count if count >= _FEWEST_TABS and 2 * counts.count(count) > len(counts) else 0


def _detect_header(lines: Sequence[str]) -> Format | None:
    # Whatever the delimiter is: two known names in one line are no text.
    names = [normalize_name(name.strip('"')) for name in re.split(r"[,;|\t]|(?<=\") (?=\")", lines[0])]
    if len(lines) < 2 or len(KNOWN_NAMES.intersection(names)) < 2:
        return None
    description = f"its first line, {excerpt(lines[0])}, has the names of columns, so that it is a table"
    return _table(description, ".csv")


_DETECTORS: tuple[Callable[[Sequence[str]], Format | None], ...] = (
    _detect_json,
    _detect_starts,
    _detect_drawn_table,
    _detect_trec,
    _detect_subtitles,
    _detect_yaml,
    _detect_markup,
    _detect_fields,
    _detect_header,
)

_WARNED = set[str]()
"""Sources with a warning, which are read several times."""


def _warn_of_doubt(lines: Sequence[str], source: str) -> None:
    """Warn once of lines that may be another format; addresses, dates and titles of pages look alike."""
    doubt = find_doubt(lines)
    if doubt is None or source in _WARNED:
        return
    _WARNED.add(source)
    logger.warning(f"{source}: each line is read as one text, and {doubt.description}. {doubt.fix}")
