"""Harvest: sentence pairs of an Origin's own corpus, scored by it, at scale: what a Surrogate learns from.

    samesense harvest --origin origins/mine --pairs 100000 --output harvests/mine --workers 8

The folder holds ``shards/00000.parquet`` and so on, with the columns ``sentence1``, ``sentence2``, ``score``, ``kind``
and where each sentence stands; for the rest see :mod:`samesense.execution.sharded`.

Source: Sun et al. 2022 (TACL), section 3.4: 100M pairs scored by the method of section 3.3.
Differs: the paper does not say how pairs are chosen; see :class:`~samesense.context.harvest.plan.Plan`.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from samesense.execution.sharded import sharded_job
from samesense.execution.tasks import Executor
from samesense.recipes.harvest.settings import HarvestSettings
from samesense.recipes.harvest.shard import COUNTS, ShardWork, opened, read_counts

logger = logging.getLogger(__name__)

DAY = 86400


@dataclass(frozen=True)
class HarvestSummary:
    """What a harvest came to.

    Attributes:
        folder: of the harvest.
        pairs: with a score.
        wanted: pairs asked for, by kind.
        planned: pairs that could be had, by kind.
        scored: pairs that have a score, by kind.
        undefined: pairs left out, by the reason.
        shards: files.
        cost: ``seconds`` of workers and ``cells`` of the generator, over ``rows`` of those shards whose cost is known.
    """

    folder: Path
    pairs: int
    wanted: Mapping[str, int]
    planned: Mapping[str, int]
    scored: Mapping[str, int]
    undefined: Mapping[str, int]
    shards: int
    cost: Mapping[str, float]

    def lines(self) -> list[str]:
        """Return it in words."""
        lines = [f"{self.pairs} pairs in {self.shards} shards: {_listed(self.scored)}"]
        missing = {kind: count - self.planned.get(kind, 0) for kind, count in self.wanted.items()}
        if any(missing.values()):
            short = {kind: count for kind, count in missing.items() if count}
            lines.append(f"missing where the units of a shard were used up, and not replaced: {_listed(short)}")
        lines += [f"left out, since {reason}: {count}" for reason, count in self.undefined.items()]
        if self.cost.get("rows"):
            seconds, cells = (self.cost[name] / self.cost["rows"] for name in ("seconds", "cells"))
            lines.append(
                f"cost: {seconds:.3g} s of a worker and {cells:.0f} terms a pair; 100M pairs would take "
                f"{1e8 * seconds / DAY:.3g} worker-days"
            )
        return lines


def harvest(origin: Path, output: Path, settings: HarvestSettings) -> HarvestSummary:
    """Score pairs of an Origin's corpus, or resume doing so; shards that are there are not made again.

    ``origin`` is a folder that :func:`samesense.recipes.origin.recipe.run` made. OutputError if the output folder holds
    something else, the harvest of another Origin or with other settings, or another process writes to it; ConfigError,
    DataError and ModelError as soon as it is known that it cannot succeed. After SamesenseError (shards could not be
    made after all retries) and Ctrl-C, finished shards are kept, and the same call resumes.
    """
    return run(ShardWork(origin.expanduser().resolve(), settings), output, settings.choose_executor())


def run(work: ShardWork, output: Path, executor: Executor) -> HarvestSummary:
    """Make all shards of ``work``; as :func:`harvest`."""
    with sharded_job(output, "harvest", ".parquet") as job:
        job.check("settings", work.settings.identity())
        scorer, plan = opened(work, anew=True)
        job.begin(settings=work.settings.identity(), origin=scorer.identity)
        for line in plan.describe():
            logger.info(line)
        job.make(work.expecting(scorer.identity), executor, [*map(plan.size, range(plan.shards))], unit="pair")
        counts = [read_counts(job.path(shard)) for shard in range(plan.shards)]
        entries = [{"pairs": sum(one["scored"].values()), "counts": one["scored"]} for one in counts]
        totals = _totals(counts)
        cost = job.finish(entries, **totals)
    summary = HarvestSummary(output, sum(totals["scored"].values()), **totals, shards=plan.shards, cost=cost)
    for line in summary.lines():
        logger.info(line)
    return summary


def _totals(counts: Sequence[Mapping[str, Any]]) -> dict[str, dict[str, int]]:
    """Return the sums over all shards."""
    sums: dict[str, Counter[str]] = {name: Counter() for name in COUNTS}
    for one in counts:
        for name, counter in sums.items():
            counter.update(one[name])
    return {name: dict(counter) for name, counter in sums.items()}


def _listed(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{kind} {count}" for kind, count in counts.items())
