"""``samesense doctor``: identifies data files, and reports what is wrong with them."""

from __future__ import annotations

import sys
from dataclasses import replace
from typing import Any

from samesense.api import data as api
from samesense.cli.command import command_of
from samesense.cli.output import Flag, Json, Several, as_flags, logger, put, put_json
from samesense.data.conflicts import describe_conflicts
from samesense.data.rows.sources import distinct_names, short_name
from samesense.errors import BadRowsError, ConfigError, SamesenseError


@command_of(api.doctor)
def doctor(
    data: Several,
    /,
    *,
    against: Several | None = None,
    all_rows: Flag = False,
    json: Json = False,
    **options: Any,
) -> None:
    """samesense doctor train.tsv --against dev.tsv test.tsv

    Args:
        json: print one JSON object per source; for an unusable one with the error and its bad rows.
    """
    if against is not None and not against:
        raise ConfigError("--against needs at least one file after it; received none.")
    failed = False
    sources = [*data, *(against or ())]
    # Of two files of one name, the report says which is which by their folders.
    names = distinct_names(list(map(short_name, sources)), sources)
    for source, name in zip(data, names, strict=False):
        try:
            report = api.doctor(source, against=against, all_rows=all_rows, **options)
            if name.endswith(f"/{short_name(source)}"):
                report = replace(report, name=name)
        except SamesenseError as error:
            # As the error of any command; with several sources, the others are still examined.
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
            texts = describe_conflicts(report.conflicts, all_rows=all_rows)
            for line in report.lines(all_rows=all_rows):
                put(line if line in texts else as_flags(line))
    if failed:
        sys.exit(2)
