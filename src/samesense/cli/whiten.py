"""``samesense whiten``: a model with uncorrelated dimensions, as a new folder."""

from __future__ import annotations

from samesense.cli.output import (
    DEFAULT_FORMAT,
    Flag,
    ManyTextColumns,
    Output,
    PrecisionFlag,
    TableFlags,
    logger,
    reads_tables,
)


@reads_tables
def whiten(
    model: str,
    texts: list[str],
    /,
    *,
    output: Output,
    dim: int | None = None,
    columns: ManyTextColumns = None,
    reading: TableFlags = DEFAULT_FORMAT,
    precision: PrecisionFlag = "float32",
    overwrite: Flag = False,
) -> None:
    """Save a model with a whitening layer, fitted on unlabelled texts; of a language model, without its sink token.

    samesense whiten default train.tsv --dim 256 --output models/whitened

    Args:
        model: model folder, output of train, hub name, or default.
        texts: files of texts: one a line (plain or compressed), or .tsv, .csv, .jsonl, .parquet with text columns.
        output: folder of the new model.
        dim: number of dimensions to keep, those of the largest variance; by default all with variance.
        precision: arithmetic of the embeddings for the fit; float32 keeps the small variances exact.
        overwrite: replace what is in the output folder.
    """
    import samesense

    whitening = samesense.whiten(
        model, texts, output=output, dim=dim, columns=columns, precision=precision, overwrite=overwrite
    )
    before, after = whitening.matrix.shape
    empty = f", {whitening.empty} of them without variance," if whitening.empty else ""
    logger.info(f"{output}: fitted on {whitening.n} texts, from {before} dimensions{empty} to {after}")
