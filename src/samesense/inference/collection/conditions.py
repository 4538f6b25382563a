"""Conditions on metadata, such as ``topic = 'sport' AND year >= 2020``: parsed, and compiled to SQL."""

from __future__ import annotations

import json
import math
import re
import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing
from datetime import date, time
from decimal import Decimal
from itertools import chain
from operator import index
from typing import Any, Literal, NamedTuple

from samesense.errors import ConfigError
from samesense.failures import excerpt, shortened

Where = str | Mapping[str, Any] | None
"""A condition, or values by name (a list means any of them), or nothing."""

MOST_LIKE = 50_000
"""Most bytes of a LIKE pattern; SQLite's limit."""

MOST_COMPARISONS = 480
"""Most comparisons of a condition: SQLite nests them, two levels each, up to 1,000 levels."""

MOST_WORDS = 10 * MOST_COMPARISONS
"""Most comparisons, AND, OR, NOT and parentheses of a condition together."""

MOST_DEPTH = 100
"""Most nesting of lists and objects in metadata and in the values of a condition."""

_DECIMAL = re.compile(r"[+-]?(\d+\.\d*|\.\d+)([eE][+-]?\d+)?|\+\d+", re.ASCII)
"""Numbers that Python reads and JSON does not, such as ``1.``, ``.5`` and ``+1``."""

_BEYOND = re.compile(r"-?[1-9]\d{309,}", re.ASCII)
"""Whole numbers too large for a float; int() refuses thousands of digits."""

# Possessive quantifiers: a value of megabytes must not be stored for backtracking, which could not succeed anyway.
_VALUE = r"(?:'(?:[^']++|'')*+'|[^\s()'\",<>=!]++)"
_PART = re.compile(
    rf"""\s*(?:(?P<joint>(?:AND|OR|NOT)\b|[()])
    |(?P<name>"[^"]+"|[^\s()'",<>=!]+)\s*
     (?:\bIS\s+(?P<there>NOT\s+)?NULL\b
      |(?P<sign><=|>=|!=|=|<|>|\bLIKE\b)\s*(?P<value>{_VALUE})
      |(?:\b(?P<absent>NOT)\s+)?\bIN\s*\(\s*(?P<values>{_VALUE}(?:\s*,\s*{_VALUE})*+)\s*\)))\s*""",
    re.IGNORECASE | re.VERBOSE,
)


def _as_json(value: object) -> object:
    """Return a date or time as ISO text, and a decimal as a float."""
    if isinstance(value, date | time):
        return value.isoformat()
    if isinstance(value, Decimal):
        return float(value)
    if hasattr(value, "tolist"):  # of NumPy
        return value.tolist()
    raise TypeError(f"Object of type {type(value).__name__} is not JSON serializable")


json_text = json.JSONEncoder(
    ensure_ascii=False, allow_nan=False, sort_keys=True, separators=(",", ":"), default=_as_json
).encode
"""Encodes a value as canonical JSON, equal for equal values; TypeError or ValueError for what JSON cannot hold."""


class Condition(NamedTuple):
    """A condition on the table ``text``: SQL without user input, the values it binds, and the metadata names in it."""

    sql: str = "TRUE"
    values: tuple[Any, ...] = ()
    names: tuple[str, ...] = ()


def condition(where: Where) -> Condition:
    """Return a condition as SQL; ConfigError if it cannot be parsed, or has a value that metadata cannot have."""
    try:
        if isinstance(where, str):
            return _parsed(where)
        return _of_values(where)
    except (TypeError, ValueError, AttributeError) as error:
        raise ConfigError(
            "A condition is one text, or values by name: texts of whole characters, finite numbers, dates, true, "
            f"false, null, and lists of them; received {excerpt(where)} ({shortened(error)})."
        ) from error


def check_depth(value: object) -> None:
    """Raise ValueError for lists and objects that are nested deeper than ``MOST_DEPTH``."""
    level = [value]
    for _ in range(MOST_DEPTH + 1):
        level = [inner for outer in level for inner in _inside(outer)]
        if not level:
            return
    raise ValueError(f"lists and objects are nested deeper than {MOST_DEPTH}")


def _inside(value: object) -> Iterable[object]:
    """Return the items of a list or object."""
    if isinstance(value, Mapping):
        return value.values()
    if isinstance(value, list | tuple):
        return value
    return ()


