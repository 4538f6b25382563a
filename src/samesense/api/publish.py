"""``samesense.export`` and ``push``: a model for machines without torch, and for others."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from samesense.api.data import Scale, labelled_pairs
from samesense.choices import check_columns, check_named
from samesense.data.formats.memory import Source, names_among
from samesense.data.formats.options import Header, Quoting, reads_tables
from samesense.execution.progress import stage
from samesense.execution.unread import says_unread

if TYPE_CHECKING:
    from samesense.inference.onnx.format import Description

logger = logging.getLogger(__name__)


@says_unread
@reads_tables
def export(  # noqa: PLR0913 - the flags of the command
    model: str | Path,
    *,
    output: str | Path,
    int8: bool = False,
    data: Source | None = None,
    weights: bool = True,
    columns: str | None = None,
    quoting: Quoting | None = None,
    delimiter: str | None = None,
    header: Header | None = None,
    encoding: str | None = None,
    label_order: str | None = None,
    label_range: Scale | None = None,
    drop_bad_rows: bool = False,
    overwrite: bool = False,
) -> Description:
    """Write a model as a folder that runs without torch, in float32 and int8, and check it against torch.

    Args:
        model: model folder, output of train, hub name, or ``"default"``.
        output: folder to write; it is an ordinary model folder besides.
        int8: also write a graph with weights of eight bits.
        data: labelled pairs on which the drift of Spearman is measured, 500 or more for it to count; a calibration of
            the model is fitted again on them. Without them it is carried over.
        weights: keep the weights of torch in the folder, so that sentence-transformers opens it.
        columns, label_order, label_range, drop_bad_rows: see :func:`samesense.read`.
        overwrite: replace what is in the folder.
    """
    check_columns(columns)
    model = check_named(model)
    with stage("loading torch"):
        from samesense.encoder.saving.storage import check_free
        from samesense.inference.calibration.carry import carry
        from samesense.inference.models.load import load
        from samesense.inference.names import place_of
        from samesense.inference.onnx.export import export as write

    check_free(Path(output), overwrite=overwrite, inputs=[place_of(model), *names_among(data)])
    how = {"columns": columns, "label_order": label_order, "label_range": label_range, "drop_bad_rows": drop_bad_rows}
    pairs = None if data is None else labelled_pairs(data, **how)
    description = write(model, Path(output), int8=int8, pairs=pairs, weights=weights, overwrite=overwrite)
    said = carry(model, Path(output), load(output, backend="onnx"), pairs)
    if said:
        logger.info(said)
    return description


def push(
    model: str | Path,
    name: str,
    *,
    public: bool = False,
    license: str | None = None,  # noqa: A002 - as the hub has it
    language: str | Sequence[str] | None = None,
    message: str = "Upload by samesense",
) -> str:
    """Upload a finished model with its card to ``owner/name`` on the hub, and return its address.

    Args:
        model: run folder, or model folder with a card.
        name: of the repository, which is made if it is not there.
        public: everyone may see it; a repository that is there already stays as it is.
        license: licence of the model, put into its card; by default that which the card has.
        language: languages of the model, as in ``"en,de"``; the same.
        message: of the commit.
    """
    with stage("loading torch"):
        from samesense.inference.push import push as upload

    languages = language.split(",") if isinstance(language, str) else language or ()
    return upload(model, name, private=not public, license=license, language=languages, message=message)
