"""Reads labelled pairs from any source, and refuses bad rows."""

from __future__ import annotations

import logging
from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain, islice

import numpy as np

from samesense.data.columns.guesses import example_columns, guessed_pairs
from samesense.data.columns.labels import ParsedLabels, has_one_label, parse_labels, refuse_words
from samesense.data.columns.pair_columns import Columns, resolve_columns, unread_labels
from samesense.data.columns.text_columns import SNIFFED_ROWS, refuse_lists
from samesense.data.columns.unread_columns import log_unread, warn_of_bytes, warn_of_marked_rows
from samesense.data.conventions.named_columns import join_columns, quote_columns
from samesense.data.conventions.numbers import number_text
from samesense.data.conventions.scales import Scale
from samesense.data.conventions.texts import text_problem
from samesense.data.mapped import BLOCK, collect_columns, collect_numbers, take_rows
from samesense.data.pairs.data import TEXTS, PairData
from samesense.data.rows.bad_rows import BadRow, bad_rows_error, bad_texts
from samesense.data.rows.load import list_rows, load_rows, names_in, no_rows_error
from samesense.data.rows.sources import Source, name_of
from samesense.errors import ConfigError, DataError
from samesense.types import Indices, Pair, Row

logger = logging.getLogger(__name__)


def read_pairs(
    source: Source,
    *,
    columns: str | None = None,
    label_order: str | None = None,
    label_range: Scale | None = None,
    drop_bad_rows: bool | None = False,
    limit_reported: int = 5,
) -> PairData:
    """Read labelled pairs, or triplets as pairs, from one source.

    Args:
        source: a file, a folder saved by ``datasets``, a hub name, a data frame, or rows; see ``load_rows``.
        columns: ``"first,second,label"`` where the names do not follow a convention.
        label_order: names of integer inference classes 0, 1, 2 in order.
        label_range: lowest and highest score, instead of inferring them.
        drop_bad_rows: leave bad rows out and count them, instead of refusing the source; ``None`` where no option
            does, which the error then does not propose.
        limit_reported: how many bad rows the error shows.

    Returns:
        The pairs in the order of the source; a triplet gives its positive pair, then its negative one.

    Raises:
        DataError: if the source cannot be read, holds bad rows, or has nothing to rank.
        ConfigError: if an option is malformed or contradicts the data.
        MissingExtraError: if ``datasets`` is needed and absent.
    """
    name = name_of(source)
    rows = load_rows(source)
    # The first rows decide on the columns; the others are streamed.
    first = list(islice(rows, BLOCK))
    if not first:
        raise no_rows_error(source)
    resolved = _find_columns(first, columns, name)
    text_columns = [column for column in (resolved.text1, resolved.text2, resolved.negative) if column is not None]
    refuse_lists(first, text_columns, name)
    warn_of_bytes(first, text_columns, name)
    reader = _RowReader(resolved)
    texts = collect_columns(reader.texts(chain(first, rows)), TEXTS[: 2 if resolved.subset is None else 3])
    parsed = _parse_label_cells(reader.labels, resolved, name, label_order, label_range)
    bad = _bad_rows(reader, parsed, resolved)
    if bad and not drop_bad_rows:
        problems = list(chain.from_iterable(bad.values()))
        can_drop = drop_bad_rows is not None
        raise bad_rows_error(name, problems, len(reader.numbers), limit_reported, can_drop=can_drop)
    usable = np.delete(np.arange(len(reader.numbers)), sorted(parsed.unlabelled | bad.keys()))
    if not len(usable):
        raise DataError(
            f"{name}: no row is left of {len(reader.numbers)}; {len(bad)} cannot be used and {len(parsed.unlabelled)} "
            "have no label (-, -1 or empty, as in test parts with hidden labels). Give a file with labels."
        )
    return _assemble(texts, reader, usable, resolved, parsed, name, len(bad))


