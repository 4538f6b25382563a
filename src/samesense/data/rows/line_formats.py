"""Text files whose lines are those of another format: refused where that is certain, else named in a warning."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Sequence
from itertools import pairwise
from pathlib import PurePath
from typing import NamedTuple

from samesense.data.conventions.column_names import KNOWN_NAMES, normalize_name
from samesense.data.conventions.numbers import is_number
from samesense.data.rows.compression import split_suffix
from samesense.data.rows.delimited import RULE, WRITE_CSV
from samesense.errors import DataError
from samesense.failures import excerpt
from samesense.files import is_special

logger = logging.getLogger(__name__)

_AS_TEXTS = "If each line is a text, give the file as standard input (-), or as JSON lines with a key text."
"""What is done where a file of texts is refused."""

_WRITE_TEXTS = "Write the texts alone, one a line."

_ENDINGS = {
    ".yaml": "YAML, which is not read",
    ".yml": "YAML, which is not read",
    ".toml": "settings in TOML",
    ".ini": "settings",
    ".properties": "settings",
    ".bib": "BibTeX",
    ".ris": "references",
    ".nbib": "references",
    ".tex": "LaTeX",
    ".po": "translations of gettext",
    ".pot": "translations of gettext",
    ".sql": "statements of SQL",
    ".srt": "subtitles",
    ".vtt": "subtitles",
    ".ass": "subtitles",
    ".ssa": "subtitles",
    ".sbv": "subtitles",
    ".lrc": "subtitles",
    ".conll": "tokens with their labels",
    ".conllu": "tokens with their labels",
    ".xml": "XML",
    ".tmx": "XML",
    ".xls": "a workbook",
    ".xlsx": "a workbook",
    ".xlsm": "a workbook",
    ".ods": "a workbook",
    ".mbox": "mails with their headers",
    ".eml": "mails with their headers",
}
"""Endings of text files that hold no texts one a line, and what they hold."""


_WARNED = set[str]()
"""Sources with a warning, which are read several times."""

_FEWEST_LINES = 3
"""Lines from which on what they have in common is hardly chance."""


_MARK_OF_LINE = re.compile(r"^\s*(?:[^\s.)\]]{1,8}[.)\]]|[(\[]\w{1,4}[)\]]|[^\t.:]{1,40}:|[^\w\s])\t+(?=\S)")
"""A number, a bullet or a speaker, with the tab before what it stands for, as in documents."""


def describe_no_document(lines: Sequence[str]) -> str:
    """Return what the lines of a text file are, and the fix, where they are certainly no running text; else ``""``."""
    if not lines:
        return ""
    certain = _first_format(_REFUSED, [_MARK_OF_LINE.sub("", line) for line in lines])
    if certain is None and len(lines) >= _FEWEST_LINES and all(is_number(line.strip()) for line in lines):
        certain = Format("its lines are numbers", "If they are labels, write them into one table with their texts.")
    if certain is None:
        return ""
    return f"{certain.description}. {certain.fix_for()} If it is a document nevertheless, end its name in .md."


def refuse_other_format(lines: Sequence[str], source: str) -> None:
    """Raise DataError if the first lines of a text file are those of another format; warn once if they may be.

    ``lines`` are the first of the file that are not blank. Addresses, dates and titles of pages look like tables too.
    """
    if not lines:
        return
    ending = PurePath(source.lower().removesuffix(split_suffix(source).packing)).suffix
    if ending in _ENDINGS:
        raise DataError(f"{source}: a name in {ending} is that of {_ENDINGS[ending]}. {_WRITE_TEXTS} {_AS_TEXTS}")
    certain = _first_format((*_REFUSED, _detect_mails), lines)
    if certain is not None:
        raise DataError(f"{source}: {certain.description}. {certain.fix_for(source)} {_AS_TEXTS}")
    if len(lines) < _FEWEST_LINES or source in _WARNED:
        return
    doubt = _first_format(_DOUBTS, [line.strip() for line in lines])
    if doubt is not None:
        _WARNED.add(source)
        logger.warning(f"{source}: each line is read as one text, and {doubt.description}. {doubt.fix}")


class Format(NamedTuple):
    """What the lines of a file are, and how it is read."""

    description: str
    fix: str = ""  # without one, nothing is wrong but the name, which lacks the ending of the format
    requirement: str = ""  # what a file needs besides that ending

    def fix_for(self, source: str = "") -> str:
        """Return what is to be done with ``source``; a pipe cannot be renamed."""
        rename = "Write it to a file with that ending" if is_special(source) else "Rename it"
        return self.fix or f"{rename}{self.requirement}."


_Detector = Callable[[Sequence[str]], Format | None]


def _first_format(detectors: Sequence[_Detector], lines: Sequence[str]) -> Format | None:
    return next((detected for detect in detectors if (detected := detect(lines)) is not None), None)


def _matching(pattern: str, is_enough: Callable[[int, Sequence[str]], bool], description: str, fix: str) -> _Detector:
    """Return a detector of lines of which enough match a pattern."""
    compiled = re.compile(pattern)

    def detect(lines: Sequence[str]) -> Format | None:
        count = sum(compiled.fullmatch(line.strip()) is not None for line in lines)
        return Format(description, fix) if is_enough(count, lines) else None

    return detect


def _is_most(count: int, lines: Sequence[object]) -> bool:
    # More than half, because a text may quote another format.
    return 2 * count > len(lines)


def _are_nearly_all(count: int, lines: Sequence[object]) -> bool:
    # Nine of ten, because a few rows may be damaged.
    return 10 * count >= 9 * len(lines)


def _shared_count(counts: Sequence[int]) -> int:
    """Return the count of marks that nearly all lines have; 0 if the lines differ."""
    count = max(set(counts), key=counts.count)
    return count if _are_nearly_all(counts.count(count), counts) else 0


def _table(description: str, suffix: str) -> Format:
    return Format(
        f"{description}, and its name does not end in {suffix}",
        requirement=", with the names of its columns in the first line",
    )


_ROWS = {
    "object": re.compile(r"\{\s*[\"'].*\},?"),
    "list": re.compile(r"\[\s*[\"'].*\],?"),
    # The comma after a string is searched once, ahead: it would be tried against the whole rest of the line.
    "tuple": re.compile(r"\(\s*[\"'](?=.*[\"'],\s).*[\"'\d\])]\s*\),?"),
}
"""Rows of JSON, and of programs: tuples, single quotes, and commas between the lines."""

_STRING = r'"(?:[^"\\]|\\.)*"'
_LIST_OF_TEXTS = re.compile(rf"\[\s*{_STRING}(?:\s*,\s*{_STRING}){{1,2}}\s*\]")
"""A row of JSON lines as it is read: two or three texts."""


def _detect_rows(lines: Sequence[str]) -> Format | None:
    stripped = [line.strip() for line in lines]
    for kind, pattern in _ROWS.items():
        rows = [line for line in stripped if pattern.fullmatch(line)]
        if not _is_most(len(rows), lines):
            continue
        if kind == "tuple" or any(row.endswith(",") or row[1:].lstrip().startswith("'") for row in rows):
            return Format(
                "its lines are rows in the source of a program",
                "Write them as JSON lines, of json.dumps(row) for each.",
            )
        fix = ""
        if kind == "list" and not _LIST_OF_TEXTS.fullmatch(rows[0]):
            fix = 'Write each row as an object, such as {"sentence1": ..., "sentence2": ..., "score": ...}.'
        return Format(f"each line is a JSON {kind}, and its name does not end in .jsonl", fix)
    return None


_KEY = re.compile(r'"[^"]+"\s*:')


def _detect_json(lines: Sequence[str]) -> Format | None:
    """Detect JSON over several lines."""
    if len(lines) < 2:
        return None
    first, second = (line.strip() for line in lines[:2])
    if first == "{" and _KEY.match(second):
        return Format("it is JSON over several lines, and its name does not end in .json")
    if first == "[" and second.startswith(('"', "{", "[")):
        fix = "" if second.startswith("{") else "Write the texts one a line, and rows as objects."
        return Format("it is a JSON list, and its name does not end in .json", fix)
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
    if len(lines) < _FEWEST_LINES:
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


_ITEM = re.compile(r"\s*- +(?P<key>[\w-]+):(?: .*)?")
_FIELD = re.compile(r"\s+[\w-]+:(?: .*)?")


def _detect_yaml(lines: Sequence[str]) -> Format | None:
    keys = [match["key"] for line in lines if (match := _ITEM.fullmatch(line))]
    fields = sum(_FIELD.fullmatch(line) is not None for line in lines)
    # A dialogue has names before a colon too, but not below each other within an item.
    is_list = len(keys) > 1 and len(set(keys)) == 1 and fields >= len(keys)
    if not is_list or not _is_most(len(keys) + fields, lines):
        return None
    return Format("it is YAML, which is not read", "Write its rows as JSON lines, in a file that ends in .jsonl.")


_TAG = re.compile(r"<[!A-Za-z][^<>]*>")


def _detect_markup(lines: Sequence[str]) -> Format | None:
    tagged = sum(line.lstrip().startswith("<") and line.rstrip().endswith(">") for line in lines)
    # Texts may stand between tags each, as in corpora of language models.
    if len(lines) < _FEWEST_LINES or not _TAG.fullmatch(lines[0].strip()) or not _is_most(tagged, lines):
        return None
    return Format("its lines are XML", "Write the texts one a line, or as JSON lines.")


_MAIL_KEYS = frozenset("from to subject date message-id received return-path mime-version delivered-to".split())
_KEY_OF_MAIL = re.compile(r"(?P<key>[A-Za-z-]+):\s.*")
_FEWEST_MAIL_KEYS = 4
_ENVELOPE = re.compile(r"From \S+ .*\d\d:\d\d.*")
"""The line above each mail of a mailbox."""


def _detect_mails(lines: Sequence[str]) -> Format | None:
    """Detect mails with their headers. In a folder of documents, they are texts below a few lines."""
    is_mailbox = _ENVELOPE.fullmatch(lines[0]) is not None
    header: set[str] = set()
    # A long value goes on in an indented line.
    for line in lines[is_mailbox:]:
        if not line[:1].isspace():
            match = _KEY_OF_MAIL.fullmatch(line)
            if match is None:
                break
            header.add(match["key"].lower())
    known = len(header & _MAIL_KEYS)
    if known < _FEWEST_MAIL_KEYS and not (is_mailbox and known):
        return None
    return Format("its lines are mails with their headers", _WRITE_TEXTS)


def _detect_fields(lines: Sequence[str]) -> Format | None:
    """Detect lines with as many marks each that no text has so often."""
    if len(lines) < 2:
        return None
    for mark, name in (("\t", "tabs"), ("|||", "marks |||")):
        count = _count_between_fields(lines, mark)
        if count:
            return _table(f"its lines have as many {name} each ({count}), so that it is a table", ".tsv")
    return None


_FEWEST_TABS = 3
"""Marks that are enough in most lines; comments may stand between rows."""


def _count_between_fields(lines: Sequence[str], mark: str) -> int:
    """Return how many marks most lines have; 0 if they differ, or the marks indent the lines."""
    stripped = [line.strip() for line in lines]
    # As written first: the first or last cell of a row may be empty.
    for candidates in (lines, stripped):
        counts = [line.count(mark) for line in candidates]
        count = max(set(counts), key=counts.count)
        is_shared = _is_most if count >= _FEWEST_TABS else _are_nearly_all
        if not count or not is_shared(counts.count(count), lines):
            continue
        texts = [text for text, marks in zip(stripped, counts, strict=True) if marks == count]
        indented = sum(
            line.startswith(mark * count) for line, marks in zip(candidates, counts, strict=True) if marks == count
        )
        # A few names may stand before indented lines, as in glossaries.
        if 2 * indented <= len(texts) and any(mark in text for text in texts):
            return count
    return 0


def _detect_header(lines: Sequence[str]) -> Format | None:
    # Whatever the delimiter is: two known names in one line are no text.
    names = [normalize_name(name.strip('"')) for name in re.split(r"[,;|\t]|(?<=\") (?=\")", lines[0])]
    if len(lines) < 2 or len(KNOWN_NAMES.intersection(names)) < 2:
        return None
    description = f"its first line, {excerpt(lines[0])}, has the names of columns, so that it is a table"
    return _table(description, ".csv")


_TIME = r"(?:\d+:)?\d\d?:\d\d[,.]\d{2,3}"
"""A time in subtitles."""

_REFUSED: tuple[_Detector, ...] = (
    _detect_rows,
    _detect_json,
    _matching(
        "__label__.*",
        _is_most,
        "its lines are labels and texts as fastText reads them",
        "Write them into a table, with columns label and text.",
    ),
    _matching("INSERT INTO .*", _is_most, "its lines are statements of SQL", "Write the table as CSV."),
    _detect_drawn_table,
    _detect_trec,
    _matching(
        rf"{_TIME} --> {_TIME}(?: .*)?|(?:Dialogue: \d+,)?{_TIME},{_TIME}(?:,.*)?|\[{_TIME}\].*|\{{\d+\}}\{{\d+\}}.*",
        lambda count, _: count > 1,
        "its lines are subtitles with their times",
        _WRITE_TEXTS,
    ),
    _matching(
        r'msgid ".*"',
        lambda count, _: count > 1,
        "its lines are translations of gettext",
        _WRITE_TEXTS,
    ),
    _matching(
        r'<doc id="[^"]*".* title=".*">',
        lambda count, _: count > 0,
        "it holds pages of Wikipedia between tags, as WikiExtractor writes them",
        "Have WikiExtractor write them with --json, and end the name in .jsonl.",
    ),
    _matching(
        r"PMID- \d+|TY  - \w+|@[A-Za-z]+\{[^\s,{}]+,",
        lambda count, _: count > 0,
        "its lines are references with their fields, as BibTeX, RIS and PubMed have them",
        "Export the references as CSV.",
    ),
    _detect_yaml,
    _detect_markup,
    _detect_fields,
    _detect_header,
)


def _find_numbers(lines: Sequence[str]) -> Format | None:
    if all(map(is_number, lines)):
        return Format("its lines are numbers", "If they are the labels of another file, write both into one table.")
    if _are_nearly_all(sum(map(_has_mostly_numbers, lines)), lines):
        return Format("its lines are mostly numbers", "If they are vectors or measurements, give the file of texts.")
    return None


def _has_mostly_numbers(line: str) -> bool:
    words = [word for word in re.split(r"[\s,;]+", line) if word]
    return len(words) > _FEWEST_LINES and 2 * sum(map(is_number, words)) > len(words)


_LONG_MARK = re.compile(r"[|:#+$=>~^@&<-]{2,}|\s{2,}")
_SPACES = "  "


def _find_long_marks(lines: Sequence[str]) -> Format | None:
    """Find marks of several characters between fields, such as ``||``, ``::`` and the spaces of aligned columns."""
    # Within lines only: headings and list items begin with such marks.
    marks = [[_SPACES if mark.isspace() else mark for mark in _LONG_MARK.findall(line[1:-1])] for line in lines]
    for mark in dict.fromkeys(marks[0]):
        count = _shared_count([line_marks.count(mark) for line_marks in marks])
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
        count = _shared_count([text.count(mark) for text in texts])
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


def _are_labels(labels: Sequence[str]) -> bool:
    values = set(labels)
    # Numbers of things begin lines too; labels count from 0.
    if all(map(is_number, values)) and min(map(float, values)) > 0:
        return False
    return len(values) > 1 and _USES_OF_LABEL * len(values) <= len(labels)


_RECORD_KEY = re.compile(r"(?P<key>[A-Za-z][\w.-]*):(?:\s.*)?")
_SETTING = re.compile(r"[\w.-]+\s?=.*|\[[^\]]+\]|[#;].*")

_FEWEST_KEYS = 3
"""Keys of a record; two may be those who speak in turn, or Q and A."""


def _find_records(lines: Sequence[str]) -> Format | None:
    fix = "If they are, write a table with a column for each key, or JSON lines."
    keys = [match["key"] for line in lines if (match := _RECORD_KEY.fullmatch(line))]
    # In records, the same key always follows a key.
    are_in_turn = len(set(pairwise(keys))) == len(set(keys)) >= _FEWEST_KEYS
    if _are_nearly_all(len(keys), lines) and are_in_turn and len(keys) >= 2 * len(set(keys)):
        return Format(f"they begin with the keys {', '.join(dict.fromkeys(keys))} in turn, as records", fix)
    settings = sum(_SETTING.fullmatch(line) is not None for line in lines)
    if _are_nearly_all(settings, lines) and 2 * sum("=" in line for line in lines) > len(lines):
        return Format("they have a key and a value each, as settings", fix)
    return None


_DOUBTS: tuple[_Detector, ...] = (
    _find_numbers,
    _find_long_marks,
    _find_fields,
    _find_labels,
    _matching(
        r"-?\d+\.\d+\s+\S.*",
        _are_nearly_all,
        "they begin with a number with decimals, as texts beside their scores",
        "If they are scores, write a table with a column for each; if they number sections, take them off.",
    ),
    _matching(
        r'"(?:[^"]|""|\\")+",?',
        _are_nearly_all,
        "they are in double quotes, which are read as part of the texts",
        "If a program wrote them, end its name in .csv, and write text above the first line.",
    ),
    _matching(
        r"\W?\d{1,4}[-/.]\d\d?[-/.]\d{1,4}[T ,]+\d\d?:\d\d.*",
        _are_nearly_all,
        "they begin with a date and a time, as lines of a log",
        "If these are no part of the texts, take them off.",
    ),
    _matching(
        r"(?:Q|A|Question|Answer|Frage|Antwort|F)\s?\d*[:.]\s.*",
        _is_most,
        "they begin with the mark of a question or an answer, which is read as a part of it",
        "If an answer belongs to the question before it, write a table with the columns question and answer.",
    ),
    _find_records,
)
