"""Harvest: sentence pairs of an Origin's own corpus, scored by it, at scale: what a Surrogate learns from.

    samesense harvest --origin origins/mine --pairs 100000 --output harvests/mine --workers 8

The folder holds ``shards/00000.parquet`` and so on, with the columns ``sentence1``, ``sentence2``, ``score``, ``kind``
and where each sentence stands; for the rest see :mod:`samesense.execution.shards.job`.

Source: Sun et al. 2022 (TACL), section 3.4: 100M pairs scored by the method of section 3.3.
Differs: the paper does not say how pairs are chosen; see :class:`~samesense.context.harvest.plan.Plan`.
"""

from __future__ import annotations

import io
import json
import logging
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from samesense.context.corpus.corpus import Corpus
from samesense.context.harvest.plan import Plan, Planned
from samesense.context.harvest.scores import OriginScorer, Scored, open_scorer
from samesense.context.harvest.vectors import check_targets
from samesense.errors import DataError, ModelError
from samesense.execution.progress import stage
from samesense.execution.shards.executors import choose_executor
from samesense.execution.shards.job import Shard, ShardedJob, sharded_job
from samesense.execution.shards.tasks import Executor
from samesense.execution.unread import counted, note
from samesense.files import as_object
from samesense.recipes.harvest.settings import COLUMNS, HarvestSettings
from samesense.results.shown import Shown

logger = logging.getLogger(__name__)

METADATA = b"samesense"
"""Key of the counts in the footer of a shard."""

COUNTS = ("requested", "planned", "scored", "undefined")
"""What is counted there: pairs by kind, and pairs without a score by the reason."""


DAY = 86400


@dataclass(frozen=True)
class ShardWork:
    """Makes shards; picklable, opens what it needs where it runs, once in a process."""

    origin: Path  # folder of the Origin
    settings: HarvestSettings  # of the harvest
    open: Callable[[Path, str], OriginScorer] = open_scorer  # opens the folder as a scorer; importable by its name
    expected: tuple[tuple[str, str], ...] | None = None  # identity that the scorer must have; None for any

    def expecting(self, identity: dict[str, str]) -> ShardWork:
        """Return the same work, refused where the folder holds another Origin."""
        return replace(self, expected=tuple(sorted(identity.items())))

    def __call__(self, shard: int) -> Shard:
        """Make a shard; ModelError if the Origin is not the expected one."""
        started = time.perf_counter()
        scorer, plan = open_work(self)
        planned = plan.shard(shard)
        # Counted apart, as the shard takes the counts to the process that reports them.
        with counted(apart=True) as unread:
            scored = scorer.score(planned.texts(scorer.corpus))
        check_targets(planned.take(scored.rows), scored.scores)
        content = parquet(scorer.corpus, planned, scored, shard)
        figures = {"cells": scored.cells, "texts": unread.texts}
        return Shard(content, len(scored.rows), time.perf_counter() - started, figures, unread.summary)


def open_work(work: ShardWork, *, reopen: bool = False) -> tuple[OriginScorer, Plan]:
    """Return the scorer and the plan of some work, opened once a process unless ``reopen``."""
    if reopen:
        # An earlier call of this process may have opened the folder with another Origin in it.
        _open_work_once.cache_clear()
    scorer, plan = _open_work_once(work.origin, work.settings, work.open)
    if work.expected is not None and tuple(sorted(scorer.identity.items())) != work.expected:
        differing = [name for name, value in work.expected if scorer.identity.get(name) != value]
        raise ModelError(
            f"Every worker must have the same Origin; {work.origin} holds another one here, with another "
            f"{', '.join(differing)}. Copy the folder of the Origin to this machine again."
        )
    return scorer, plan


@lru_cache(maxsize=1)
def _open_work_once(
    origin: Path, settings: HarvestSettings, open_as: Callable[[Path, str], OriginScorer]
) -> tuple[OriginScorer, Plan]:
    scorer = open_as(origin, settings.device)
    return scorer, Plan(scorer.corpus, scorer.tfidf, settings)


