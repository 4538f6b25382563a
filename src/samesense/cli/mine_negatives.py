"""``samesense mine-negatives``: hard negatives for anchors with positives, as data to train on."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import Parameter

from samesense.cli.output import (
    DEFAULT_FORMAT,
    DropBadRows,
    LabelOrder,
    PrecisionFlag,
    Several,
    TableFlags,
    logger,
    reads_tables,
)
from samesense.errors import ConfigError

if TYPE_CHECKING:
    from samesense.data.tuples.data import TupleData

Limit = Annotated[float | None, Parameter(allow_leading_hyphen=True)]


@reads_tables
def mine_negatives(
    data: Several,
    /,
    *,
    output: Annotated[str, Parameter(name=["--output", "-o"], allow_leading_hyphen=True)] = "-",
    format: Literal["lists", "triplets"] = "lists",  # noqa: A002 - the name of the flag
    model: str = "default",
    corpus: str | None = None,
    score: str | None = None,
    num_negatives: int = 5,
    range_min: int = 0,
    range_max: int = 100,
    absolute_margin: float | None = None,
    relative_margin: float | Literal["none"] = 0.05,
    max_score: Limit = None,
    min_score: Limit = None,
    sampling: Literal["top", "random"] = "top",
    seed: int = 42,
    columns: str | None = None,
    reading: TableFlags = DEFAULT_FORMAT,
    corpus_columns: str | None = None,
    label_order: LabelOrder = None,
    drop_bad_rows: DropBadRows = False,
    precision: PrecisionFlag = "auto",
) -> None:
    """Find hard negatives for anchors with positives: texts near an anchor that are none of its positives.

    samesense mine-negatives pairs.tsv --output negatives.jsonl

    Args:
        data: files or hub names of anchors with positives, of pairs labelled 0 and 1, or of NLI pairs; negatives that
            they have stay.
        output: file that train reads as it is: .jsonl, .tsv, .csv or .parquet; - is standard output, as JSON lines.
        format: lists has one row an anchor, with all its positives and negatives; triplets one row a negative and
            positive of an anchor, and none for an anchor without negatives.
        model: encoder that finds near texts: model folder, output of train, hub name, or default.
        corpus: text file or table of further texts that may be negatives, besides the positives and negatives of all
            anchors.
        score: cross-encoder, or another model, whose scores of pairs replace the cosine for all margins and limits;
            python-score:module:function for a function.
        num_negatives: most negatives of an anchor.
        range_min: how many of the nearest texts are skipped.
        range_max: how many of the nearest texts are considered, including the skipped ones.
        absolute_margin: how much lower than the positive's a negative's score must be.
        relative_margin: the same as a share of the positive's score: 0.05 admits scores of at most 95 % of it; none for
            no such margin.
        max_score: highest score of a negative.
        min_score: lowest score of a negative.
        sampling: which of the remaining texts to take: those of the highest scores (top), or any (random).
        seed: seed of random sampling.
        columns: of the data, as in question,answer or question1,question2,is_duplicate.
        corpus_columns: column of the corpus's texts, if several hold texts.
    """
    import samesense
    from samesense.cli.dedup import check_outputs
    from samesense.inference.names import place_of
    from samesense.inference.tables import FORMATS, Table, write_tables

    form = ".jsonl" if output == "-" else next((end for end in FORMATS if output.lower().endswith(end)), "")
    if form in ("", ".txt"):
        raise ConfigError(f"`output` is a table, .jsonl, .tsv, .csv or .parquet; received {output!r}.")
    check_outputs([output], [*data, corpus, place_of(model), None if score is None else place_of(score)])
    mined = samesense.mine_negatives(
        data,
        model=model,
        corpus=corpus,
        score=score,
        num_negatives=num_negatives,
        range_min=range_min,
        range_max=range_max,
        absolute_margin=absolute_margin,
        relative_margin=None if relative_margin == "none" else relative_margin,
        max_score=max_score,
        min_score=min_score,
        sampling=sampling,
        seed=seed,
        columns=columns,
        corpus_columns=corpus_columns,
        label_order=label_order,
        drop_bad_rows=drop_bad_rows,
        precision=precision,
    )
    write_tables(Table(_lists(mined) if format == "lists" else _triplets(mined), output, form))
    for line in mined.summary():
        logger.info(line)
    alone = sum(
        not positives and not negatives for positives, negatives in zip(mined.positives, mined.negatives, strict=True)
    )
    if alone:
        logger.info(f"left out: {alone} anchors with neither positives nor negatives")


def _lists(data: TupleData) -> Iterator[dict[str, Any]]:
    for anchor, positives, negatives in zip(data.anchors, data.positives, data.negatives, strict=True):
        if positives or negatives:
            yield {"anchor": anchor, "positives": positives, "negatives": negatives}


def _triplets(data: TupleData) -> Iterator[dict[str, Any]]:
    for anchor, positives, negatives in zip(data.anchors, data.positives, data.negatives, strict=True):
        for positive in positives:
            yield from ({"anchor": anchor, "positive": positive, "negative": negative} for negative in negatives)
