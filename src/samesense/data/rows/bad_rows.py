"""Rows that break a rule: the error that lists them, or the warning that they are left out."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass

from samesense.data.conventions.texts import text_fix, text_problem
from samesense.errors import BadRowsError, DataError
from samesense.failures import abridged
from samesense.types import Row

logger = logging.getLogger(__name__)

SHOWN = 10
"""Most row numbers that a message shows."""


@dataclass(frozen=True)
class BadRow:
    """One cell that breaks a rule."""

    row: int
    column: str
    what: str
    fix: str


def bad_texts(row: Row, columns: Iterable[str]) -> list[BadRow]:
    """Return the cells of a row in these columns that are no usable texts."""
    number, cells = row
    values = {name: cells.get(name) for name in columns}
    return [
        BadRow(number, name, problem, text_fix(value))
        for name, value in values.items()
        if (problem := text_problem(value))
    ]


def bad_rows_error(
    source: str, problems: Sequence[BadRow], total: int, limit: int = 5, *, can_drop: bool = True
) -> BadRowsError:
    """Build the error that counts all bad rows and lists the first ``limit``; it also carries all of them as data.

    With ``can_drop``, the message says how to leave them out.
    """
    ordered = sorted(problems, key=lambda problem: problem.row)
    # With none of them, the message would not say what is wrong.
    first = ordered[: max(1, limit)]
    count = len({problem.row for problem in ordered})
    lines = [f"{source}: {count} of {total} rows cannot be used."]
    lines += [f"  row {bad.row}, column {bad.column!r}: {bad.what}. Fix: {bad.fix}." for bad in first]
    if len(ordered) > len(first):
        lines.append(f"  and {len(ordered) - len(first)} more.")
    # Without these rows nothing would be left.
    if can_drop and count < total:
        lines.append("Correct these rows, or leave them out with `drop_bad_rows`.")
    else:
        lines.append("Correct these rows.")
    return BadRowsError("\n".join(lines), [asdict(bad) for bad in ordered])


def warn_left_out(
    source: str, numbers: Sequence[int], total: int, reason: str = "they hold no text that can be used"
) -> None:
    """Warn that the rows with these numbers are left out; DataError if that is all ``total`` rows."""
    if not numbers:
        return
    row_numbers = abridged(numbers, SHOWN)
    if len(numbers) == total:
        raise DataError(
            f"{source}: no row is left of {total}, because {reason}: {row_numbers}. Give a file with texts."
        )
    logger.warning(f"{source}: {len(numbers)} of {total} rows left out, because {reason}: {row_numbers}")
