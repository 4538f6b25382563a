"""``samesense evaluate``: how well do a model's similarities agree with labels?"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from samesense.cli.output import (
    DEFAULT_FORMAT,
    DEFAULT_PAIRS,
    Flag,
    Json,
    PairFlags,
    PrecisionFlag,
    Several,
    TableFlags,
    listed,
    logger,
    put,
    put_json,
    reads_tables,
)
from samesense.data.benchmarks.comparability import NOT_COMPARABLE, why_not_comparable
from samesense.results import WHOLE_SUBSETS
from samesense.types import Result


@reads_tables
def evaluate(
    model: str,
    /,
    *,
    data: Several = (),  # type: ignore[assignment]  # a list where it is given
    suite: str = "sts",
    fast: Flag = False,
    texts: Several | None = None,
    output: Path | None = None,
    pair_options: PairFlags = DEFAULT_PAIRS,
    reading: TableFlags = DEFAULT_FORMAT,
    precision: PrecisionFlag = "float32",
    intervals: bool = True,
    subsets: Flag = False,
    json: Json = False,
) -> None:
    """Evaluate a model: on labelled pairs by Spearman and Pearson correlation, with 95 % confidence intervals.

    samesense evaluate default --data stsb.test.tsv sts12.test.tsv

    Args:
        model: sentence-transformers folder, output of train, hub name, or default; or a cross-encoder, vectors:FILE,
            words:FILE, origin:FOLDER, python:module:function, python-score:module:function or
            chat:MODEL.
        data: files with labelled pairs, folders of benchmarks, or names of benchmarks; probes needs none.
        suite: one or more of sts, transfer, ranking, geometry, binary, argument, sections, probes, as in: sts,transfer
        fast: transfer with 5 folds instead of 10.
        texts: text files or tables on whose texts MODEL+whiten and MODEL+whiten:256 are fitted.
        output: results.jsonl to which the results are added.
        precision: arithmetic; float32 keeps the figures comparable between machines.
        intervals: compute bootstrap intervals.
        subsets: show each subset too; a file and JSON always have them.
        json: print one JSON object a result.
    """
    import samesense

    results = samesense.evaluate(
        model,
        data,
        suites=listed(suite),
        fast=fast,
        texts=texts,
        output=output,
        **vars(pair_options),
        precision=precision,
        intervals=intervals,
    )
    if json:
        put_json(results.to_dicts())
        return
    put(results.table(subsets=subsets))
    count = len({(row.dataset, row.subset) for row in results if row.subset not in WHOLE_SUBSETS})
    if count and not subsets:
        logger.info(f"{count} subsets: --subsets shows them")
    for name, why in {row.dataset: why_not_comparable(row.protocol) for row in results}.items():
        if why:
            logger.info(f"{name}: {NOT_COMPARABLE}{why}")
    logger.info(f"protocol: {_shared_protocol(results)}")


def _shared_protocol(results: Sequence[Result]) -> str:
    """Return the items that all protocols share; means over data sets, whose protocols are of another kind, aside."""
    first, *items = results[0].protocol.split("; ")
    protocols = [row.protocol.split("; ") for row in results]
    same_kind = [protocol for protocol in protocols if first in protocol]
    return "; ".join([first, *(item for item in items if all(item in protocol for protocol in same_kind))])