def _of_values(where: Mapping[str, Any] | None) -> Condition:
    items = (where or {}).items()
    if len(items) > MOST_COMPARISONS:
        raise _wrong(excerpt(where), f"it has {len(items)} names, and may have at most {MOST_COMPARISONS}")
    comparisons = [_equal(name, _alternatives(value)) for name, value in items]
    if comparisons:
        return _checked(_joined(comparisons, " AND "), excerpt(where))
    return Condition()


def among(ids: Sequence[int], column: Literal["id", "position"] = "id") -> Condition:
    """Return the condition that a text has one of these ids, or positions."""
    try:
        numbers = [index(number) for number in ids]  # integers of any library
    except TypeError as error:
        raise ConfigError(f"An id is a whole number; received {shortened(error)}.") from error
    # One parameter for any number of ids: SQLite limits the number of parameters.
    return Condition(f"{column} IN (SELECT value FROM json_each(?))", (json.dumps(numbers),))


def _parsed(text: str) -> Condition:
    conditions = []
    position = 0
    comparisons = 0
    while match := _PART.match(text, position):
        conditions.append(Condition(match["joint"].upper()) if match["joint"] else _comparison(match))
        position = match.end()
        comparisons += not match["joint"]
        if comparisons > MOST_COMPARISONS:
            raise _wrong(text, f"it may have at most {MOST_COMPARISONS} comparisons")
        if len(conditions) > MOST_WORDS:
            raise _wrong(text, f"it is too long: it may have {MOST_WORDS} comparisons, words and parentheses")
    if position < len(text) or not conditions:
        raise _wrong(text, f"it cannot be read from {text[position : position + 20]!r} on")
    # With TRUE for each comparison SQLite checks the syntax of AND, OR, NOT and parentheses.
    shape = " ".join("TRUE" if clause.names else clause.sql for clause in conditions)
    try:
        with closing(sqlite3.connect(":memory:")) as parser:
            parser.execute(f"SELECT CASE WHEN {shape} THEN 1 END")
    except sqlite3.Error as error:
        raise _wrong(text, "its comparisons, AND, OR, NOT and parentheses do not fit together") from error
    return _checked(_joined(conditions, " "), text)


def _checked(whole: Condition, text: str) -> Condition:
    """Return a condition that SQLite can compile; ConfigError for one that is too long or nested too deeply."""
    try:
        with closing(sqlite3.connect(":memory:")) as parser:
            # Empty tables with the columns that a condition uses are enough to compile it.
            parser.execute("CREATE TABLE field (id, name, type, value)")
            parser.execute("CREATE TABLE text (id)")
            inner = f"SELECT id FROM text WHERE {whole.sql}"
            # EXPLAIN compiles the statement without running it; it nests the condition as the real ones do.
            parser.execute(f"EXPLAIN SELECT 1 FROM text WHERE TRUE AND id IN ({inner})", whole.values)
    except sqlite3.Error as error:
        raise _wrong(text, f"it is too long, or nested too deeply ({error})") from error
    return whole


def _wrong(text: str, why: str) -> ConfigError:
    return ConfigError(
        f"A condition is like topic = 'sport' AND year >= 2020, with texts in single quotes, by =, !=, <, <=, >, >=, "
        f"LIKE, IN (...) and IS NULL, joined by AND, OR and NOT; received {text[:200]!r}: {why}."
    )


def _comparison(match: re.Match[str]) -> Condition:
    """Return the condition of one comparison, a match of ``_PART``."""
    name = match["name"].strip('"')
    sign = (match["sign"] or "IN").upper()
    if match["value"] is None and match["values"] is None:
        return _has(name, "type != 'null'", negated=not match["there"])
    values = [pair for value in re.findall(_VALUE, match["values"] or match["value"]) for pair in _meant(value)]
    if sign in ("IN", "=", "!="):
        equal = _equal(name, values)
        if sign != "!=" and not match["absent"]:
            return equal
        # As in SQL, a text without the name is not unequal to a value either.
        return _joined([_has(name, "TRUE"), equal._replace(sql=f"NOT {equal.sql}")], " AND ")
    if sign != "LIKE" and values[-1][0] == "real":  # texts that spell a number, as from CSV files, count as numbers
        # CASE, because SQLite may evaluate AND in any order, and json_type fails for text that is no JSON.
        text = "type = 'text' AND CASE WHEN json_valid(value) THEN json_type(value) IN ('integer', 'real') END"
        sql = f"(type IN ('integer', 'real') OR {text}) AND CAST(value AS NUMERIC) {sign} ?"
        return _has(name, sql, values[-1][1])
    if sign == "LIKE" and len(values[0][1].encode()) > MOST_LIKE:
        raise _wrong(match.string, f"a pattern of LIKE has at most {MOST_LIKE} bytes")
    return _has(name, f"type = 'text' AND value {sign} ?", values[0][1])


