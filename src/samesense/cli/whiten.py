"""``samesense whiten``: a model whose dimensions are uncorrelated, as a folder of its own."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from samesense.cli.output import PrecisionFlag
from samesense.errors import ConfigError

logger = logging.getLogger(__name__)


def whiten(
    model: str,
    texts: list[str],
    /,
    *,
    output: Annotated[Path, Parameter(name=["--output", "-o"])],
    dim: int | None = None,
    precision: PrecisionFlag = "float32",
    overwrite: Annotated[bool, Parameter(negative="")] = False,
) -> None:
    """Save a model with a whitening behind it, fitted on unlabelled texts.

    samesense whiten default train.tsv --dim 256 --output models/whitened

    Args:
        model: model folder, output of train, hub name, or default.
        texts: files of texts: one a line (plain or .gz), or .tsv, .csv, .jsonl, .parquet with text columns.
        output: folder of the new model.
        dim: dimensions to keep, those of the largest variance; by default all that have variance.
        precision: arithmetic of the embeddings it is fitted on; float32 keeps the small variances exact.
        overwrite: replace what is in the output folder.
    """
    from samesense.data.sentences import unlabelled_texts

    if not texts:
        raise ConfigError("A whitening is fitted on texts; name at least one file of them.")
    sentences = [text for source in texts for text in unlabelled_texts(source)]
    from samesense.encoder.build import build
    from samesense.encoder.encode import encode
    from samesense.encoder.storage import check_free, save
    from samesense.encoder.whitening import Whitening, append_whitening

    check_free(output, overwrite=overwrite)
    encoder = build(model)
    whitening = Whitening.fit(encode(encoder, sentences, precision=precision), dim)
    save(append_whitening(encoder, whitening), output, overwrite=overwrite)
    before, after = whitening.matrix.shape
    empty = f", {whitening.empty} of them without variance," if whitening.empty else ""
    logger.info(f"{output}: fitted on {whitening.n} texts, from {before} dimensions{empty} to {after}")
