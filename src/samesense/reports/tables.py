"""Tables in Markdown."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

import numpy as np

from samesense.errors import DataError
from samesense.results import NUMERIC, Rows, one_line, result_cells
from samesense.types import Result


def markdown_table(results: Sequence[Result]) -> str:
    """Lay out results as a Markdown table with the same columns as :func:`samesense.results.results_table`."""
    return markdown(*result_cells(results))


def seeds_table(rows: Mapping[str, Sequence[float]]) -> str:
    """Lay out repeated runs as a Markdown table of mean and standard deviation.

    The deviation is that of a sample (divided by one less than the number of seeds), and so absent for one seed. Values
    are in their natural unit, and shown multiplied by 100.
    """
    cells: Rows = []
    for name, values in rows.items():
        numbers = 100 * np.asarray(values, dtype=np.float64)
        if not len(numbers) or not np.isfinite(numbers).all():
            raise DataError(f"Each row needs one finite value or more, and {name!r} has {list(values)}.")
        shown = f"{numbers.mean():z.2f}"
        if len(numbers) > 1:
            shown += f" ± {numbers.std(ddof=1):.2f}"
        cells.append([one_line(name), shown, str(len(numbers))])
    header = ["name", "mean ± sd (x100)", "seeds"]
    return markdown(header, cells, numeric=header[1:])


def markdown(header: list[str], rows: Rows, numeric: Collection[str] = NUMERIC) -> str:
    """Lay out cells as a Markdown table.

    A vertical bar in a cell is escaped; columns named in ``numeric`` are set flush right.
    """
    rule = ["---:" if name in numeric else "---" for name in header]
    escaped = [[cell.replace("|", "\\|") for cell in row] for row in [header, rule, *rows]]
    return "\n".join("| " + " | ".join(row) + " |" for row in escaped)
