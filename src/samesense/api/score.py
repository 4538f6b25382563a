"""``samesense.score``: a table of pairs with the score of each beside it."""

from __future__ import annotations

import logging
import shutil
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from samesense.api.library_function import library_function
from samesense.choices import DecimalMark, Threshold
from samesense.data.rows.sources import Source, in_memory, rereadable
from samesense.data.rows.table_options import Header, Quoting
from samesense.data.rows.text import standard_input_bytes
from samesense.errors import ConfigError, DataError
from samesense.failures import writing
from samesense.scratch import ScratchFolder
from samesense.types import Precision

logger = logging.getLogger(__name__)


@library_function
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
    decimal: DecimalMark | None = None,
    excel: bool = False,
    overwrite: bool = False,
    quoting: Quoting | None = None,
    delimiter: str | None = None,
    header: Header | None = None,
    encoding: str | None = None,
    precision: Precision = "auto",
) -> Any:
    """Score the two texts of each row of a table, and return the table with the scores in new columns.

    The new columns are ``score``, and for a calibrated model ``probability`` (``value`` where its labels were graded)
    and ``same``. Rows without two texts stay, without a score.

    Args:
        source: table (TSV, CSV, JSON lines, Parquet; plain or compressed), or ``"-"`` for TSV on standard input; see
            :func:`samesense.read` for tables in memory.
        model: model folder, output of ``train``, hub name or ``"default"``, or any other model as ``evaluate`` takes
            it; see :func:`samesense.load` for models in memory.
        output: file for the table: .tsv, .csv, .jsonl or .parquet; in the format of the source each row stays as it is,
            followed by the new cells; ``"-"`` is standard output.
        columns: the two columns to compare, as in ``"left,right"``.
        threshold: lowest score of two texts that are the same; ``"calibrated"`` is that of the model's calibration,
            which is the default where there is one.
        min_precision: instead, the threshold of the calibration with the highest recall at this precision, such as
            0.95.
        calibration: file of the calibration; by default ``calibration.json`` in the model's folder, if it exists.
        prefix: prefix of the names of the new columns, for a table that has a score already.
        decimal: decimal mark of scores in ``.tsv`` and ``.csv``; by default that of the table.
        excel: write ``.csv`` as Excel opens it: with a byte order mark, and semicolons where decimals have commas.
        overwrite: replace an existing file.
        precision: arithmetic; ``"auto"`` is bfloat16 where the processor supports it.

    Returns:
        A table of the same kind as ``source``; for a file an Arrow table, or with ``output`` a summary.

    Raises:
        DataError: names the source, the row and the likely fix.
        ConfigError: if the table already has a column with the name of a new one.

    Example:
        >>> scored = samesense.score(frame, model="runs/mine", columns="left,right")  # doctest: +SKIP
    """
    from samesense.inference.models.load import load
    from samesense.inference.names import place_of
    from samesense.inference.scoring.columns import ScoreColumns, check_options, score_columns
    from samesense.inference.scoring.files import ScoredSource, WritingOptions, few_texts, score_in_memory, write_scored
    from samesense.inference.scoring.summary import missing_texts

    check_options(threshold, min_precision)
    if output is not None and in_memory(source):
        raise ConfigError("`output` is for a table in a file; a table in memory comes back as one. Leave it out.")
    options = WritingOptions("-" if output is None else str(output), decimal, excel, overwrite)
    with ExitStack() as stack:
        table, name = stack.enter_context(_file_of(rereadable(source)))
        if output is not None:
            options.form(str(table))
            stack.enter_context(options.writing([str(table), place_of(model) if isinstance(model, str) else None]))
        scored_source = ScoredSource(table, name)
        survey = scored_source.survey(columns)
        ScoreColumns(prefix, None, None).check(survey.names, scored_source.name)  # before the model is loaded
        # With few texts, NumPy encodes them, and nothing waits for the import of torch.
        scorer = load(
            model,
            precision=precision,
            texts=few_texts(scored_source, survey),
            calibration=None if calibration is None else Path(calibration),
        )
        added = score_columns(scorer, threshold, min_precision, prefix)
        # Again, as only the model's calibration tells which columns there are besides the score.
        added.check(survey.names, scored_source.name)
        if survey.without:
            logger.warning(missing_texts(scored_source.name, survey.rows, survey.without))
        if output is None:
            return score_in_memory(scored_source, survey, added, scorer)
        return write_scored(scored_source, survey, added, scorer, options)


@contextmanager
def _file_of(source: Source) -> Iterator[tuple[Source, str]]:
    """Yield a source that can be read twice, and its name in messages: standard input is copied to a TSV file."""
    if not isinstance(source, str) or source != "-":
        yield source, ""
        return
    with ScratchFolder() as folder:
        path = Path(folder) / "standard-input.tsv"
        # Bytes are copied, so that the encoding is found as for any file.
        with writing(path), path.open("wb") as copy:
            shutil.copyfileobj(standard_input_bytes(), copy)
        # An error of the caller's block arrives here; its message names a copy that the user never saw.
        try:
            yield str(path), "standard input"
        except DataError as error:
            raise DataError(str(error).replace(str(path), "standard input")) from error
