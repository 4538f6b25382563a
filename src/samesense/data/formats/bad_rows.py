"""Rows that cannot be used, and the one error that reports them together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from samesense.errors import DataError


@dataclass(frozen=True)
class BadRow:
    """One cell that breaks a rule.

    Attributes:
        row: row number as the file counts it.
        column: name of the column the cell stands in.
        what: what is wrong, with what was received.
        fix: what to do about it.
    """

    row: int
    column: str
    what: str
    fix: str


def bad_rows_error(source: str, problems: Sequence[BadRow], total: int, limit: int) -> DataError:
    """Build the error that counts every bad row and shows the first few.

    Args:
        source: the file, folder or name the rows came from.
        problems: everything found, at least one.
        total: rows read.
        limit: how many problems to show.
    """
    ordered = sorted(problems, key=lambda problem: problem.row)
    shown = ordered[: max(1, limit)]
    count = len({problem.row for problem in ordered})
    lines = [f"{source}: {count} of {total} rows cannot be used."]
    lines += [f"  row {bad.row}, column {bad.column!r}: {bad.what}. Fix: {bad.fix}." for bad in shown]
    if len(ordered) > len(shown):
        lines.append(f"  and {len(ordered) - len(shown)} more.")
    lines.append("Correct these rows, or leave them out with --drop-bad-rows (drop_bad_rows=True).")
    return DataError("\n".join(lines))
