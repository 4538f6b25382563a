"""``samesense doctor``: what a data file is, and what is wrong with it."""

from __future__ import annotations

from samesense.cli.output import AS_THEY_ARE, Json, ReadFlags, Several, put, put_json


def doctor(data: str, /, *, against: Several | None = None, how: ReadFlags = AS_THEY_ARE, json: Json = False) -> None:
    """Report what a data file is, and what is wrong with it.

    samesense doctor train.tsv --against dev.tsv test.tsv

    Args:
        data: file (TSV, CSV, JSON lines, Parquet; plain or .gz), saved datasets folder, or hub name.
        against: other data in which none of the pairs should stand.
        json: print the report as JSON.
    """
    import samesense

    report = samesense.doctor(data, against=against, **vars(how))
    if json:
        put_json([report.to_dict()])
        return
    for line in report.lines():
        put(line)
