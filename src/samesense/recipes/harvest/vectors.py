"""Harvest of an Origin by next words: sentences are encoded in shards that are resumed; pairs are dot products."""

from __future__ import annotations

import io
import logging
import time
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np
from threadpoolctl import threadpool_limits

from samesense.context.harvest.plan import Planned
from samesense.context.harvest.scores import Scored
from samesense.context.harvest.vectors import check_spread, choose_sentences, draw_pairs
from samesense.context.origin.load import open_origin
from samesense.context.origin.word_origin import WordOrigin
from samesense.encoder.vectors.quantize import Quantizer
from samesense.encoder.vectors.stored import stored_rows
from samesense.errors import ModelError
from samesense.execution.shards.executors import usual_workers
from samesense.execution.shards.job import Shard, sharded_job
from samesense.execution.threads import torch_threads
from samesense.execution.unread import counted, note
from samesense.hashes import rows_hash
from samesense.inference.output import Encoded, write_rows
from samesense.recipes.harvest.settings import VECTORS, HarvestSettings
from samesense.types import Embeddings, Indices

logger = logging.getLogger(__name__)

SHARD = 50
"""Sentences of a shard, and what a kill may cost a worker."""


@dataclass(frozen=True)
class VectorWork:
    """Makes shards of vectors; picklable, opens the Origin where it runs, once in a process."""

    origin: Path  # folder of the Origin
    device: str
    sentences: tuple[int, ...]  # of the corpus, in the order of shards
    expected: str  # identity that the Origin must have

    def __call__(self, shard: int) -> Shard:
        """Make a shard, by itself; ModelError if the Origin is not the expected one."""
        started = time.perf_counter()
        origin = open_word_origin(self.origin, self.device)
        if origin.identity != self.expected:
            raise ModelError(
                f"Every worker must have the same Origin; {self.origin} holds another one here. Copy its folder to "
                "this machine again."
            )
        texts = origin.corpus.sentences(self.sentences[shard * SHARD : (shard + 1) * SHARD])
        # Workers are processes of one thread each; more threads would compete for the same cores.
        with torch_threads(1), threadpool_limits(1, user_api="blas"), counted(apart=True) as unread:
            # With nothing cached, what is read together decides the last bits: a shard is always the same.
            vectors = origin.fresh().encode(texts)
        sink = io.BytesIO()
        stored = Quantizer("float32", vectors.shape[1])
        write_rows(Encoded(texts, stored.apply(vectors), stored), sink, "parquet")
        return Shard(sink.getvalue(), len(texts), time.perf_counter() - started, unread=unread.summary)


@lru_cache(maxsize=1)
def open_word_origin(folder: Path, device: str) -> WordOrigin:
    """Return an Origin by next words, opened once in a process."""
    origin = open_origin(folder, device=device)
    if not isinstance(origin, WordOrigin):
        raise ModelError(f"{folder} holds an Origin without vectors now. Make the one that was here again.")
    return origin


def read_vectors(
    origin: WordOrigin, folder: Path, output: Path, settings: HarvestSettings
) -> tuple[Indices, Embeddings]:
    """Return the sentences that take part and their vectors, reading what is not read yet."""
    chosen = choose_sentences(origin.corpus, settings)
    texts = origin.corpus.sentences(chosen)
    # By length, so that a shard holds sentences of like length, which are read together.
    chosen = chosen[origin.reader.order(texts)]
    work = VectorWork(folder, settings.device, tuple(chosen.tolist()), origin.identity)
    sizes = [min(SHARD, len(chosen) - start) for start in range(0, len(chosen), SHARD)]
    with sharded_job(output / VECTORS, "harvest", ".parquet") as job:
        job.begin(origin={"identity": origin.identity}, sentences={"sha256": rows_hash(texts)})
        missing = len(sizes) - len(job.finished(len(sizes)))
        executor = settings.choose_executor(usual_workers(missing, settings.device))
        job.make(work, executor, sizes, unit="sentence")
        cost = job.finish([{"sentences": size} for size in sizes])
        note(job.unread(len(chosen)), origin.reader)
        vectors = np.concatenate([stored_rows(job.path(shard)) for shard in range(len(sizes))])
    logger.info(f"{len(chosen)} sentences, {cost['seconds'] / len(chosen):.2g} s of a worker each")
    return chosen, vectors


def scored_pairs(
    origin: WordOrigin, folder: Path, output: Path, settings: HarvestSettings, check: bool
) -> list[tuple[Planned, Scored]]:
    """Return the pairs of each shard with their scores; if ``check``, ModelError if all are alike.

    They are cosines of vectors, so an encoder can reach them for any mean.
    """
    planned, scores = draw_pairs(origin.corpus, *read_vectors(origin, folder, output, settings), settings)
    if check:
        check_spread(scores)
    shards = []
    for start in range(0, len(scores), settings.shard_size):
        shard_rows = slice(start, start + settings.shard_size)
        shard = Planned(
            planned.first[shard_rows],
            planned.second[shard_rows],
            planned.kinds[shard_rows],
            # Counts are summed over shards, so that what was wanted stands in one of them.
            {} if start else planned.requested,
        )
        rows = np.arange(len(shard.kinds), dtype=np.int64)
        shards.append((shard, Scored(rows, scores[shard_rows], {}, 0)))
    return shards