def parquet(corpus: Corpus, planned: Planned, scored: Scored, shard: int) -> bytes:
    """Return a shard as Parquet, with the counts of what was wanted and what it holds in its footer."""
    retained = planned.take(scored.rows)
    pairs = (
        pa.array(corpus.sentences(retained.first), pa.string()),
        pa.array(corpus.sentences(retained.second), pa.string()),
        pa.array(scored.scores, pa.float64()),
        pa.array(retained.kinds, pa.string()),
    )
    columns = dict(zip(COLUMNS, pairs, strict=True))
    for name, ids in (("1", retained.first), ("2", retained.second)):
        columns |= {
            f"document{name}": pa.array(corpus.documents_of(ids), pa.int64()),
            f"position{name}": pa.array(ids - corpus.document_bounds(ids)[0], pa.int64()),
        }
    counts = {
        "shard": shard,
        "requested": planned.requested,
        "planned": dict(Counter(planned.kinds)),
        "scored": dict(Counter(retained.kinds)),
        "undefined": scored.undefined,
    }
    table = pa.table(columns).replace_schema_metadata({METADATA: json.dumps(counts, sort_keys=True).encode()})
    sink = io.BytesIO()
    pq.write_table(table, sink, compression="zstd")
    return sink.getvalue()


def read_counts(path: Path) -> dict[str, Any]:
    """Return the counts in the footer of a shard; DataError if the file is damaged, or no shard of a harvest."""
    try:
        # This reads the footer alone, however large the shard is.
        counts = as_object(pq.read_schema(path).metadata[METADATA], path)
    except (pa.ArrowException, OSError, KeyError, TypeError, ValueError) as error:
        raise DataError(f"{path} is no whole shard of a harvest ({error}). Delete it to make it again.") from error
    return counts


@dataclass(frozen=True, repr=False)
class HarvestSummary(Shown):
    """What a harvest came to.

    Attributes:
        folder: of the harvest.
        pairs: with a score.
        requested: pairs asked for, by kind.
        planned: pairs that could be had, by kind.
        scored: pairs that have a score, by kind.
        undefined: pairs left out, by the reason.
        shards: files.
        cost: ``seconds`` of workers and ``cells`` of the generator, over ``rows`` of those shards whose cost is known.
        by_vectors: whether pairs are dot products: ``seconds`` are those of pairs alone, and no cell is computed.
    """

    folder: Path
    pairs: int
    requested: Mapping[str, int]
    planned: Mapping[str, int]
    scored: Mapping[str, int]
    undefined: Mapping[str, int]
    shards: int
    cost: Mapping[str, float]
    by_vectors: bool = False

    def __str__(self) -> str:
        return "\n".join([*self.lines(), f"folder: {self.folder}"])

    def lines(self) -> list[str]:
        """Return it in words."""
        lines = [f"{self.pairs} pairs in {self.shards} shards: {_listed(self.scored)}"]
        missing = {kind: count - self.planned.get(kind, 0) for kind, count in self.requested.items()}
        if any(missing.values()):
            short = {kind: count for kind, count in missing.items() if count}
            why = "where the units of a shard were used up"
            if self.by_vectors:
                why = "since there are no more of the kind"
            lines.append(f"missing {why}, and not replaced: {_listed(short)}")
        lines += [f"left out, since {reason}: {count}" for reason, count in self.undefined.items()]
        if self.cost.get("rows"):
            seconds, cells = (self.cost[name] / self.cost["rows"] for name in ("seconds", "cells"))
            details = f"and {cells:.0f} terms a pair; 100M pairs would take {1e8 * seconds / DAY:.3g} worker-days"
            if self.by_vectors:
                details = "a pair, beside the reading"
            lines.append(f"cost: {seconds:.3g} s of a worker {details}")
        return lines


