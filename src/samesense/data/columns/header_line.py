"""The first line of a table without a schema: names of columns, or a row of data."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cached_property

from samesense.data.columns.text_columns import (
    MOST_LOOKED_INTO,
    NO_TEXTS,
    SNIFFED_ROWS,
    is_code,
    sniffed_rows,
    text_length,
)
from samesense.data.conventions.column_names import KNOWN_NAMES, SINGLE_NAMES, is_identifier, normalize_name
from samesense.data.conventions.named_columns import join_names, quote_columns
from samesense.data.conventions.numbers import is_number
from samesense.data.rows.compression import split_suffix
from samesense.data.rows.load import names_in
from samesense.data.rows.table_options import current_options
from samesense.errors import DataError
from samesense.types import Row

MOST_WORDS = 4
"""Most words in a column name. A longer "name" is taken for a text, in a table without a header line; a name of
exactly this length too, if the cells below it are no longer."""

SENTENCE_ENDS = (".", "?", "!", "。", "？", "！")

TITLES = ("title", "headline", "heading", "subject")
TEXTS_WITH_TITLE = tuple("text sentence body content article document description message review abstract".split())
"""Column names for titles, and for the texts that such a title belongs to."""

_USUAL_NAMES = frozenset((*KNOWN_NAMES, *SINGLE_NAMES, *TITLES, *TEXTS_WITH_TITLE, *NO_TEXTS)).union(
    """
    sentences texts titles query queries answer answers response passage context document documents name
    names product comment comments note notes summary input output prompt completion instruction
    utterance intent topic category keyword keywords phrase source target original translation left right
    first second reply post tweet email mail paragraph section line word words term terms tag tags column
    col field value positive negative anchor pos neg claim evidence caption satz text frage fragen
    antwort titel beschreibung kommentar bezeichnung inhalt texte phrases titre réponse commentaire texto
    frase oración pregunta respuesta título descripción testo domanda risposta pergunta resposta zin
    vraag antwoord текст вопрос ответ название
    文本 句子 问题 標題 标题 内容 內容 回答 答案 テキスト 文 質問 텍스트 문장 질문
    """.split()
)
"""Words that are common in column names and that a short text rarely consists of."""

_IDENTIFIER = re.compile(r"[^\W\d_]+(_\w+|\d+)|[a-z]+([A-Z][a-z]*)+")
"""Identifiers as in programs: ``user_text``, ``text2``, ``userText``."""


def refuse_text(columns: Sequence[str], source: str, rows: Sequence[Row], otherwise: str = "") -> None:
    """Raise DataError if the name of one of these columns seems to be a text, as in a file without a header line.

    Also if no name is a usual one and all look like the cells below them, because the line may then be data or a
    header. Formats with a schema, such as Parquet, are not checked.
    """
    if split_suffix(source).suffix not in (".tsv", ".csv") or current_options().header is not None:
        return
    line = FirstLine(rows)
    for name in columns:
        as_long_as_cells = len(name.split()) == MOST_WORDS >= median_words(rows, name)
        if line.has_text(name) or (as_long_as_cells and not line.holds_names):
            raise DataError(
                f"{source}: the first line of a table names its columns, and {name!r} seems to be a text. Add a header "
                f"line, or give `header` no{otherwise}. If it is the name of a column: `columns` "
                f"{quote_columns(','.join(columns))}"
            )

    if columns and not line.holds_names and all(_looks_like_cells(name, rows) for name in columns):
        names = join_names([repr(name) for name in columns])
        look = "are no usual names of columns, and look"
        if len(columns) == 1:
            look = "is no usual name of columns, and looks"
        raise DataError(
            f"{source}: the first line may be a row of data: {names} {look} like the cells below. If the first line "
            f"has the names of the columns: `columns` {quote_columns(','.join(columns))}, or `header` yes; if it is "
            "data: `header` no."
        )


def _looks_like_cells(name: str, rows: Sequence[Row]) -> bool:
    """Return whether a name is unusual, about as long as the cells below it, and ends like them."""
    cells = [str(row[name]).strip() for _, row in rows[:SNIFFED_ROWS] if row.get(name) not in (None, "")]
    if not cells or _is_name(name, cells):
        return False
    lengths = sorted(map(text_length, cells))
    # The shortest and longest tenth are ignored, so that outliers do not matter.
    tenth = len(lengths) // 10
    slack = 1.5  # lengths in characters vary more than those in words
    if " " in name.strip() or name.isascii():
        slack = 1
    if not lengths[tenth] / slack <= text_length(name) <= lengths[-1 - tenth] * slack:
        return False
    ending_count = sum(cell[-1:] in SENTENCE_ENDS for cell in cells)
    # Above cells of which four in five end like sentences, a name without such an end is one.
    return name.strip()[-1:] in SENTENCE_ENDS or 5 * ending_count < 4 * len(cells)


def _is_name(name: str, cells: Sequence[str]) -> bool:
    """Return whether a name is a usual column name, or an identifier above cells that are not identifiers."""
    words = set(normalize_name(name).split("_"))
    if words & _USUAL_NAMES or normalize_name(name) in _USUAL_NAMES or is_identifier(name):
        return True
    return _IDENTIFIER.fullmatch(name.strip()) is not None and not any(map(_IDENTIFIER.fullmatch, cells))


def median_words(rows: Sequence[Row], name: str) -> int:
    """Return the median number of words in the cells of a column."""
    lengths = sorted(len(str(cells.get(name) or "").split()) for _, cells in rows[:SNIFFED_ROWS])
    if lengths:
        return lengths[len(lengths) // 2]
    return MOST_WORDS + 1


class FirstLine:
    """The first line of a table, which holds the column names or, without a header, the first row of data."""

    def __init__(self, rows: Sequence[Row]) -> None:
        self._rows = sniffed_rows(rows)

    @cached_property
    def holds_names(self) -> bool:
        """Whether the line is certainly a header: it has a word above a column of nothing but numbers or dates."""
        columns: dict[str, list[str]] = {}
        for _, cells in self._rows:
            for name, cell in cells.items():
                if cell not in (None, ""):
                    columns.setdefault(name, []).append(str(cell).strip())
        return any(name.strip() and not is_code(name) and all(map(is_code, cells)) for name, cells in columns.items())

    @cached_property
    def _unusual(self) -> set[str]:
        """The names that could also be texts, numbers or dates."""
        return {
            name for name in self._names if is_code(name) or _ends_like_sentence(name) or len(name.split()) > MOST_WORDS
        }

    @cached_property
    def _names(self) -> list[str]:
        return names_in(self._rows)

    def has_text(self, name: str) -> bool:
        """Return whether the name of a column seems to be a text, by its length or by the way it ends.

        A name may end like a text too: ``What is your question?`` beside other names is a name, unless most cells of
        its column end with the same character.
        """
        words = len(name.split())
        if (not _ends_like_sentence(name) and words <= MOST_WORDS) or self.holds_names:
            return False
        # If every name is unusual, the line is likely data.
        if words > MOST_WORDS or self._unusual.issuperset(self._names):
            return True
        end = name.strip()[-1:]
        same_ending = [str(cells.get(name) or "").strip()[-1:] == end for _, cells in self._rows]
        return 2 * sum(same_ending) > len(same_ending)

    def is_data(self, texts: Sequence[str]) -> bool:
        """Return whether the line may be a row of data; ``texts`` are the table's text columns."""
        if any(is_number(name) or self.has_text(name) for name in self._names[:MOST_LOOKED_INTO]):
            return True
        inspected = texts[:MOST_LOOKED_INTO]
        return (
            bool(inspected) and not self.holds_names and all(_looks_like_cells(name, self._rows) for name in inspected)
        )


def _ends_like_sentence(name: str) -> bool:
    """Return whether a name ends like a sentence."""
    return name.strip()[-1:] in SENTENCE_ENDS
