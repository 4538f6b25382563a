"""``samesense cluster``: near-duplicates among the texts of a file."""

from __future__ import annotations

from typing import Annotated

from cyclopts import Parameter

from samesense.cli.output import Json, PrecisionFlag, TextColumns, Threshold, logger, put_json, put_row


def cluster(
    source: Annotated[str, Parameter(allow_leading_hyphen=True)],
    /,
    *,
    model: str = "default",
    threshold: Annotated[Threshold, Parameter(allow_leading_hyphen=True)] = 0.9,
    smallest: int = 2,
    columns: TextColumns = None,
    precision: PrecisionFlag = "auto",
    json: Json = False,
) -> None:
    """Find groups of near-duplicates: texts that are linked by pairs above a threshold.

    samesense cluster texts.txt --threshold 0.9

    Args:
        source: text file with one text a line (plain or .gz), a table (TSV, CSV, JSON lines, Parquet), or - for
            lines of standard input.
        model: model folder, output of train, hub name, or default.
        threshold: lowest cosine of a link, from -1 to 1, which samesense mine shows on your data; or calibrated, for
            that of the model's calibration (samesense calibrate --min-precision 0.95).
        smallest: texts of a group that is shown.
        json: print one JSON object a group with numbers of lines or rows, centre, lowest cosine with it, and texts.
    """
    import samesense
    from samesense.inference.stream import read_texts

    texts = read_texts(source, columns)
    groups = samesense.cluster(texts, model=model, threshold=threshold, smallest=smallest, precision=precision)
    for number, group in enumerate(groups, 1):
        if json:
            rows = {"rows": [place + 1 for place in group.members], "centre": group.centre + 1}
            put_json([{**rows, "lowest": round(group.lowest, 6), "texts": [texts[place] for place in group.members]}])
        else:
            for place in group.members:
                put_row(number, "*" if place == group.centre else "", texts[place])
    logger.info(f"{len(groups)} groups with {sum(len(group.members) for group in groups)} of {len(texts)} texts")