def harvest(origin: Path, output: Path, settings: HarvestSettings, *, check: bool = True) -> HarvestSummary:
    """Score pairs of an Origin's corpus, or resume doing so; shards that are there are not made again.

    ``origin`` is a folder that :func:`samesense.recipes.origin.recipe.run` made. Without ``check``, scores of
    vectors that are all alike are written too. OutputError if the output folder holds something else, the harvest of
    another Origin or with other settings, or another process writes to it; ConfigError, DataError and ModelError as
    soon as it is known that it cannot succeed. After SamesenseError (shards could not be made after all retries) and
    Ctrl-C, finished shards are kept, and the same call resumes.
    """
    # Loads torch, which the settings of a harvest are checked without.
    from samesense.context.origin.load import contexts_of

    folder = origin.expanduser().resolve()
    contexts = contexts_of(folder)
    settings.check_contexts(contexts)
    if contexts == "words":
        return _of_vectors(folder, output, settings, check)
    return run(ShardWork(folder, settings), output, settings.choose_executor())


def _of_vectors(folder: Path, output: Path, settings: HarvestSettings, check: bool) -> HarvestSummary:
    """Read the sentences that take part once each; pairs are dot products."""
    # Loads torch.
    from samesense.recipes.harvest import vectors

    with sharded_job(output, "harvest", ".parquet") as job:
        job.check("settings", settings.identity())
        # As in `open_work`, the folder may hold another Origin than before.
        vectors.open_word_origin.cache_clear()
        origin = vectors.open_word_origin(folder, settings.device)
        job.begin(settings=settings.identity(), origin={"corpus": origin.corpus.sha256, "vectors": origin.identity})
        shards = vectors.scored_pairs(origin, folder, output, settings, check)

        def make(shard: int) -> Shard:
            started = time.perf_counter()
            (planned, scored) = shards[shard]
            content = parquet(origin.corpus, planned, scored, shard)
            return Shard(content, len(scored.rows), time.perf_counter() - started, {"cells": scored.cells})

        # Dot products are quick, so that no other machine takes part, whatever the settings say.
        job.make(make, choose_executor("embedded"), [len(scored.rows) for _, scored in shards], unit="pair")
        return _summary(job, output, len(shards), by_vectors=True)


def run(work: ShardWork, output: Path, executor: Executor) -> HarvestSummary:
    """Make all shards of ``work``; as :func:`harvest`."""
    with sharded_job(output, "harvest", ".parquet") as job:
        # Before the Origin is opened: other settings are refused at once.
        job.check("settings", work.settings.identity())
        with stage("opening the Origin"):
            scorer, plan = open_work(work, reopen=True)
        job.begin(settings=work.settings.identity(), origin=scorer.identity)
        for line in plan.describe():
            logger.info(line)
        job.make(work.expecting(scorer.identity), executor, [*map(plan.size, range(plan.shards))], unit="pair")
        summary = _summary(job, output, plan.shards)
        note(job.unread(int(summary.cost.get("texts", 0))), job)
        return summary


def _summary(job: ShardedJob, output: Path, shards: int, *, by_vectors: bool = False) -> HarvestSummary:
    """Finish the job, and say what it came to."""
    counts = [read_counts(job.path(shard)) for shard in range(shards)]
    entries = [
        {"pairs": sum(shard_counts["scored"].values()), "counts": shard_counts["scored"]} for shard_counts in counts
    ]
    totals = _totals(counts)
    cost = job.finish(entries, **totals)
    summary = HarvestSummary(
        output, sum(totals["scored"].values()), **totals, shards=shards, cost=cost, by_vectors=by_vectors
    )
    for line in summary.lines():
        logger.info(line)
    return summary


def _totals(counts: Sequence[Mapping[str, Any]]) -> dict[str, dict[str, int]]:
    """Return the sums over all shards."""
    sums: dict[str, Counter[str]] = {name: Counter() for name in COUNTS}
    for shard_counts in counts:
        for name, counter in sums.items():
            counter.update(shard_counts[name])
    return {name: dict(counter) for name, counter in sums.items()}


def _listed(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{kind} {count}" for kind, count in counts.items())
