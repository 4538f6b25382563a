"""``samesense.export`` and ``push``: a model for machines without torch, and for the hub."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from samesense.api.data import Scale, labelled_pairs
from samesense.api.library_function import library_function
from samesense.choices import check_named, words_of
from samesense.data.rows.sources import Source, as_sources, names_among, short_name
from samesense.data.rows.table_options import Header, Quoting
from samesense.data.sentences import unlabelled_texts
from samesense.errors import ConfigError
from samesense.execution.torch_import import loading_torch

if TYPE_CHECKING:
    from samesense.inference.onnx.format import Description

logger = logging.getLogger(__name__)


@library_function
def export(  # noqa: PLR0913 - the flags of the command
    model: str | Path,
    *,
    output: str | Path,
    int8: bool = False,
    openvino_int8: bool = False,
    range_texts: Source | None = None,
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
        model: model folder, output of ``train``, hub name or ``"default"``.
        output: folder to write, which is also an ordinary model folder.
        int8: also write a graph with 8-bit weights.
        openvino_int8: also write a graph for OpenVINO with 8-bit weights and activations; needs the extra
            ``openvino-export``.
        range_texts: texts on which the ranges of those activations are measured, such as your own; by default 300 of
            ``data``, or of the library's sample.
        data: labelled pairs on which the drift of Spearman is measured, 500 or more for a valid check; the model's
            calibration is fitted again on them. Without them it is copied.
        weights: keep the torch weights in the folder, so that sentence-transformers can load it.
        columns: see :func:`samesense.evaluate`.
        label_order, label_range, drop_bad_rows: see :func:`samesense.read`.
        overwrite: replace what is in the folder.
    """
    model = check_named(model)
    with loading_torch():
        from samesense.encoder.saving.storage import check_free
        from samesense.inference.calibration.carry import carry
        from samesense.inference.models.load import load
        from samesense.inference.names import place_of
        from samesense.inference.onnx.export import RangeTexts
        from samesense.inference.onnx.export import export as write
    from samesense.recipes.reading import Reading

    if range_texts is not None and not openvino_int8:
        raise ConfigError("`range_texts` are for `openvino_int8`; received them without it. Give both, or neither.")
    check_free(
        Path(output), overwrite=overwrite, inputs=[place_of(model), *names_among(data), *names_among(range_texts)]
    )
    options = vars(Reading(columns, label_order, label_range, drop_bad_rows))
    pairs = None if data is None else labelled_pairs(data, **options)
    ranges = None
    if range_texts is not None:
        sources = as_sources(range_texts)
        texts = [text for source in sources for text in unlabelled_texts(source)]
        ranges = RangeTexts.spread(texts, ", ".join(map(short_name, sources)))
    description = write(
        model,
        Path(output),
        int8=int8,
        openvino_int8=openvino_int8,
        range_texts=ranges,
        pairs=pairs,
        weights=weights,
        overwrite=overwrite,
    )
    # The exported graph scores the pairs: a calibration must fit the scores that it is applied to.
    message = carry(model, Path(output), load(output, backend="onnx"), pairs)
    if message:
        logger.info(message)
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
    """Upload a finished model with its card to the hub, private unless it is made public.

    Args:
        model: run folder, or model folder with a card.
        name: name of the repository, as ``owner/name``; created if absent.
        public: make it public; an existing repository stays as it is.
        license: licence of the model, written to its card; by default that of the card.
        language: languages of the model, as in ``"en,de"``; by default those of the card.
        message: commit message.

    Returns:
        The address of the repository.
    """
    with loading_torch():
        from samesense.inference.push import push as upload

    languages = words_of(language or ())
    return upload(model, name, private=not public, license=license, language=languages, message=message)
