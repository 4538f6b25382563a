"""``samesense mine-negatives``: hard negatives for anchors with positives, as data to train on."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Literal

from samesense.api import data as api
from samesense.cli.command import command_of
from samesense.cli.output import FileOrOutput, Flag, Several, logger

if TYPE_CHECKING:
    from samesense.data.tuples.data import TupleData


@command_of(api.mine_negatives)
def mine_negatives(
    data: Several,
    /,
    *,
    output: FileOrOutput = "-",
    format: Literal["lists", "triplets"] = "lists",  # noqa: A002 - the name of the flag
    overwrite: Flag = False,
    relative_margin: float | Literal["none"] = 0.05,
    **options: Any,
) -> None:
    """samesense mine-negatives pairs.tsv --output negatives.jsonl

    Args:
        output: file that train reads as it is: .jsonl, .tsv, .csv or .parquet; - is standard output, as JSON lines.
        format: lists has one row an anchor, with all its positives and negatives; triplets one row a negative and
            positive of an anchor, and none for an anchor without negatives.
        overwrite: replace an existing file.
    """
    from samesense.inference.names import place_of
    from samesense.inference.tables import Table, format_of, write_tables
    from samesense.places import writing_outputs

    form = format_of(output, ".jsonl", table=True)
    models = [name for name in (options["model"], options["score"]) if name is not None]
    margin = None if relative_margin == "none" else relative_margin
    with writing_outputs([output], [*data, options["corpus"], *map(place_of, models)], overwrite=overwrite):
        mined = api.mine_negatives(data, relative_margin=margin, **options)
        write_tables(Table(_lists(mined) if format == "lists" else _triplets(mined), output, form))
    for line in mined.summary():
        logger.info(line)
    sides = list(zip(mined.positives, mined.negatives, strict=True))
    if format == "triplets":
        left_out = sum(not (positives and negatives) for positives, negatives in sides)
        missing = "without a positive or without a negative"
    else:
        left_out = sum(not (positives or negatives) for positives, negatives in sides)
        missing = "with neither positives nor negatives"
    if left_out:
        logger.info(f"left out: {left_out} anchors {missing}")


def _lists(data: TupleData) -> Iterator[dict[str, Any]]:
    for anchor, positives, negatives in zip(data.anchors, data.positives, data.negatives, strict=True):
        # Such an anchor would be a bad row when the file is read for training.
        if positives or negatives:
            yield {"anchor": anchor, "positives": positives, "negatives": negatives}


def _triplets(data: TupleData) -> Iterator[dict[str, Any]]:
    for anchor, positives, negatives in zip(data.anchors, data.positives, data.negatives, strict=True):
        for positive in positives:
            yield from ({"anchor": anchor, "positive": positive, "negative": negative} for negative in negatives)
