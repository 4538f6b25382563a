"""One shard of a harvest: planned, scored, and turned into a Parquet file, by any worker."""

from __future__ import annotations

import io
import json
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from samesense.errors import DataError, ModelError
from samesense.execution.sharded import Shard
from samesense.recipes.harvest.settings import HarvestSettings

if TYPE_CHECKING:
    import numpy as np

    from samesense.context.corpus.corpus import Corpus
    from samesense.context.harvest.plan import Plan, Planned
    from samesense.context.harvest.scores import OriginScorer, Scored

METADATA = b"samesense"
"""Key of the counts in the footer of a shard."""

COUNTS = ("wanted", "planned", "scored", "undefined")
"""What is counted there: pairs by kind, and pairs without a score by the reason."""


def open_scorer(folder: Path, device: str) -> OriginScorer:
    """Open an Origin to harvest from."""
    from samesense.context.harvest.scores import OriginScorer

    return OriginScorer.open(folder, device)


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
        scorer, plan = opened(self)
        planned = plan.shard(shard)
        scored = scorer.score(planned.texts(scorer.corpus))
        content = parquet(scorer.corpus, planned, scored, shard)
        return Shard(content, len(scored.rows), time.perf_counter() - started, {"cells": scored.cells})


def opened(work: ShardWork, *, anew: bool = False) -> tuple[OriginScorer, Plan]:
    """Return the scorer and the plan of some work, opened once in a process unless they are wanted anew."""
    if anew:
        _opened.cache_clear()
    scorer, plan = _opened(work.origin, work.settings, work.open)
    if work.expected is not None and tuple(sorted(scorer.identity.items())) != work.expected:
        other = [name for name, value in work.expected if scorer.identity.get(name) != value]
        raise ModelError(
            f"Every worker must have the same Origin; {work.origin} holds another one here, with another "
            f"{', '.join(other)}. Copy the folder of the Origin to this machine again."
        )
    return scorer, plan


@lru_cache(maxsize=1)
def _opened(
    origin: Path, settings: HarvestSettings, open_as: Callable[[Path, str], OriginScorer]
) -> tuple[OriginScorer, Plan]:
    from samesense.context.harvest.plan import Plan

    scorer = open_as(origin, settings.device)
    return scorer, Plan(scorer.corpus, scorer.tfidf, settings)


def parquet(corpus: Corpus, planned: Planned, scored: Scored, shard: int) -> bytes:
    """Return a shard as Parquet, with the counts of what was wanted and what it holds in its footer."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    first, second = planned.first[scored.rows], planned.second[scored.rows]
    kinds = [planned.kinds[int(row)] for row in scored.rows]
    columns = {
        "sentence1": pa.array(corpus.sentences(first), pa.string()),
        "sentence2": pa.array(corpus.sentences(second), pa.string()),
        "score": pa.array(scored.scores, pa.float64()),
        "kind": pa.array(kinds, pa.string()),
    }
    for name, ids in (("1", first), ("2", second)):
        columns |= {
            f"document{name}": pa.array(corpus.documents_of(ids), pa.int64()),
            f"position{name}": pa.array(_places(corpus, ids), pa.int64()),
        }
    counts = {
        "shard": shard,
        "wanted": planned.wanted,
        "planned": dict(Counter(planned.kinds)),
        "scored": dict(Counter(kinds)),
        "undefined": scored.undefined,
    }
    table = pa.table(columns).replace_schema_metadata({METADATA: json.dumps(counts, sort_keys=True).encode()})
    sink = io.BytesIO()
    pq.write_table(table, sink, compression="zstd")
    return sink.getvalue()


def read_counts(path: Path) -> dict[str, Any]:
    """Return the counts in the footer of a shard; DataError if the file is damaged, or no shard of a harvest."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        counts: dict[str, Any] = json.loads(pq.read_schema(path).metadata[METADATA])
    except (pa.ArrowException, OSError, KeyError, TypeError, ValueError) as error:
        raise DataError(f"{path} is no whole shard of a harvest ({error}). Delete it; it will be made anew.") from error
    return counts


def _places(corpus: Corpus, ids: np.ndarray) -> np.ndarray:
    """Return the number of each sentence in its document, from 0."""
    return ids - corpus.document_bounds(ids)[0]