def _has(name: str, sql: str, *values: Any, negated: bool = False) -> Condition:
    """Return the condition that a text has metadata of this name for which ``sql`` holds."""
    operator = "NOT IN" if negated else "IN"
    inside = f"id {operator} (SELECT id FROM field WHERE name = ? AND {sql})"
    return Condition(inside, (name, *values), (name,))


def _equal(name: str, pairs: list[tuple[str, Any]]) -> Condition:
    """Return the condition that a text has any of these values, given as type and value, under a name."""
    values_of: dict[str, dict[Any, None]] = {}
    for kind, value in pairs:
        values_of.setdefault(kind, {})[value] = None
    lookup = "SELECT id FROM field WHERE name = ? AND type = ? AND value IN (SELECT value FROM json_each(?))"
    bound = [(name, kind, json.dumps(list(values), ensure_ascii=False)) for kind, values in values_of.items()]
    # UNION would sort the ids to remove duplicates, which do no harm in IN.
    sql = f"id IN ({' UNION ALL '.join([lookup] * len(bound))})"
    return Condition(sql, tuple(chain.from_iterable(bound)), (name,))


def _joined(conditions: list[Condition], word: str) -> Condition:
    if not conditions:
        return Condition()
    sql, values, names = zip(*conditions, strict=True)
    return Condition(f"({word.join(sql)})", tuple(chain.from_iterable(values)), tuple(chain.from_iterable(names)))


def _alternatives(value: Any) -> list[tuple[str, Any]]:
    """Return the types and values that a value, or each value of a list, may be stored as."""
    # NumPy's arrays, and its single numbers.
    if hasattr(value, "tolist"):
        value = value.tolist()
    values = value if isinstance(value, list | tuple) else [value]
    return [pair for item in values for pair in _stored(item)]


def _meant(value: str) -> list[tuple[str, Any]]:
    """Return the types and values that a value in a condition may mean.

    In quotes it is a text; otherwise a text, or the number, true, false or null that it spells.
    """
    if value.startswith("'"):
        # A quote within a text is doubled, as in SQL.
        return _stored(value[1:-1].replace("''", "'"))
    if _BEYOND.fullmatch(value):
        raise ConfigError(f"A condition compares with finite numbers; received {value[:60]}.")
    if _DECIMAL.fullmatch(value):
        # Cells of CSV files are texts, so that both are looked for.
        return [("text", value), *_stored(float(value))]
    try:
        return [("text", value), *_stored(_read_json(value))]
    except RecursionError as error:
        raise ValueError(f"lists and objects are nested deeper than {MOST_DEPTH}") from error
    except ValueError:
        return _stored(value)


def _no_number(name: str) -> None:
    raise ValueError(f"{name} is a text here")


_read_json = json.JSONDecoder(parse_constant=_no_number).decode
"""Decodes JSON; a single decoder, because a condition may hold a million numbers."""


def _real(value: int | float) -> float:
    """Return a number as a float; ConfigError if it is not finite."""
    try:
        if math.isfinite(value):
            return float(value)
    # isfinite fails for a whole number that is beyond a float.
    except OverflowError:
        pass
    raise ConfigError(f"A condition compares with finite numbers; received {excerpt(value, 60)}.")


def _stored(value: Any) -> list[tuple[str, Any]]:
    """Return the types and values that a value may be stored as in the table ``field``.

    1 and 1.0 are equal, 1 and "1" are not.
    """
    # bool before int, of which it is a kind.
    if value is None or isinstance(value, bool):
        # The table has '' for null, as its primary key admits no NULL.
        return [(json.dumps(value), "" if value is None else int(value))]
    if isinstance(value, (int, float)):
        # Beyond 64 bits SQLite stores a number as a real.
        number = value if abs(value) < 2**63 else _real(value)
        return [("integer", number), ("real", number)]
    if isinstance(value, date | time):
        return [("text", value.isoformat())]
    if isinstance(value, str):
        if "\0" in value:  # SQLite would end the text here
            raise ValueError("a text holds NUL, which is no character")
        return [("text", value)]
    check_depth(value)
    return [("array" if isinstance(value, list) else "object", json_text(value))]
