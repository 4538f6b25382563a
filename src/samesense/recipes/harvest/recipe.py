"""Harvest: sentence pairs of an Origin's own corpus, scored by it, at scale: what a Surrogate learns from.

    samesense harvest --origin origins/mine --pairs 100000 --output harvests/mine --workers 8

The folder holds ``shards/00000.parquet`` and so on, with the columns ``sentence1``, ``sentence2``, ``score``, ``kind``
and where each sentence stands, ``manifest.json``, and ``history.jsonl``, what each shard cost.

Source: Sun et al. 2022 (TACL), section 3.4: 100M pairs scored by the method of section 3.3.
Differs: the paper does not say how pairs are chosen; see :class:`~samesense.context.harvest.plan.Plan`.
"""

from __future__ import annotations

import logging
from pathlib import Path
from typing import TYPE_CHECKING

from samesense.execution.collect import collect
from samesense.execution.progress import progress_bar
from samesense.execution.shards import Shards
from samesense.execution.tasks import Executor
from samesense.files import only_writer
from samesense.recipes.harvest.record import HarvestSummary, Record
from samesense.recipes.harvest.settings import HarvestSettings
from samesense.recipes.harvest.shard import Finished, ShardWork, opened

if TYPE_CHECKING:
    from samesense.context.harvest.plan import Plan

logger = logging.getLogger(__name__)


def harvest(origin: Path, output: Path, settings: HarvestSettings) -> HarvestSummary:
    """Score pairs of an Origin's corpus, or go on with it; what is there is not made again.

    Args:
        origin: folder that :func:`samesense.recipes.origin.recipe.run` made.
        output: folder of the harvest.
        settings: see :class:`HarvestSettings`.

    Returns:
        What there is now.

    Raises:
        OutputError: if the folder holds something else, the harvest of another Origin or with other settings, or
            another process is at it.
        ConfigError, DataError, ModelError: as soon as it is known that it cannot end well.
        SamesenseError: if shards could not be made after all retries; the others are kept.
        KeyboardInterrupt: on Ctrl-C; finished shards are kept, and the same call goes on.
    """
    return run(ShardWork(origin.expanduser().resolve(), settings), output, settings.choose_executor())


def run(work: ShardWork, output: Path, executor: Executor) -> HarvestSummary:
    """Make all shards of ``work``; as :func:`harvest`."""
    scorer, plan = opened(work, anew=True)
    record = Record(output, work.settings, scorer.identity)
    record.check()
    with only_writer(output):
        record.check()  # another harvest may have been begun since
        record.begin()
        shards = Shards(output / "shards", ".parquet")
        for line in plan.describe():
            logger.info(line)
        try:
            _make(work.expecting(scorer.identity), plan, executor, shards, record)
        except KeyboardInterrupt:
            logger.info("stopped; finished shards are kept. Go on with the same command.")
            raise
        summary = record.finish(shards, plan.shards)
    for line in summary.lines():
        logger.info(line)
    return summary


def _make(work: ShardWork, plan: Plan, executor: Executor, shards: Shards, record: Record) -> None:
    """Make the shards that are not there."""
    there = shards.take_up(plan.shards)
    missing = (shard for shard in range(plan.shards) if shard not in there)
    if len(there) < plan.shards:
        for line in record.note_versions():
            logger.info(line)
    with progress_bar("harvest", "pair", work.settings.pairs, initial=sum(map(plan.size, there))) as bar:

        def keep(shard: int, finished: Finished) -> None:
            shards.write(shard, finished.content)
            record.note(shard, finished)
            bar.update(plan.size(shard))

        collect(executor, work, missing, keep)
