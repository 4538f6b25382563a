"""How many positives and negatives anchors have: the statistics by which a way to complete them is chosen."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

BINS = ("none", "1", "2 to 4", "5 or more")


def counts_table(positives: Iterable[Sequence[str]], negatives: Iterable[Sequence[str]]) -> list[str]:
    """Return, as lines of a table, how many anchors have so many positives and so many negatives.

    The diagonal holds what the paper counts: exactly one of each, two to four of each, five or more of each.

    Args:
        positives: of each anchor.
        negatives: of each anchor, in the same order.

    Source: Dehghan and Amasyali 2022 (SupMPN), Table 1.
    Differs: also the anchors off its diagonal, which it leaves out.
    """
    found = Counter((_bin(len(own)), _bin(len(other))) for own, other in zip(positives, negatives, strict=True))
    table = [["positives", *(f"negatives: {name}" for name in BINS)]]
    table += [[name, *(f"{found[row, column]:,}" for column in range(4))] for row, name in enumerate(BINS)]
    widths = [max(len(line[column]) for line in table) for column in range(5)]
    return ["  ".join(cell.rjust(width) for cell, width in zip(line, widths, strict=True)) for line in table]


def _bin(count: int) -> int:
    return 3 if count >= 5 else min(count, 2)
