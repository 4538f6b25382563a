"""``samesense evaluate``: how well do a model's similarities agree with labels?"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from samesense.api import evaluation
from samesense.cli.command import command_of
from samesense.cli.output import Flag, Json, Several, logger, put, put_json, shown_if_unwritten
from samesense.data.benchmarks.comparability import NOT_COMPARABLE, why_not_comparable
from samesense.results.results import WHOLE_SUBSETS, Results
from samesense.types import Result


@command_of(evaluation.evaluate)
def evaluate(
    model: str,
    /,
    *,
    data: Several = (),  # type: ignore[assignment]  # a list where it is given
    subsets: Flag = False,
    json: Json = False,
    **options: Any,
) -> None:
    """samesense evaluate default --data stsb.test.tsv sts12.test.tsv

    Args:
        subsets: show each subset too; a file and JSON always have them.
        json: print one JSON object per result.
    """

    def show(results: Results) -> None:
        if json:
            put_json(results.to_dicts())
        elif results:
            put(results.table(subsets=subsets))

    with shown_if_unwritten(show):
        results = evaluation.evaluate(model, data, **options)
    show(results)
    if json:
        return
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
