"""``samesense doctor``: what a data file is, and what is wrong with it."""

from __future__ import annotations

from typing import Annotated

from cyclopts import Parameter

from samesense.cli.output import Columns, DropBadRows, LabelOrder, LabelRange, put, put_json


def doctor(
    data: str,
    /,
    *,
    against: Annotated[list[str] | None, Parameter(consume_multiple=True, negative="")] = None,
    columns: Columns = None,
    label_order: LabelOrder = None,
    label_range: LabelRange = None,
    drop_bad_rows: DropBadRows = False,
    json: Annotated[bool, Parameter(name="--json", negative="")] = False,
) -> None:
    """Report what a data file is, and what is wrong with it.

    samesense doctor train.tsv --against dev.tsv test.tsv

    Args:
        data: file (TSV, CSV, JSON lines, Parquet; plain or .gz), saved datasets folder, or hub name.
        against: other data in which none of the pairs should stand.
        columns: text and label columns by name, as in: question1,question2,is_duplicate
        label_order: names of the labels 0, 1, 2 of NLI data, as in: entailment,neutral,contradiction
        label_range: lowest and highest label of the scale, as in: 0 5
        drop_bad_rows: leave out rows that break a rule, and say how many.
        json: print the report as JSON.
    """
    import samesense

    report = samesense.doctor(
        data,
        against=against,
        columns=columns,
        label_order=label_order,
        label_range=label_range,
        drop_bad_rows=drop_bad_rows,
    )
    if json:
        put_json([report.to_dict()])
        return
    for line in report.lines():
        put(line)