def _bad_rows(reader: _RowReader, parsed: ParsedLabels, columns: Columns) -> dict[int, list[BadRow]]:
    """Return the problems of rows by position, without those of rows that have no label and are left out anyway."""
    bad = {position: [*problems] for position, problems in reader.problems.items()}
    for position, problem in parsed.problems.items():
        bad_label = BadRow(reader.numbers[position], str(columns.label), problem.what, problem.fix)
        bad.setdefault(position, []).append(bad_label)
    return {position: problems for position, problems in bad.items() if position not in parsed.unlabelled}


class _RowReader:
    """Row numbers, labels and problems, collected while the texts of a source stream through."""

    def __init__(self, columns: Columns) -> None:
        self.columns = columns
        self.partners = [name for name in (columns.text2, columns.negative) if name is not None]
        self.numbers = array("q")  # row numbers, as the source counts them
        self.labels: list[object] = []  # label cells; equal strings share one object to save memory
        self.problems: dict[int, list[BadRow]] = {}  # of the texts, by the position of the row
        self._label_strings: dict[str, str] = {}

    def texts(self, rows: Iterable[Row]) -> Iterator[tuple[str, ...]]:
        """Yield the two texts of each pair, and the name of its subset where the source has subsets."""
        names = [self.columns.text1, *self.partners]
        subset_column = self.columns.subset
        for position, row in enumerate(rows):
            number, cells = row
            self.numbers.append(number)
            self.labels.append(self._label(cells))
            problems = bad_texts(row, names)
            if problems:
                self.problems[position] = problems
            bad_columns = {problem.column for problem in problems}
            ends: tuple[str, ...] = ()
            if subset_column is not None:
                ends = (_subset_name(cells.get(subset_column)),)
            # A bad text takes the place of a text, so that positions stay those of the rows.
            first, *partners = ["" if name in bad_columns else str(cells[name]) for name in names]
            for partner in partners:
                yield first, partner, *ends

    def _label(self, cells: Mapping[str, object]) -> object:
        cell = None if self.columns.label is None else cells.get(self.columns.label)
        # So many different strings are no labels, and would fill memory.
        if not isinstance(cell, str) or len(self._label_strings) > BLOCK:
            return cell
        return self._label_strings.setdefault(cell, cell)


def _subset_name(cell: object) -> str:
    if cell is None:
        return ""
    return str(cell)


def read_bare_pairs(source: Source, *, columns: str | None = None) -> list[Pair]:
    """Read the pairs of one source and ignore their labels, to look for these pairs in other data.

    A row with a negative gives two pairs; a row without two texts gives none, and is counted in a message. Arguments
    and errors are those of :func:`read_pairs`.
    """
    name = name_of(source)
    rows = list_rows(source)
    resolved = _find_columns(rows, columns, name, labelled=False)
    partners = [column for column in (resolved.text2, resolved.negative) if column is not None]
    texts = [(cells.get(resolved.text1), cells.get(column)) for _, cells in rows for column in partners]
    pairs = [(str(first), str(second)) for first, second in texts if not (text_problem(first) or text_problem(second))]
    if len(pairs) < len(texts):
        logger.info(f"{name}: left out: {len(texts) - len(pairs):,} of {len(texts):,} pairs, which lack a text")
    return pairs


def holds_scores(source: Source, columns: str | None = None) -> bool:
    """Return whether the label column of a source holds scores, judged by its name.

    Only the first rows are read. Arguments and errors are those of :func:`read_pairs`.
    """
    rows = list(islice(load_rows(source), SNIFFED_ROWS))
    return bool(rows) and _find_columns(rows, columns, name_of(source)).holds_scores


