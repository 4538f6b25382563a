"""``samesense doctor``: what a data file is, and what is wrong with it."""

from __future__ import annotations

from samesense.cli.output import Columns, DropBadRows, Json, LabelOrder, LabelRange, Several, put, put_json


def doctor(
    data: str,
    /,
    *,
    against: Several | None = None,
    columns: Columns = None,
    label_order: LabelOrder = None,
    label_range: LabelRange = None,
    drop_bad_rows: DropBadRows = False,
    json: Json = False,
) -> None:
    """Report what a data file is, and what is wrong with it.

    samesense doctor train.tsv --against dev.tsv test.tsv

    Args:
        data: file (TSV, CSV, JSON lines, Parquet; plain or .gz), saved datasets folder, or hub name.
        against: other data in which none of the pairs should stand.
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
