"""From any source to labelled pairs, refusing rows that would spoil them."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from itertools import islice

from samesense.data.formats.columns import Columns, resolve_columns
from samesense.data.formats.files import BadRow, Row, bad_rows_error, text_problem
from samesense.data.formats.labels import ParsedLabels, Scale, number_text, parse_labels
from samesense.data.formats.memory import Source, name_of
from samesense.data.formats.sources import list_rows, load_rows
from samesense.data.formats.text_columns import SEEN, example, guessed_pairs, names_in
from samesense.data.pairs.data import PairData
from samesense.errors import ConfigError, DataError
from samesense.types import Pair

logger = logging.getLogger(__name__)


def read_pairs(
    source: Source,
    *,
    columns: str | None = None,
    label_order: str | None = None,
    label_range: Scale | None = None,
    drop_bad_rows: bool = False,
    limit_reported: int = 5,
) -> PairData:
    """Read labelled pairs, or triples as pairs, from one source.

    Args:
        source: a file, a folder saved by ``datasets``, a hub name, a data frame, or rows; see ``load_rows``.
        columns: ``"first,second,label"`` where the names do not follow a convention.
        label_order: names of integer inference classes 0, 1, 2 in order.
        label_range: lowest and highest score, instead of inferring them.
        drop_bad_rows: leave bad rows out and count them, instead of refusing the source.
        limit_reported: how many bad rows the error shows.

    Returns:
        The pairs in the order of the source; a triple gives its positive pair, then its negative one.

    Raises:
        DataError: if the source cannot be read, holds bad rows, or has nothing to rank.
        ConfigError: if an option is malformed or contradicts the data.
        MissingExtraError: if ``datasets`` is needed and absent.
    """
    name = name_of(source)
    rows = list_rows(source)
    found = _columns(rows, columns, name)
    parsed = _labels_of(rows, found, name, label_order, label_range)
    labelled = [row for position, row in enumerate(rows) if position not in parsed.unlabelled]
    problems = _text_problems(labelled, found)
    problems += [BadRow(rows[at][0], str(found.label), *problem) for at, problem in parsed.problems.items()]
    if problems and not drop_bad_rows:
        raise bad_rows_error(name, problems, len(rows), limit_reported)
    bad = {problem.row for problem in problems}
    kept = [at for at, row in enumerate(rows) if row[0] not in bad and at not in parsed.unlabelled]
    if not kept:
        raise DataError(
            f"{name}: no row is left of {len(rows)}; {len(bad)} cannot be used and {len(parsed.unlabelled)} have no "
            "label (-, -1 or empty, as in test parts with hidden labels). Give a file with labels."
        )
    return _assembled(rows, kept, found, parsed, name, len(bad))


def read_bare_pairs(source: Source, *, columns: str | None = None) -> list[Pair]:
    """Read the pairs of one source whatever their labels, to look for them in other data.

    A row with a negative gives two pairs, one without two texts none. Arguments and errors are those of
    :func:`read_pairs`.
    """
    name = name_of(source)
    rows = list_rows(source)
    found = _columns(rows, columns, name, labelled=False)
    partners = [column for column in (found.text2, found.negative) if column is not None]
    texts = ((cells.get(found.text1), cells.get(column)) for _, cells in rows for column in partners)
    return [(str(one), str(other)) for one, other in texts if not (text_problem(one) or text_problem(other))]


def holds_scores(source: Source, columns: str | None = None) -> bool:
    """Return whether the label column of a source is one of scores by its name.

    The first rows decide. Arguments and errors are those of :func:`read_pairs`.
    """
    rows = list(islice(load_rows(source), SEEN))
    return bool(rows) and _columns(rows, columns, name_of(source)).holds_scores


def _columns(rows: Sequence[Row], columns: str | None, source: str, *, labelled: bool = True) -> Columns:
    """Find the columns by their names, or else by what they hold, which is then logged."""
    names = names_in(rows)
    try:
        return resolve_columns(names, columns, source, labelled=labelled, example=example(rows))
    except DataError:
        guess = guessed_pairs(rows) if columns is None else None
        if guess is None:
            raise
    logger.info(f"{source}: read as labelled pairs, by a guess at the columns: {guess}; `columns` overrides")
    return resolve_columns(names, guess, source, labelled=labelled)


def _labels_of(
    rows: Sequence[Row], columns: Columns, source: str, label_order: str | None, label_range: Scale | None
) -> ParsedLabels:
    if columns.label is not None:
        return parse_labels([cells.get(columns.label) for _, cells in rows], columns, source, label_order, label_range)
    if label_order is not None or label_range is not None:
        raise ConfigError(
            f"{source}: `label_order` and `label_range` are for a label column, and this source has triples with "
            f"negatives in column {columns.negative!r}. Leave them out."
        )
    return ParsedLabels([1.0] * len(rows), "triple", (0.0, 1.0))


def _text_problems(rows: Sequence[Row], columns: Columns) -> list[BadRow]:
    names = [name for name in (columns.text1, columns.text2, columns.negative) if name is not None]
    problems = []
    for number, cells in rows:
        for name in names:
            what = text_problem(cells.get(name))
            if what:
                problems.append(BadRow(number, name, what, "give the sentence or delete the row"))
    return problems


def _assembled(
    rows: Sequence[Row], kept: Sequence[int], columns: Columns, parsed: ParsedLabels, source: str, dropped: int
) -> PairData:
    pairs: list[tuple[str, str, float, str, int]] = []
    for at in kept:
        number, cells = rows[at]
        part = cells.get(columns.subset) if columns.subset is not None else None
        subset = "" if part is None else str(part)
        partners = [(columns.text2, parsed.values[at] or 0.0)]
        partners += [] if columns.negative is None else [(columns.negative, 0.0)]
        pairs += [(str(cells[columns.text1]), str(cells[name]), label, subset, number) for name, label in partners]
    first, second, labels, parts, numbers = (list(column) for column in zip(*pairs, strict=True))
    _refuse_constant(labels, source)
    return PairData(
        sentences1=first,
        sentences2=second,
        labels=labels,
        subsets=parts if any(parts) else None,
        kind=parsed.kind,
        scale=parsed.scale,
        source=source,
        label_column=str(columns.label or columns.negative),
        dropped=dropped,
        dropped_unlabelled=len(parsed.unlabelled),
        own_scale=parsed.own_scale,
        rows=numbers,
    )


def _refuse_constant(labels: Sequence[float], source: str) -> None:
    if len(set(labels)) == 1:
        number = labels[0]
        shown = f"{number:.1f}" if number.is_integer() else number_text(number)
        raise DataError(
            f"{source}: every label is {shown}: nothing to rank. The labels must differ; "
            "check that the label column is the right one."
        )
