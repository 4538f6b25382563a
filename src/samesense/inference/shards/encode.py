"""Encode a file of any size into numbered files of vectors, by many workers, going on where it was stopped.

    samesense encode models/mine texts.txt --output vectors --shard-size 100000 --workers 16

The folder holds ``shards/00000.npy`` (or ``.parquet``) and so on, in the order of the lines; ``manifest.json``, what
they were made of and the SHA-256 of each; ``input.json``, where each begins in the file; ``history.jsonl``, what each
took. Workers read their own lines and return bytes to the one process that writes, so that machines of a cluster need
the input and the model, and no disk in common.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from samesense.execution.collect import collect
from samesense.execution.progress import progress_bar
from samesense.execution.shards import Shards
from samesense.execution.tasks import Executor
from samesense.files import only_writer
from samesense.inference.shards import input as inputs
from samesense.inference.shards.record import Record, input_part, model_part
from samesense.inference.shards.work import (
    Encoded,
    EncodeWork,
    Open,
    ShardSettings,
    open_embedder,
    opened,
)


@dataclass(frozen=True)
class ShardSummary:
    """What there is: vectors, the numbers of each, and files."""

    rows: int
    dim: int
    shards: int


def encode_shards(
    model: str,
    source: Path,
    output: Path,
    settings: ShardSettings,
    executor: Executor,
    *,
    open_as: Open = open_embedder,
) -> ShardSummary:
    """Encode the lines of a file, or go on with it; what is there is not made again.

    Args:
        model: folder or name of an encoder; on a cluster, the same on each machine.
        source: text file with one text a line, not compressed; on a cluster, at the same path on each machine.
        output: folder of the shards.
        settings: see :class:`~samesense.inference.shards.work.ShardSettings`.
        executor: where shards are made; files are the same, byte for byte, whatever it is.
        open_as: opens the model, to compute on one thread.

    Raises:
        OutputError: if the folder holds something else, the shards of another input, of another model or with other
            settings, or another process is at it.
        ConfigError, DataError, ModelError: as soon as it is known that it cannot end well.
        SamesenseError: if shards could not be made after all retries; the others are kept.
        KeyboardInterrupt: on Ctrl-C; finished shards are kept, and the same call goes on.
    """
    path, model = inputs.check_plain(source), _whole(model)
    Record(output)  # before a lock is put there
    with only_writer(output):
        record = Record(output)
        record.check("settings", settings.identity())
        texts = inputs.recall(output, path) or _cut(path, settings.shard_size)
        record.check("input", input_part(texts))
        opened.cache_clear()
        embedder = opened(model, settings, open_as)
        parts = {
            "model": model_part(model, embedder), "input": input_part(texts), "settings": settings.identity(),
        }  # fmt: skip
        record.check("model", parts["model"])
        record.begin(parts)
        inputs.write(output, texts)
        work = EncodeWork(model, texts, settings, open_as, embedder.identity)
        shards = Shards(output / "shards", f".{settings.format}")
        _make(work, executor, shards, record)
        dim = record.finish(shards, texts, settings.format)
    return ShardSummary(texts.rows, dim, len(texts.parts))


def _make(work: EncodeWork, executor: Executor, shards: Shards, record: Record) -> None:
    """Make the shards that are not there."""
    parts = work.source.parts
    there = shards.take_up(len(parts))
    missing = [shard for shard in range(len(parts)) if shard not in there]
    with progress_bar("encode", "text", work.source.rows, initial=sum(parts[shard].rows for shard in there)) as bar:

        def keep(shard: int, encoded: Encoded) -> None:
            shards.write(shard, encoded.content)
            record.note(shard, encoded)
            bar.update(encoded.rows)

        collect(executor, work, missing, keep)


def _cut(path: Path, shard_size: int) -> inputs.Input:
    with progress_bar("count lines", "B", path.stat().st_size, unit_scale=True) as bar:
        return inputs.cut(path, shard_size, bar.update)


def _whole(model: str) -> str:
    """Return a folder's whole path, as workers may be in another folder; a name as it is."""
    path = Path(model).expanduser()
    return str(path.resolve()) if path.exists() and model != "default" else model