def _find_columns(rows: Sequence[Row], columns: str | None, source: str, *, labelled: bool = True) -> Columns:
    """Return the columns, found by name or else guessed from their cells; a guess is logged."""
    names = names_in(rows)
    try:
        resolved = resolve_columns(names, columns, source, labelled=labelled)
        if columns is None and labelled:
            _warn_of_other_labels(resolved, unread_labels(names, resolved), source)
            _log_unread(rows, names, resolved, source)
        elif labelled:
            # Columns that the user leaves out need no message, but no one leaves out a split.
            warn_of_marked_rows(rows, _read_columns(resolved), source)
        return resolved
    except (ConfigError, DataError):
        # A guess is made only where the user has not named the columns.
        guess = guessed_pairs(rows) if columns is None else None
        if guess is None:  # raises the same error with an example, which needs a look at all columns
            return resolve_columns(names, columns, source, labelled=labelled, example=example_columns(rows))
    logger.info(f"{source}: read as labelled pairs, by a guess at the columns: {guess}; `columns` overrides")
    resolved = resolve_columns(names, guess, source, labelled=labelled)
    _log_unread(rows, names, resolved, source)
    return resolved


def _log_unread(rows: Sequence[Row], names: Sequence[str], columns: Columns, source: str) -> None:
    """Log which columns are not read, without the other labels, of which a warning says more."""
    read = _read_columns(columns)
    if not set(names).issubset(read):
        log_unread(rows, read, source, besides=unread_labels(names, columns))


def _read_columns(columns: Columns) -> list[str]:
    roles = (columns.text1, columns.text2, columns.label, columns.negative, columns.subset)
    return [name for name in roles if name is not None]


def _warn_of_other_labels(resolved: Columns, label_candidates: Sequence[str], source: str) -> None:
    """Warn that other columns could be the labels too, and say how to choose one."""
    if resolved.label is not None and label_candidates:
        columns = quote_columns(join_columns((resolved.text1, resolved.text2, label_candidates[0])))
        not_read = " or ".join(map(repr, label_candidates))
        logger.warning(
            f"{source}: the labels are those of column {resolved.label!r}, not "
            f"{not_read}. To take {label_candidates[0]!r} instead: `columns` {columns}"
        )


def _parse_label_cells(
    cells: Sequence[object], columns: Columns, source: str, label_order: str | None, label_range: Scale | None
) -> ParsedLabels:
    if columns.label is not None:
        parsed = parse_labels(cells, columns, source, label_order, label_range)
        refuse_words(cells, parsed, columns, source)
        return parsed
    if label_order is not None or label_range is not None:
        raise ConfigError(
            f"{source}: `label_order` and `label_range` are for a label column, and this source has triplets with "
            f"negatives in column {columns.negative!r}. Leave them out."
        )
    return ParsedLabels([1.0] * len(cells), "triplet", (0.0, 1.0))


def _assemble(
    texts: Sequence[Sequence[str]],
    reader: _RowReader,
    usable: Indices,
    columns: Columns,
    parsed: ParsedLabels,
    source: str,
    dropped: int,
) -> PairData:
    # Each row gives one pair for its positive, and one more if it has a negative.
    width = len(reader.partners)
    if len(usable) < len(reader.numbers):
        texts = take_rows(texts, (usable[:, None] * width + np.arange(width)).ravel())
    negative_labels = (0.0,) * (width - 1)  # labels of the negatives
    labels = (label for position in usable for label in (parsed.values[position] or 0.0, *negative_labels))
    pair_labels = collect_numbers(labels, beside=texts[0])
    _refuse_constant(pair_labels, source)
    return PairData(
        sentences1=texts[0],
        sentences2=texts[1],
        labels=pair_labels,
        subsets=texts[2] if columns.subset is not None and any(texts[2]) else None,
        kind=parsed.kind,
        scale=parsed.scale,
        source=source,
        label_column=str(columns.label or columns.negative),
        dropped=dropped,
        dropped_unlabelled=len(parsed.unlabelled),
        own_scale=parsed.own_scale,
        zero_class=parsed.zero_class,
        rows=collect_numbers(
            (reader.numbers[position] for position in usable for _ in range(width)), beside=texts[0], whole=True
        ),
    )


def _refuse_constant(labels: Sequence[float], source: str) -> None:
    if has_one_label(labels):
        number = labels[0]
        text = f"{number:.1f}" if number.is_integer() else number_text(number)
        raise DataError(
            f"{source}: every label is {text}: nothing to rank. The labels must differ; "
            "check that the label column is the right one."
        )
