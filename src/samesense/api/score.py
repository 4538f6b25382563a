"""``samesense.score``: a table of pairs with the score of each beside it."""

from __future__ import annotations

import logging
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from samesense.choices import check_choice, check_columns
from samesense.data.formats.memory import Source, in_memory, rereadable
from samesense.data.formats.options import Header, Quoting, reads_tables
from samesense.errors import ConfigError, DataError
from samesense.execution.unread import says_unread

if TYPE_CHECKING:
    from samesense.inference.calibration.storage import Threshold
    from samesense.inference.scoring.writers import Decimal
    from samesense.types import Precision

logger = logging.getLogger(__name__)


@says_unread
@reads_tables
def score(  # noqa: PLR0913 - the flags of the command
    source: Source,
    *,
    model: Any = "default",
    output: str | Path | None = None,
    columns: str | None = None,
    threshold: Threshold | None = None,
    min_precision: float | None = None,
    calibration: str | Path | None = None,
    prefix: str = "",
    decimal: Decimal | None = None,
    excel: bool = False,
    overwrite: bool = False,
    quoting: Quoting | None = None,
    delimiter: str | None = None,
    header: Header | None = None,
    encoding: str | None = None,
    precision: Precision = "auto",
) -> Any:
    """Score the two texts of each row of a table, and return the table with the score beside them.

    The columns ``score``, and of a model that is calibrated ``probability`` (``value`` where its labels were graded)
    and ``same`` stand behind those of the table. Rows without two texts stay, without a score.

    scored = samesense.score(frame, model="runs/mine", columns="left,right")

    Args:
        source: data frame (pandas, polars, Arrow), ``datasets.Dataset``, dict of columns, or rows; or the name of a
            file: TSV, CSV, JSON lines or Parquet, plain or compressed.
        model: whatever :func:`samesense.load` takes.
        output: file for the table; of a file in the same format each row stays as it is, with the new cells behind it.
        columns: the two columns that are compared, as in ``"left,right"``.
        threshold: score from which on two texts are the same; ``"calibrated"`` is that of the model's calibration,
            which is the default where there is one.
        min_precision: in its place the threshold of the calibration that finds most at this precision, such as 0.95.
        calibration: file of the calibration; by default that in the model's folder, if there is one.
        prefix: stands before the names of the new columns.
        decimal: mark before the decimals of scores in ``.csv`` and ``.tsv``, ``"point"`` or ``"comma"``; by default
            that of the table.
        excel: write ``.csv`` as Excel opens it.
        overwrite: replace a file that is there.
        precision: arithmetic; auto is bfloat16 where the processor computes in it.

    Returns:
        A table of the kind that was given; of a file an Arrow table, or with ``output`` what became of it.

    Raises:
        DataError: names the source, the row and the likely fix.
        ConfigError: if the table has a column of the name of a new one.
    """
    from samesense.inference.models.load import load
    from samesense.inference.names import place_of
    from samesense.inference.scoring.columns import ScoreColumns, check_options, score_columns
    from samesense.inference.scoring.files import ScoredSource, WritingOptions, few_texts, score_in_memory, write_scored
    from samesense.inference.scoring.summary import missing_texts
    from samesense.inference.scoring.writers import Decimal

    check_columns(columns)
    check_options(threshold, min_precision)
    if decimal is not None:
        check_choice("decimal", decimal, Decimal)
    if output is not None and in_memory(source):
        raise ConfigError("`output` is for a table in a file; a table in memory comes back as one. Leave it out.")
    options = WritingOptions("-" if output is None else str(output), decimal, excel, overwrite)
    with _file_of(rereadable(source)) as (table, name):
        if output is not None:
            options.form(str(table))
            options.check([str(table), place_of(model) if isinstance(model, str) else None])
        opened = ScoredSource(table, name)
        survey = opened.survey(columns)
        ScoreColumns(prefix, None, None).check(survey.names, opened.called)  # before the model is loaded
        scorer = load(
            model,
            precision=precision,
            texts=few_texts(opened, survey),
            calibration=None if calibration is None else Path(calibration),
        )
        added = score_columns(scorer, threshold, min_precision, prefix)
        added.check(survey.names, opened.called)
        if survey.without:
            logger.warning(missing_texts(opened.called, survey.rows, survey.without))
        if output is None:
            return score_in_memory(opened, survey, added, scorer)
        return write_scored(opened, survey, added, scorer, options)


@contextmanager
def _file_of(source: Source) -> Iterator[tuple[Source, str]]:
    """Yield a source that can be read twice, and what messages call it: standard input becomes a file of TSV."""
    if not isinstance(source, str) or source != "-":
        yield source, ""
        return
    if sys.stdin is None:
        raise DataError("Standard input is read here, and it is closed. Give a file, or let it be open: < FILE")
    with TemporaryDirectory(prefix="samesense-") as folder:
        path = Path(folder) / "standard-input.tsv"
        with path.open("wb") as copy:
            shutil.copyfileobj(sys.stdin.buffer, copy)
        try:
            yield str(path), "standard input"
        except DataError as error:
            raise DataError(str(error).replace(str(path), "standard input")) from error
