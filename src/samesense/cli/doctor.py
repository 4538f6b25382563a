"""``samesense doctor``: identifies data files, and reports what is wrong with them."""

from __future__ import annotations

import sys
from dataclasses import replace

from samesense.cli.output import (
    DEFAULT_FORMAT,
    DEFAULT_PAIRS,
    Flag,
    Json,
    PairFlags,
    Several,
    TableFlags,
    as_flags,
    logger,
    put,
    put_json,
    reads_tables,
)
from samesense.data.rows.sources import distinct_names, short_name
from samesense.errors import BadRowsError, ConfigError, SamesenseError


@reads_tables
def doctor(
    data: Several,
    /,
    *,
    against: Several | None = None,
    pair_options: PairFlags = DEFAULT_PAIRS,
    reading: TableFlags = DEFAULT_FORMAT,
    all_rows: Flag = False,
    json: Json = False,
) -> None:
    """Report what data files of any kind are, and what is wrong with them.

    samesense doctor train.tsv --against dev.tsv test.tsv

    Args:
        data: files (TSV, CSV, JSON lines, Parquet, text; plain or compressed), folders of documents, saved datasets
            folders, or hub names: labelled pairs, triplets, anchors with lists, sentences with classes, texts, or
            documents.
        against: other data that must not share any pair or text with these.
        all_rows: list all bad rows and all contradicting rows, not only the first few.
        json: print one JSON object a source; for an unusable one with the error and its bad rows.
    """
    import samesense

    if against is not None and not against:
        raise ConfigError("--against needs at least one file after it; received none.")
    failed = False
    sources = [*data, *(against or ())]
    names = distinct_names(list(map(short_name, sources)), sources)
    for source, name in zip(data, names, strict=False):
        try:
            report = samesense.doctor(source, against=against, all_rows=all_rows, **vars(pair_options))
            report = replace(report, name=name) if name.endswith(f"/{short_name(source)}") else report
        except SamesenseError as error:
            if len(data) == 1 and not json:
                raise
            failed = True
            rows = error.rows if isinstance(error, BadRowsError) else []
            if json:
                put_json([{"name": source, "error": as_flags(str(error)), "bad_rows": rows}])
            else:
                logger.error(f"error: {error}")
            continue
        if json:
            put_json([report.to_dict()])
        else:
            put(as_flags("\n".join(report.lines(all_rows=all_rows))))
    if failed:
        sys.exit(2)
